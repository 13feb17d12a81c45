// Plugins with a page of their own, as places in the navigation.
import { html, useEffect, useStore } from "../../app/ui.js";
import { PluginIcon } from "./icon.js";
import { labelOf, plugins, refreshPlugins, tabsOf } from "./known.js";

/** Entries like those of the table of views; `draw` gives the icon. */
export function usePluginTabs() {
  const known = useStore(plugins);
  useEffect(() => void refreshPlugins(), []);
  return tabsOf(known).map((plugin) => ({
    name: `plugins/${plugin.name}`, label: labelOf(plugin), icon: "plugins", draw: () => html`<${PluginIcon} plugin=${plugin} />`,
  }));
}
