// One plugin in the list: what it asks for, its state, and the switch.
/** @import { PluginRow } from "../../types/page.d.ts" */
import { api, may } from "../../app/api.js";
import { Button, Icon, Tag } from "../../app/parts/basics.js";
import { tryTo } from "../../app/parts/toast.js";
import { linkTo } from "../../app/router.js";
import { t, withElements } from "../../app/translation.js";
import { html, useState } from "../../app/ui.js";
import { PluginIcon } from "./icon.js";
import { labelOf, refreshPlugins } from "./plugin_store.js";

/** @type {Record<string, [string, string]>} */
const STATES = {
  off: ["", t("off")],
  enabled: ["good", t("enabled")],
  changed: ["warn", t("changed, needs review")],
  broken: ["bad", t("broken")],
  failed: ["bad", t("failed")],
};

/**
 * `onEnable` is called for a plugin that must be looked at first.
 * @param {{ one: PluginRow, onEnable: () => void }} props
 */
export function Plugin({ one, onEnable }) {
  const [kind, words] = STATES[one.state] ?? ["", one.state];
  return html`
    <li class="card plugin" data-plugin-row=${one.name} data-state=${one.state}>
      <header class="row wrap">
        <${PluginIcon} plugin=${one} />
        <h2>${labelOf(one)}</h2>
        ${one.version && html`<span class="muted small">${one.version}</span>`}
        <${Tag} kind=${kind}>${words}<//>
        ${one.bundled && html`<${Tag}>${t("bundled with Hermes")}<//>`}
      </header>
      ${one.description && html`<p>${one.description}</p>`}
      <${RequestedAccess} one=${one} />
      ${one.error && html`<p class="field-error plugin-error" role="alert">${one.error}</p>`}
      ${
        one.state === "changed" &&
        html`
        <p class="small">${t("Its files changed since you enabled it, so it is not running.")}</p>
      `
      }
      ${one.hash && html`<p class="muted small mono" title=${one.hash}>sha256 ${one.hash.slice(0, 16)}…</p>`}
      <footer class="row wrap">
        ${
          one.state === "enabled" &&
          one.entry &&
          one.tab &&
          html`
          <a class="button primary" href=${linkTo("plugins", one.name)}>${t("Open")}</a>
        `
        }
        ${may("admin") && html`<${Switches} one=${one} onEnable=${onEnable} />`}
      </footer>
    </li>
  `;
}

/**
 * What can be done with it, by the state it is in.
 * @param {{ one: PluginRow, onEnable: () => void }} props
 */
function Switches({ one, onEnable }) {
  const [busy, setBusy] = useState(false);
  /**
   * @param {{ enabled: boolean, hash?: string }} body
   * @param {string} [words]
   */
  const put = async (body, words) => {
    setBusy(true);
    const answer = await tryTo(() => api.put(`/api/plugins/${one.name}`, body), words);
    setBusy(false);
    if (answer) refreshPlugins(answer);
  };
  const name = labelOf(one);
  const enable = () => put({ enabled: true, hash: one.hash }, t("Enabled {name}.", { name }));
  const tryAgain = () => put({ enabled: true, hash: one.hash });
  const disable = () =>
    put({ enabled: false }, t("Disabled {name} and stopped what it had started.", { name }));
  const { state, bundled } = one;
  const mustLook = !bundled && (state === "off" || state === "changed");
  return html`
    ${
      bundled &&
      state === "off" &&
      html`
      <${Button} kind="primary" icon="check" busy=${busy} onClick=${enable}>${t("Enable")}<//>
    `
    }
    ${
      mustLook &&
      html`
      <${Button} kind="primary" icon="eye" onClick=${onEnable}>
        ${state === "changed" ? t("Review again") : t("Review and enable")}
      <//>
    `
    }
    ${state === "failed" && html`<${Button} icon="retry" busy=${busy} onClick=${tryAgain}>${t("Try again")}<//>`}
    ${
      ["enabled", "failed", "changed"].includes(state) &&
      html`
      <${Button} icon="stop" busy=${busy} onClick=${disable}>${t("Disable")}<//>
    `
    }
  `;
}

/**
 * What a plugin asks for, by its manifest.
 * @param {{ one: PluginRow }} props
 */
function RequestedAccess({ one }) {
  const wants = [
    one.in_agent
      ? [
          "bolt",
          t("Runs Python in the agent: it may add tools and commands, and look at each tool call"),
        ]
      : "",
    one.api && [
      "tool",
      withElements(t("Runs Python in the dashboard and adds routes: {file}"), {
        file: html`<code>${one.api}</code>`,
      }),
    ],
    one.entry && [
      "chat",
      withElements(one.tab ? t("Shows a page: {file}") : t("Shows a widget: {file}"), {
        file: html`<code>${one.entry}</code>`,
      }),
    ],
    one.css && [
      "palette",
      withElements(t("Adds a style sheet: {file}"), { file: html`<code>${one.css}</code>` }),
    ],
  ].filter(Boolean);
  return (
    wants.length > 0 &&
    html`
    <ul class="plain small wants">
      ${wants.map(
        ([icon, words]) => html`
        <li key=${icon} class="row"><${Icon} name=${icon} size=${16} /><span>${words}</span></li>
      `,
      )}
    </ul>
  `
  );
}
