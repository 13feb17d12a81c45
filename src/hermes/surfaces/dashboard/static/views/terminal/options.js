// Options of all terminals: the font size, screen reader mode; and the keys to know.
import { Button } from "../../app/parts/basics.js";
import { Dialog } from "../../app/parts/dialog.js";
import { html, kept, useStore } from "../../app/ui.js";
import { fontSize, screenReader } from "./screen.js";

const SMALLEST_PX = 9; // pixels
const LARGEST = 28;

/** @param {{ onClose: () => void }} props */
export function Options({ onClose }) {
  const aloud = useStore(screenReader);
  return html`
    <${Dialog} title="Terminal options" onClose=${onClose}>
      <div class="stack">
        <${FontSize} />
        <label class="row">
          <span class="spring">Screen reader mode: read the output aloud</span>
          <input type="checkbox" checked=${aloud} onChange=${speak} />
        </label>
        <dl class="facts">
          <dt>Copy</dt>
          <dd>Ctrl Shift C, or ⌘ C</dd>
          <dt>Paste</dt>
          <dd>Ctrl Shift V, or ⌘ V</dd>
          <dt>Leave the terminal</dt>
          <dd>Ctrl Shift X. Then the arrow keys switch tabs, and Delete ends a terminal.</dd>
          <dt>Open a link</dt>
          <dd>Ctrl or ⌘ and click</dd>
        </dl>
      </div>
    <//>
  `;
}

function FontSize() {
  const size = useStore(fontSize);
  const smaller = () => scale(-1);
  const larger = () => scale(1);
  return html`
    <div class="row">
      <span class="spring" id="letters-label">Font size</span>
      <${Button} icon="minus" label="Smaller font" disabled=${size <= SMALLEST_PX} onClick=${smaller} />
      <output aria-labelledby="letters-label">${size}</output>
      <${Button} icon="plus" label="Larger font" disabled=${size >= LARGEST} onClick=${larger} />
    </div>
  `;
}

/** @param {number} by */
function scale(by) {
  fontSize.set(Math.min(LARGEST, Math.max(SMALLEST_PX, fontSize.value + by)));
  kept.set("terminal.letters", String(fontSize.value));
}

/** Turns the speaking of what terminals write on or off. */
export function speak() {
  screenReader.set(!screenReader.value);
  kept.set("terminal.spoken", screenReader.value ? "yes" : null);
}
