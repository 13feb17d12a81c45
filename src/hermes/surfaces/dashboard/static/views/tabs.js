// Tabs within a view: one panel at a time, gone through with the arrow keys.
import { html, useEffect, useRef } from "../app/ui.js";

/** `tabs` is [[name, label, draw]]; only the current panel is drawn. */
export function Tabs({ label, tabs, current, onPick, class: more = "" }) {
  const list = useRef();
  const at = Math.max(
    tabs.findIndex(([name]) => name === current),
    0,
  );
  const onKeyDown = (event) => {
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const next = (to + tabs.length) % tabs.length;
    onPick(tabs[next][0]);
    list.current.children[next].focus();
  };
  const [name, , draw] = tabs[at];
  useEffect(
    () => list.current.children[at].scrollIntoView({ block: "nearest", inline: "nearest" }),
    [at],
  );
  const tab = ([one, text]) => html`
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
