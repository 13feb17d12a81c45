// The plugins that were found, and the widgets of those that run.
/** @import { KnownPlugins, PluginRow } from "../../types/page.d.ts" */
import { Button, Empty, Loading, Problem } from "../../app/parts/basics.js";
import { t, withElements } from "../../app/translation.js";
import { html, useState } from "../../app/ui.js";
import { PluginIcon } from "./icon.js";
import { Mounted } from "./mount.js";
import { Plugin } from "./plugin.js";
import { labelOf, refreshPlugins, widgetsOf } from "./plugin_store.js";
import { ReviewDialog } from "./review_dialog.js";

const FOLDER = { folder: html`<code>plugins/</code>` };

/** @param {{ known: KnownPlugins }} props */
export function PluginList({ known }) {
  const [asking, setAsking] = useState("");
  const look = () => refreshPlugins();
  return html`
    <div class="page plugins">
      <header class="page-head">
        <h1>${t("Plugins")}</h1>
        <${Button} kind="quiet" icon="retry" onClick=${look}>${t("Refresh")}<//>
      </header>
      <p class="muted">
        ${withElements(t("Plugins are in {folder} in the Hermes home."), FOLDER)}${" "}
        ${t("They run as you, inside Hermes, so a plugin does not run before you have reviewed and enabled it.")}
      </p>
      ${known.error && html`<${Problem} error=${known.error} retry=${look} />`}
      <${Widgets} plugins=${widgetsOf(known)} />
      ${known.list && html`<${PluginsFound} list=${known.list} onEnable=${setAsking} />`}
      ${!known.list && !known.error && html`<${Loading} />`}
      ${asking && html`<${ReviewDialog} name=${asking} onClose=${() => setAsking("")} />`}
    </div>
  `;
}

/** @param {{ plugins: PluginRow[] }} props */
function Widgets({ plugins }) {
  return (
    plugins.length > 0 &&
    html`
    <section aria-label=${t("Widgets")} class="widgets">
      ${plugins.map(
        (one) => html`
        <article key=${one.name} class="card widget">
          <header class="row">
            <${PluginIcon} plugin=${one} />
            <h2>${labelOf(one)}</h2>
          </header>
          <${Mounted} plugin=${one} kind="widget" />
        </article>
      `,
      )}
    </section>
  `
  );
}

/** @param {{ list: PluginRow[], onEnable: (name: string) => void }} props */
function PluginsFound({ list, onEnable }) {
  if (!list.length) {
    return html`
      <${Empty} icon="plugins" title=${t("No plugins yet")}>
        ${withElements(t("Put one into {folder} in the Hermes home."), FOLDER)}${" "}
        ${t("The guide shows how to write one in fifteen lines.")}
      <//>
    `;
  }
  return html`
    <ul class="plain plugin-list">
      ${list.map((one) => html`<${Plugin} key=${one.name} one=${one} onEnable=${() => onEnable(one.name)} />`)}
    </ul>
  `;
}
