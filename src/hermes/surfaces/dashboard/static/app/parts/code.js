// A code block: its language, a copy button, and folding of long blocks.
import { html, useMemo, useState } from "../ui.js";
import { Button } from "./basics.js";
import { Copy } from "./copy.js";
import { plural } from "./format.js";
import { Highlighted, languageOf } from "./highlight.js";

const FOLD_LINES = 60; // lines from which a block is folded
const SHOWN = 40;

/**
 * Code. With `open`, it is still being written and is never folded.
 * @param {{ text: string, language?: string, name?: string, open?: boolean }} props
 */
export function Code({ text, language = "", name = "", open = false }) {
  const [whole, setWhole] = useState(false);
  const lines = useMemo(() => text.split("\n"), [text]);
  const folded = !open && !whole && lines.length > FOLD_LINES;
  const shown = folded ? lines.slice(0, SHOWN).join("\n") : text;
  return html`
    <figure class="code">
      <figcaption>
        <span>${name || language || "text"}</span>
        <${Copy} text=${text} label="Copy code" />
      </figcaption>
      <pre tabindex="0" aria-label=${`Code ${name || language}`.trim()}>
        <code><${Highlighted} text=${shown} language=${languageOf(language)} /></code>
      </pre>
      ${
        folded &&
        html`
        <${Button} kind="quiet" class="unfold" icon="down" onClick=${() => setWhole(true)}>
          Show all ${plural(lines.length, "line")}
        <//>
      `
      }
    </figure>
  `;
}
