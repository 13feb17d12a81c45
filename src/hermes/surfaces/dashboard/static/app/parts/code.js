// A code block: its language, a copy button, and folding of long blocks. What can be looked at gets a preview.
import { t } from "../translation.js";
import { html, useEffect, useMemo, useState } from "../ui.js";
import { Button } from "./basics.js";
import { Copy } from "./copy.js";
import { Highlighted, languageOf } from "./highlight.js";

const FOLD_LINES = 60; // lines from which a block is folded
const SHOWN = 40;
/** @type {Record<string, import("./artifact.js").ArtifactKind>} */
const ARTIFACTS = {
  html: "html",
  htm: "html",
  svg: "svg",
  markdown: "markdown",
  md: "markdown",
  mermaid: "mermaid",
  mmd: "mermaid",
};

/**
 * What a text in this language can be shown as, or "".
 * @param {string} language or the ending of a file's name
 * @param {string} text
 */
export function artifactKind(language, text) {
  const kind = ARTIFACTS[language.toLowerCase()] ?? "";
  return kind === "svg" && !/<svg[\s>][\s\S]*<\/svg>/.test(text) ? "" : kind;
}

/** @type {typeof import("./artifact.js").default | null} */
let loaded = null;

/**
 * The component that shows an artifact, once it is needed and loaded.
 * @param {boolean} isNeeded
 */
export function useArtifact(isNeeded) {
  const [component, setComponent] = useState(() => loaded);
  useEffect(() => {
    if (isNeeded && !component)
      import("./artifact.js").then(
        (module) => {
          loaded = module.default;
          setComponent(() => loaded);
        },
        () => {}, // the code stays
      );
  }, [isNeeded]);
  return isNeeded ? component : null;
}

/**
 * Code. With `open`, it is still being written and is never folded.
 * @param {{ text: string, language?: string, name?: string, open?: boolean }} props
 */
export function Code({ text, language = "", name = "", open = false }) {
  const [whole, setWhole] = useState(false);
  const lines = useMemo(() => text.split("\n"), [text]);
  const folded = !open && !whole && lines.length > FOLD_LINES;
  const shown = folded ? lines.slice(0, SHOWN).join("\n") : text;
  const kind = open ? "" : artifactKind(language, text);
  const Artifact = useArtifact(kind !== "");
  const code = html`
    <figure class="code">
      <figcaption>
        <span>${name || language || t("text")}</span>
        <${Copy} text=${text} label=${t("Copy code")} />
      </figcaption>
      <pre tabindex="0" aria-label=${t("Code {name}", { name: name || language }).trim()}>
        <code><${Highlighted} text=${shown} language=${languageOf(language)} /></code>
      </pre>
      ${
        folded &&
        html`
        <${Button} kind="quiet" class="unfold" icon="down" onClick=${() => setWhole(true)}>
          ${t("Show all {count} line", "Show all {count} lines", { count: lines.length })}
        <//>
      `
      }
    </figure>
  `;
  if (!Artifact) return code;
  return html`<${Artifact} kind=${kind} text=${text} name=${name}>${code}<//>`;
}
