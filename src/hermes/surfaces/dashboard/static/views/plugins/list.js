// The plugins that were found: what each asks for, how it is, switching it on or off. Widgets of those that run.
import { api, may } from "../../app/api.js";
import { Button, Empty, Icon, Loading, Problem, Tag } from "../../app/parts/basics.js";
import { trying } from "../../app/parts/toast.js";
import { pathTo } from "../../app/router.js";
import { html, useState } from "../../app/ui.js";
import { Enabling } from "./enabling.js";
import { PluginIcon } from "./icon.js";
import { labelOf, refreshPlugins, widgetsOf } from "./known.js";
import { Mounted } from "./mount.js";

const STATES = { off: ["", "off"], enabled: ["good", "enabled"], changed: ["warn", "changed, asks again"], broken: ["bad", "broken"], failed: ["bad", "failed"] };

export function PluginList({ known }) {
  const [asking, setAsking] = useState("");
  const widgets = widgetsOf(known);
  return html`<div class="page plugins"><header class="page-head"><h1>Plugins</h1><${Button} kind="quiet" icon="retry" onClick=${() => refreshPlugins()}>Look again<//></header>
    <p class="muted">Plugins live in <code>plugins/</code> of the Hermes home. They run as you, inside this dashboard, so nothing of one runs before you have looked at it and enabled it.</p>
    ${known.error && html`<${Problem} error=${known.error} retry=${() => refreshPlugins()} />`}
    ${widgets.length > 0 && html`<section aria-label="Widgets" class="widgets">${widgets.map((one) => html`<article key=${one.name} class="card widget"><header class="row"><${PluginIcon} plugin=${one} /><h2>${labelOf(one)}</h2></header><${Mounted} plugin=${one} kind="widget" /></article>`)}</section>`}
    ${!known.list ? !known.error && html`<${Loading} />` : known.list.length === 0 ? html`<${Empty} icon="plugins" title="No plugins yet">Put one into <code>plugins/</code> of the Hermes home; the guide shows how to write one in fifteen lines.<//>`
      : html`<ul class="plain plugin-list">${known.list.map((one) => html`<${Plugin} key=${one.name} one=${one} onEnable=${() => setAsking(one.name)} />`)}</ul>`}
    ${asking && html`<${Enabling} name=${asking} onClose=${() => setAsking("")} />`}
  </div>`;
}

function Plugin({ one, onEnable }) {
  const [kind, words] = STATES[one.state] ?? ["", one.state];
  const [busy, setBusy] = useState(false);
  const put = async (body, words) => {
    setBusy(true);
    const answer = await trying(() => api.put(`/api/plugins/${one.name}`, body), words);
    setBusy(false);
    if (answer) refreshPlugins(answer);
  };
  const disable = () => put({ enabled: false }, `${labelOf(one)} is off. What it had started has ended.`);
  const isOn = one.state === "enabled" || one.state === "failed";
  return html`<li class="card plugin" data-plugin-row=${one.name} data-state=${one.state}>
    <header class="row wrap"><${PluginIcon} plugin=${one} /><h2>${labelOf(one)}</h2>${one.version && html`<span class="muted small">${one.version}</span>`}<${Tag} kind=${kind}>${words}<//>${one.bundled && html`<${Tag}>came with Hermes<//>`}</header>
    ${one.description && html`<p>${one.description}</p>`}
    <${Wants} one=${one} />
    ${one.error && html`<p class="field-error plugin-error" role="alert">${one.error}</p>`}
    ${one.state === "changed" && html`<p class="small">Its files are no longer what you enabled, so it does not run.</p>`}
    ${one.hash && html`<p class="muted small mono" title=${one.hash}>sha256 ${one.hash.slice(0, 16)}…</p>`}
    <footer class="row wrap">
      ${one.state === "enabled" && one.entry && one.tab && html`<a class="button primary" href=${`#${pathTo("plugins", one.name)}`}>Open</a>`}
      ${may("admin") && one.state === "off" && one.bundled && html`<${Button} kind="primary" icon="check" busy=${busy} onClick=${() => put({ enabled: true, hash: one.hash }, `${labelOf(one)} is enabled.`)}>Enable<//>`}
      ${may("admin") && !one.bundled && (one.state === "off" || one.state === "changed") && html`<${Button} kind="primary" icon="eye" onClick=${onEnable}>${one.state === "changed" ? "Look at it again" : "Look at it and enable"}<//>`}
      ${may("admin") && one.state === "failed" && html`<${Button} icon="retry" busy=${busy} onClick=${() => put({ enabled: true, hash: one.hash })}>Try again<//>`}
      ${may("admin") && (isOn || one.state === "changed") && html`<${Button} icon="stop" busy=${busy} onClick=${disable}>Disable<//>`}
    </footer>
  </li>`;
}

/** What a plugin asks for, by its manifest. */
export function Wants({ one }) {
  const wants = [
    one.api && ["tool", html`Runs Python in the dashboard and has routes of its own: <code>${one.api}</code>`],
    one.entry && ["chat", html`Shows ${one.tab ? "a page" : "a widget"}: <code>${one.entry}</code>`],
    one.css && ["palette", html`Brings a style sheet: <code>${one.css}</code>`],
  ].filter(Boolean);
  return wants.length > 0 && html`<ul class="plain small wants">${wants.map(([icon, words]) => html`<li key=${icon} class="row"><${Icon} name=${icon} size=${16} /><span>${words}</span></li>`)}</ul>`;
}
