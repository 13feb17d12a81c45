// Short messages at the edge of the page. Errors stay until they are dismissed.

import { errorText } from "../api.js";
import { t } from "../translation.js";
import { html, Store, useStore } from "../ui.js";
import { Button, Icon } from "./basics.js";

const STAY_MS = 5000; // milliseconds
const toasts = new Store(/** @type {Toast[]} */ ([]));
/** @type {Record<string, string>} */
const ICON = { good: "check", bad: "warn", info: "info" };

/** @typedef {{ text: string, kind: string, action: { label: string, run: () => void } | null, id: string }} Toast */

/**
 * Shows a message. `kind`: "info" | "good" | "bad". `action` is {label, run}.
 * @param {string} text
 * @param {"info" | "good" | "bad"} [kind]
 * @param {{ label: string, run: () => void } | null} [action]
 */
export function toast(text, kind = "info", action = null) {
  const one = { text, kind, action, id: crypto.randomUUID?.() ?? String(Math.random()) };
  toasts.set([...toasts.value.slice(-3), one]);
  if (kind !== "bad") setTimeout(() => dismiss(one), STAY_MS);
}

/** @param {Toast} one */
function dismiss(one) {
  toasts.set(toasts.value.filter((other) => other !== one));
}

/** Where they appear; the frame draws it once. */
export function Toasts() {
  const shown = useStore(toasts);
  return html`
    <div class="toasts" role="status" aria-live="polite">
      ${shown.map((one) => html`<${Toast} key=${one.id} one=${one} />`)}
    </div>
  `;
}

/** @param {{ one: Toast }} props */
function Toast({ one }) {
  const act = () => {
    dismiss(one);
    one.action?.run();
  };
  return html`
    <div class=${`toast ${one.kind}`}>
      <${Icon} name=${ICON[one.kind] ?? "info"} />
      <span>${one.text}</span>
      ${one.action && html`<${Button} kind="quiet" onClick=${act}>${one.action.label}<//>`}
      <${Button} kind="quiet" icon="close" label=${t("Dismiss")} onClick=${() => dismiss(one)} />
    </div>
  `;
}

/**
 * Runs an API call and shows a message if it fails. Resolves to the response, or to undefined.
 * @template T
 * @param {() => Promise<T>} work
 * @param {string} [done]
 * @returns {Promise<T | undefined>}
 */
export async function tryTo(work, done = "") {
  try {
    const answer = await work();
    if (done) toast(done, "good");
    return answer;
  } catch (error) {
    toast(errorText(error), "bad");
    return undefined;
  }
}
