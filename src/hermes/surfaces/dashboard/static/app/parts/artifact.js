// What a model wrote to be looked at: a page, a picture, a document or a diagram, with its source.
/** @import { Child, Ref } from "../../types/page.d.ts" */

import { theme } from "../theme.js";
import { t } from "../translation.js";
import { html, useEffect, useElement, useState, useStore, useStyle } from "../ui.js";
import { Button } from "./basics.js";
import { Copy } from "./copy.js";
import { draw } from "./diagrams.js";
import { Dialog } from "./dialog.js";
import { Markdown } from "./markdown.js";
import { canRunScripts, openSandbox, showStill } from "./sandbox.js";

/** @typedef {"html" | "svg" | "markdown" | "mermaid"} ArtifactKind */
/** @typedef {{ kind: ArtifactKind, text: string, name: string }} PreviewProps */

/** @type {Record<ArtifactKind, [string, string]>} */
const FILES = {
  html: ["html", "text/html"],
  svg: ["svg", "image/svg+xml"],
  markdown: ["md", "text/markdown"],
  mermaid: ["mmd", "text/plain"],
};
/** @type {Record<ArtifactKind, string>} */
const WORDS = {
  html: t("Page"),
  svg: t("Picture"),
  markdown: t("Document"),
  mermaid: t("Diagram"),
};

const HAS_SCRIPTS = /<script|\son\w+\s*=|javascript:/i;

/**
 * A preview and the source, `children`, with a switch between them. Pictures and diagrams are shown at once; a page
 * often needs its scripts, so its source comes first.
 * @param {PreviewProps & { children: Child }} props
 */
export default function Artifact({ kind, text, name, children }) {
  const styled = useStyle("parts/artifact.css");
  const [shown, setShown] = useState(kind === "mermaid" || kind === "svg");
  const [full, setFull] = useState(false);
  const title = name || WORDS[kind];
  const preview = { kind, text, name: title };
  if (!styled) return children;
  return html`
    <figure class="artifact">
      <figcaption>
        <span>${name || kind}</span>
        <div class="switcher" role="group" aria-label=${t("View")}>
          <${Choice} chosen=${shown} onClick=${() => setShown(true)}>${t("Preview")}<//>
          <${Choice} chosen=${!shown} onClick=${() => setShown(false)}>${t("Code")}<//>
        </div>
        <${Copy} text=${text} label=${t("Copy code")} />
        <${Button} kind="quiet" class="copy" icon="download" label=${t("Download")}
          onClick=${() => save(preview)} />
        <${Button} kind="quiet" class="copy" icon="expand" label=${t("Full screen")} onClick=${() => setFull(true)} />
      </figcaption>
      ${shown && !full ? html`<${Preview} ...${preview} />` : children}
      ${
        full &&
        html`
        <${Dialog} title=${title} class="full" onClose=${() => setFull(false)}><${Preview} ...${preview} /><//>
      `
      }
    </figure>
  `;
}

/** @param {{ chosen: boolean, onClick: () => void, children?: Child }} props */
function Choice({ chosen, onClick, children }) {
  return html`
    <button type="button" aria-pressed=${chosen ? "true" : "false"} onClick=${onClick}>${children}</button>
  `;
}

/** @param {PreviewProps} props */
export function Preview({ kind, text, name }) {
  if (kind === "mermaid") return html`<${Diagram} text=${text} />`;
  if (kind === "markdown") {
    return html`<div class="artifact-page" tabindex="0" role="region" aria-label=${name}>
      <${Markdown} text=${text} /></div>`;
  }
  if (kind === "html") return html`<${Page} key=${text} text=${text} name=${name} />`;
  return html`<div class="artifact-picture"><img src=${pictureAddress(text)} alt=${name} /></div>`;
}

/**
 * In an image, SVG neither runs scripts nor loads anything.
 * @param {string} svg
 */
function pictureAddress(svg) {
  return `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
}

/**
 * A page. Its scripts run only after somebody asked for it.
 * @param {{ text: string, name: string }} props
 */
function Page({ text, name }) {
  const [running, setRunning] = useState(false);
  return html`
    <div class="artifact-html">
      ${!running && HAS_SCRIPTS.test(text) && html`<${ScriptsOff} onRun=${() => setRunning(true)} />`}
      <${PageFrame} key=${running} text=${text} name=${name} running=${running} />
    </div>
  `;
}

/** @param {{ onRun: () => void }} props */
function ScriptsOff({ onRun }) {
  if (!canRunScripts()) {
    return html`<p class="artifact-scripts">
      ${t("Scripts are off, because this browser can't keep them off the network.")}</p>`;
  }
  return html`
    <div class="artifact-scripts">
      <p>
        ${t("Scripts are off. Run them only if you trust this page: they could leak what is in it or what you type.")}
      </p>
      <${Button} onClick=${onRun}>${t("Run scripts")}<//>
    </div>
  `;
}

/** @param {{ text: string, name: string, running: boolean }} props */
function PageFrame({ text, name, running }) {
  const frame = /** @type {Ref<HTMLIFrameElement>} */ (useElement());
  useEffect(() => {
    if (running) openSandbox(frame.current, { html: text });
    else showStill(frame.current, text);
  }, []);
  return html`<iframe ref=${frame} class="artifact-frame" title=${t("Preview: {name}", { name })} />`;
}

/** @param {{ text: string }} props */
function Diagram({ text }) {
  const chosen = useStore(theme);
  const isDark =
    chosen === "dark" || (chosen !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  const [found, setFound] = useState(
    /** @type {Partial<import("./diagrams.js").Drawing> & { problem?: string }} */ ({}),
  );
  useEffect(() => {
    let wanted = true;
    draw(text, isDark).then(
      (drawing) => wanted && setFound(drawing),
      (error) => wanted && setFound({ problem: error.message }),
    );
    return () => {
      wanted = false;
    };
  }, [text, isDark]);
  if (found.problem)
    return html`
      <p class="artifact-problem">
        ${t("This diagram can't be drawn: {problem}", { problem: found.problem })}</p>
      <pre class="artifact-source" tabindex="0" aria-label=${t("Source of the diagram")}>${text}</pre>
    `;
  if (!found.svg)
    return html`<p class="artifact-wait" role="status">${t("Drawing the diagram")}</p>`;
  return html`
    <div class="artifact-picture">
      <img src=${pictureAddress(found.svg)} width=${found.width || undefined} height=${found.height || undefined}
        alt=${t("Diagram: {text}", { text: text.trim().slice(0, 300) })} />
    </div>
  `;
}

/** @param {PreviewProps} props */
function save({ kind, text, name }) {
  const [ending, type] = FILES[kind];
  const base = name.split("/").pop() || "artifact";
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = base.endsWith(`.${ending}`) ? base : `${base.toLowerCase()}.${ending}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000); // the browser has read it by then
}
