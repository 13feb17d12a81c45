// Options of all terminals: the font size, screen reader mode; and the keys to know.
import { Button } from "../../app/parts/basics.js";
import { Dialog } from "../../app/parts/dialog.js";
import { t } from "../../app/translation.js";
import { html, kept, useStore } from "../../app/ui.js";
import { fontSize, screenReader } from "./screen.js";

const SMALLEST_PX = 9; // pixels
const LARGEST = 28;

/** @param {{ onClose: () => void }} props */
export function Options({ onClose }) {
  const aloud = useStore(screenReader);
  return html`
    <${Dialog} title=${t("Terminal options")} onClose=${onClose}>
      <div class="stack">
        <${FontSize} />
        <label class="row">
          <span class="spring">${t("Screen reader mode: read the output aloud")}</span>
          <input type="checkbox" checked=${aloud} onChange=${speak} />
        </label>
        <dl class="facts">
          <dt>${t("Copy")}</dt>
          <dd>${t("Ctrl Shift C, or ⌘ C")}</dd>
          <dt>${t("Paste")}</dt>
          <dd>${t("Ctrl Shift V, or ⌘ V")}</dd>
          <dt>${t("Leave the terminal")}</dt>
          <dd>${t("Ctrl Shift X. Then the arrow keys switch tabs, and Delete ends a terminal.")}</dd>
          <dt>${t("Open a link")}</dt>
          <dd>${t("Ctrl or ⌘ and click")}</dd>
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
      <span class="spring" id="letters-label">${t("Font size")}</span>
      <${Button} icon="minus" label=${t("Smaller font")} disabled=${size <= SMALLEST_PX} onClick=${smaller} />
      <output aria-labelledby="letters-label">${size}</output>
      <${Button} icon="plus" label=${t("Larger font")} disabled=${size >= LARGEST} onClick=${larger} />
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
