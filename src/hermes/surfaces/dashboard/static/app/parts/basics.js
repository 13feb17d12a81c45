// Basic components: icons, buttons, empty states, times.
/** @import { Child, Failure } from "../../types/page.d.ts" */

import { shown } from "../keys.js";
import { t } from "../translation.js";
import { html, Store, useStore } from "../ui.js";
import { absolute, ago } from "./format.js";
import { ICONS } from "./icons.js";

/**
 * An icon. With a `label` it speaks for itself; without, it is decoration.
 * @param {{ name: string, label?: string, size?: number }} props
 */
export function Icon({ name, label, size = 20 }) {
  const spoken = label ? { role: "img", "aria-label": label } : { "aria-hidden": "true" };
  return html`
    <svg class="icon" viewBox="0 0 24 24" width=${size} height=${size} ...${spoken}>
      <path d=${ICONS[name] ?? ICONS.info} />
    </svg>
  `;
}

/**
 * @typedef {object} ButtonProps
 * @property {string} [kind]
 * @property {string} [icon]
 * @property {string} [label]
 * @property {Child} [children]
 * @property {string} [class]
 * @property {boolean} [busy]
 * @property {boolean} [disabled]
 * @property {string} [title]
 */

/**
 * A button. `kind`: "" | "primary" | "quiet" | "danger". With an icon and no children, `label` is its name.
 * @param {ButtonProps} props
 */
export function Button({
  kind = "",
  icon,
  label,
  children,
  class: more = "",
  busy = false,
  disabled,
  ...rest
}) {
  const bare = !children || (Array.isArray(children) && !children.length);
  const name = bare ? { "aria-label": label, title: rest.title ?? label } : {};
  return html`
    <button
      type="button"
      class=${`button ${kind} ${bare ? "bare" : ""} ${more}`}
      disabled=${disabled || busy}
      aria-busy=${busy ? "true" : undefined}
      ...${rest}
      ...${name}
    >
      ${busy ? html`<span class="spinner" aria-hidden="true" />` : icon && html`<${Icon} name=${icon} />`}
      ${children}
    </button>
  `;
}

/**
 * The keys that do the same as a button.
 * @param {{ of: string }} props
 */
export function Keys({ of }) {
  return html`<kbd class="button-keys" aria-hidden="true">${shown(of).join(" ")}</kbd>`;
}

/**
 * A link that looks like a button with nothing but an icon; `label` is its name.
 * @param {{ icon: string, label: string, title?: string, href: string }} props
 */
export function IconLink({ icon, label, title = label, ...rest }) {
  return html`
    <a class="button quiet bare" aria-label=${label} title=${title} ...${rest}><${Icon} name=${icon} /></a>
  `;
}

/**
 * An empty state.
 * @param {{ icon?: string, title: string, children?: Child }} props
 */
export function Empty({ icon = "info", title, children }) {
  return html`
    <div class="empty">
      <${Icon} name=${icon} size=${36} />
      <h2>${title}</h2>
      <div class="muted">${children}</div>
    </div>
  `;
}

/**
 * A loading indicator.
 * @param {{ label?: string }} props
 */
export function Loading({ label = t("Loading") }) {
  return html`
    <div class="loading" role="status">
      <span class="spinner" aria-hidden="true" />
      <span>${label}…</span>
    </div>
  `;
}

/**
 * An error, with a retry button.
 * @param {{ error: Failure, retry?: () => unknown }} props
 */
export function Problem({ error, retry }) {
  return html`
    <div class="problem" role="alert">
      <${Icon} name="warn" />
      <div>
        <strong><${Words} text=${error.message} /></strong>
        ${error.hint && html`<div><${Words} text=${error.hint} /></div>`}
      </div>
      ${retry && html`<${Button} icon="retry" onClick=${retry}>${t("Try again")}<//>`}
    </div>
  `;
}

/**
 * A message from Hermes: capitalized, with text between backticks as code.
 * @param {{ text: string }} props
 */
export function Words({ text }) {
  const parts = (text.charAt(0).toUpperCase() + text.slice(1)).split("`");
  return parts.map((part, index) => (index % 2 ? html`<code key=${index}>${part}</code>` : part));
}

/** Grows by one every 30 seconds; one clock for all times on the page. */
const halfMinutes = new Store(0);
setInterval(() => halfMinutes.set(halfMinutes.value + 1), 30_000);

/**
 * A time relative to now; the tooltip has the exact time. `at` is in unix seconds.
 * @param {{ at: number }} props
 */
export function Time({ at }) {
  useStore(halfMinutes);
  return html`<time datetime=${new Date(at * 1000).toISOString()} title=${absolute(at)}>${ago(at)}</time>`;
}

/**
 * A coloured label. `kind`: "" | "good" | "warn" | "bad" | "accent".
 * @param {{ kind?: string, children?: Child }} props
 */
export function Tag({ kind = "", children, ...rest }) {
  return html`<span class=${`tag ${kind}`} ...${rest}>${children}</span>`;
}
