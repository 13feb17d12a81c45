// Keys that phones don't have. They leave the focus where it is, so that the keyboard stays.
/** @import { Screen } from "./screen.js" */

import { Icon } from "../../app/parts/basics.js";
import { toast } from "../../app/parts/toast.js";
import { t } from "../../app/translation.js";
import { html, useStore } from "../../app/ui.js";

// What is on the key, what it types, and its name where the face doesn't say it. Ctrl types nothing by itself.
const KEYS = [
  ["Esc", "\x1b"],
  ["Tab", "\t"],
  ["Ctrl"],
  ["left", "\x1b[D", t("Arrow left")],
  ["up", "\x1b[A", t("Arrow up")],
  ["down", "\x1b[B", t("Arrow down")],
  ["right", "\x1b[C", t("Arrow right")],
  ["|", "|", t("Pipe")],
  ["/", "/", t("Slash")],
  ["-", "-", t("Dash")],
  ["~", "~", t("Tilde")],
];
const ARROWS = new Set(["left", "up", "down", "right"]);

/** @param {{ screen: Screen }} props */
export function KeyRow({ screen }) {
  const ctrl = useStore(screen.ctrl);
  /** @param {Event} event */
  const stay = (event) => event.preventDefault();
  const paste = async () => {
    try {
      screen.paste(await navigator.clipboard.readText());
    } catch {
      const why = t("The browser did not allow pasting. Press and hold on the terminal instead.");
      toast(why, "bad");
    }
  };
  /** @param {string[]} key */
  const key = ([face, text, name]) => {
    if (face === "Ctrl") {
      const onClick = () => screen.ctrl.set(!ctrl);
      return html`<button key="ctrl" type="button" aria-pressed=${String(ctrl)} onClick=${onClick}>${face}</button>`;
    }
    return html`
      <button key=${face} type="button" aria-label=${name} onClick=${() => screen.type(text)}>
        ${ARROWS.has(face) ? html`<${Icon} name=${face} size=${18} />` : face}
      </button>
    `;
  };
  return html`
    <div class="terminal-keys" role="toolbar" aria-label=${t("Keys")} onPointerDown=${stay} onMouseDown=${stay}>
      ${KEYS.map(key)}
      <button type="button" onClick=${paste}>${t("Paste")}</button>
    </div>
  `;
}
