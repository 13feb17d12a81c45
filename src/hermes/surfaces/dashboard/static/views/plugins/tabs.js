// Plugins with a page of their own, as places in the navigation. One with a widget draws its own icon there.
/** @import { PluginRow, View } from "../../types/page.d.ts" */
import { html, useEffect, useStore } from "../../app/ui.js";
import { PluginIcon } from "./icon.js";
import { useMounted } from "./mount.js";
import { labelOf, plugins, refreshPlugins, tabsOf } from "./plugin_store.js";

/**
 * Entries like those of the table of views; `draw` gives the icon.
 * @returns {View[]}
 */
export function usePluginTabs() {
  const known = useStore(plugins);
  useEffect(() => void refreshPlugins(), []);
  return tabsOf(known).map((plugin) => ({
    name: `plugins/${plugin.name}`,
    label: labelOf(plugin),
    icon: "plugins",
    draw: () => {
      if (plugin.widget) return html`<${LiveIcon} key=${plugin.name} plugin=${plugin} />`;
      return html`<${PluginIcon} plugin=${plugin} />`;
    },
  }));
}

/**
 * Drawn by the plugin itself; by its still icon until it is there, and when it fails.
 * @param {{ plugin: PluginRow }} props
 */
function LiveIcon({ plugin }) {
  const [place, { loading, error }] = useMounted(plugin, "frame");
  const still = Boolean(loading || error);
  return html`
    ${still && html`<${PluginIcon} plugin=${plugin} />`}
    <span ref=${place} class="plugin-live" hidden=${still} data-plugin-icon=${plugin.name} />
  `;
}
