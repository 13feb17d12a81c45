// Tabs within a view: one panel at a time, gone through with the arrow keys.
/** @import { Child, Ref } from "../types/page.d.ts" */
import { html, useEffect, useElement } from "../app/ui.js";

/** @typedef {[string, Child, () => Child]} Tab */

/**
 * @typedef {object} TabsProps
 * @property {string} label
 * @property {Tab[]} tabs
 * @property {string} current
 * @property {(name: string) => void} onPick
 * @property {string} [class]
 */

/**
 * `tabs` is [[name, label, draw]]; only the current panel is drawn.
 * @param {TabsProps} props
 */
export function Tabs({ label, tabs, current, onPick, class: more = "" }) {
  const list = /** @type {Ref<HTMLElement>} */ (useElement());
  const at = Math.max(
    tabs.findIndex(([name]) => name === current),
    0,
  );
  /** @param {KeyboardEvent} event */
  const onKeyDown = (event) => {
    /** @type {Record<string, number>} */
    const targets = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 };
    const to = targets[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const next = (to + tabs.length) % tabs.length;
    onPick(tabs[next][0]);
    /** @type {HTMLElement} */ (list.current.children[next]).focus();
  };
  const [name, , draw] = tabs[at];
  useEffect(
    () => list.current.children[at].scrollIntoView({ block: "nearest", inline: "nearest" }),
    [at],
  );
  const tab = (/** @type {Tab} */ [one, text]) => html`
    <button
      key=${one}
      type="button"
      role="tab"
      id=${`tab-${one}`}
      class="tab"
      aria-selected=${String(one === name)}
      aria-controls=${`panel-${name}`}
      tabindex=${one === name ? 0 : -1}
      onClick=${() => onPick(one)}
    >
      ${text}
    </button>
  `;
  return html`
    <div class=${`tabs ${more}`}>
      <div ref=${list} class="tab-list" role="tablist" aria-label=${label} onKeyDown=${onKeyDown}>${tabs.map(tab)}</div>
      <div class="tab-panel" role="tabpanel" id=${`panel-${name}`} aria-labelledby=${`tab-${name}`} tabindex="0">
        ${draw()}
      </div>
    </div>
  `;
}
