// Plugins with a page of their own, as places in the navigation.
import { html, useEffect, useStore } from "../../app/ui.js";
import { PluginIcon } from "./icon.js";
import { Mounted } from "./mount.js";
import { labelOf, plugins, refreshPlugins, tabsOf } from "./known.js";

/** Entries like those of the table of views; `draw` gives the icon. */
export function usePluginTabs() {
  const known = useStore(plugins);
  useEffect(() => void refreshPlugins(), []);
  return tabsOf(known).map((plugin) => ({
    name: `plugins/${plugin.name}`, label: labelOf(plugin), icon: "plugins", draw: () => (plugin.widget ? html`<${Mounted} plugin=${plugin} kind="frame" />` : html`<${PluginIcon} plugin=${plugin} />`),
  }));
}
