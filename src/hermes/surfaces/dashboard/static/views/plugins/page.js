// The page of a plugin.
/** @import { Child, KnownPlugins } from "../../types/page.d.ts" */
import { Empty, IconLink, Loading, Problem, Tag } from "../../app/parts/basics.js";
import { t } from "../../app/translation.js";
import { html, useEffect } from "../../app/ui.js";
import { PluginIcon } from "./icon.js";
import { Mounted } from "./mount.js";
import { labelOf, refreshPlugins } from "./plugin_store.js";

/** @type {Record<string, string>} */
const WHY = {
  off: t("It is not enabled."),
  changed: t("Its files changed since you enabled it. Review and enable it again."),
  broken: t("It can't be loaded."),
  failed: t("It is enabled, but could not be started."),
};

/** @param {{ name: string, known: KnownPlugins }} props */
export function PluginPage({ name, known }) {
  const plugin = known.list?.find((one) => one.name === name);
  useEffect(() => {
    if (plugin) document.title = `${labelOf(plugin)} · Hermes`;
  }, [plugin?.name]);
  if (!known.list) {
    if (!known.error) return html`<${Loading} />`;
    return html`<div class="page"><${Problem} error=${known.error} retry=${refreshPlugins} /></div>`;
  }
  if (!plugin) {
    const text = t("There is no plugin named {name}.", { name });
    return html`<${NoPage} title=${t("There is no such plugin")}><p>${text}</p><//>`;
  }
  if (plugin.state !== "enabled") {
    return html`
      <${NoPage} title=${t("{name} is not running", { name: labelOf(plugin) })}>
        <p>${WHY[plugin.state] ?? plugin.state}</p>
        ${plugin.error && html`<p class="field-error">${plugin.error}</p>`}
      <//>
    `;
  }
  if (!plugin.entry)
    return html`<${NoPage} title=${t("{name} has no page", { name: labelOf(plugin) })} />`;
  return html`
    <div class="plugin-page">
      <header class="row">
        <${IconLink} icon="left" label=${t("All plugins")} href="#/plugins" />
        <${PluginIcon} plugin=${plugin} />
        <h1>${labelOf(plugin)}</h1>
        ${plugin.version && html`<${Tag}>${plugin.version}<//>`}
      </header>
      <${Mounted} plugin=${plugin} kind="page" />
    </div>
  `;
}

/** @param {{ title: string, children?: Child }} props */
function NoPage({ title, children }) {
  return html`
    <${Empty} icon="plugins" title=${title}>
      ${children}
      <a class="button" href="#/plugins">${t("Go to plugins")}</a>
    <//>
  `;
}
