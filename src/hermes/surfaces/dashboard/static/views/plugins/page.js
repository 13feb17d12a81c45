// The page of a plugin.
import { Empty, Icon, Loading, Problem, Tag } from "../../app/parts/basics.js";
import { html, useEffect } from "../../app/ui.js";
import { PluginIcon } from "./icon.js";
import { labelOf, refreshPlugins } from "./known.js";
import { Mounted } from "./mount.js";

export function PluginPage({ name, known }) {
  const plugin = known.list?.find((one) => one.name === name);
  useEffect(() => {
    if (plugin) document.title = `${labelOf(plugin)} · Hermes`;
  }, [plugin?.name]);
  if (!known.list) return known.error ? html`<div class="page"><${Problem} error=${known.error} retry=${refreshPlugins} /></div>` : html`<${Loading} />`;
  const back = html`<a class="button" href="#/plugins">To the plugins</a>`;
  if (!plugin) return html`<${Empty} icon="plugins" title="There is no such plugin"><p>No plugin is called ${name}.</p>${back}<//>`;
  if (plugin.state !== "enabled") return html`<${Empty} icon="plugins" title=${`${labelOf(plugin)} does not run`}><p>${WHY[plugin.state] ?? plugin.state}</p>${plugin.error && html`<p class="field-error">${plugin.error}</p>`}${back}<//>`;
  if (!plugin.entry) return html`<${Empty} icon="plugins" title=${`${labelOf(plugin)} has no page`}>${back}<//>`;
  return html`<div class="plugin-page"><header class="row"><a class="button quiet bare" href="#/plugins" aria-label="All plugins" title="All plugins"><${Icon} name="left" /></a><${PluginIcon} plugin=${plugin} /><h1>${labelOf(plugin)}</h1>${plugin.version && html`<${Tag}>${plugin.version}<//>`}</header>
    <${Mounted} plugin=${plugin} kind="page" /></div>`;
}

const WHY = { off: "It is not enabled.", changed: "Its files changed since you enabled it, so it waits for you to look at it again.", broken: "It can't be used as it is.", failed: "It is enabled, but could not be started." };
