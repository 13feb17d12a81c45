// One plugin in the list: what it asks for, its state, and the switch.
/** @import { PluginRow } from "../../types/page.d.ts" */
import { api, may } from "../../app/api.js";
import { Button, Icon, Tag } from "../../app/parts/basics.js";
import { tryTo } from "../../app/parts/toast.js";
import { linkTo } from "../../app/router.js";
import { html, useState } from "../../app/ui.js";
import { PluginIcon } from "./icon.js";
import { labelOf, refreshPlugins } from "./plugin_store.js";

/** @type {Record<string, [string, string]>} */
const STATES = {
  off: ["", "off"],
  enabled: ["good", "enabled"],
  changed: ["warn", "changed, needs review"],
  broken: ["bad", "broken"],
  failed: ["bad", "failed"],
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
        ${one.bundled && html`<${Tag}>bundled with Hermes<//>`}
      </header>
      ${one.description && html`<p>${one.description}</p>`}
      <${RequestedAccess} one=${one} />
      ${one.error && html`<p class="field-error plugin-error" role="alert">${one.error}</p>`}
      ${
        one.state === "changed" &&
        html`
        <p class="small">Its files changed since you enabled it, so it is not running.</p>
      `
      }
      ${one.hash && html`<p class="muted small mono" title=${one.hash}>sha256 ${one.hash.slice(0, 16)}…</p>`}
      <footer class="row wrap">
        ${
          one.state === "enabled" &&
          one.entry &&
          one.tab &&
          html`
          <a class="button primary" href=${linkTo("plugins", one.name)}>Open</a>
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
  const enable = () => put({ enabled: true, hash: one.hash }, `Enabled ${labelOf(one)}.`);
  const tryAgain = () => put({ enabled: true, hash: one.hash });
  const disable = () =>
    put({ enabled: false }, `Disabled ${labelOf(one)} and stopped what it had started.`);
  const { state, bundled } = one;
  const mustLook = !bundled && (state === "off" || state === "changed");
  return html`
    ${
      bundled &&
      state === "off" &&
      html`
      <${Button} kind="primary" icon="check" busy=${busy} onClick=${enable}>Enable<//>
    `
    }
    ${
      mustLook &&
      html`
      <${Button} kind="primary" icon="eye" onClick=${onEnable}>
        ${state === "changed" ? "Review again" : "Review and enable"}
      <//>
    `
    }
    ${state === "failed" && html`<${Button} icon="retry" busy=${busy} onClick=${tryAgain}>Try again<//>`}
    ${
      ["enabled", "failed", "changed"].includes(state) &&
      html`
      <${Button} icon="stop" busy=${busy} onClick=${disable}>Disable<//>
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
          html`Runs Python in the agent: it may add tools and commands, and look at each tool call`,
        ]
      : "",
    one.api && [
      "tool",
      html`Runs Python in the dashboard and adds routes: <code>${one.api}</code>`,
    ],
    one.entry && [
      "chat",
      html`Shows ${one.tab ? "a page" : "a widget"}: <code>${one.entry}</code>`,
    ],
    one.css && ["palette", html`Adds a style sheet: <code>${one.css}</code>`],
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
