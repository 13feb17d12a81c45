// Plugins: what was found, enabling and disabling it, and the pages of those that run.
/** @import { Route } from "../types/page.d.ts" */
import { html, useEffect, useStore, useStyle } from "../app/ui.js";
import { PluginList } from "./plugins/list.js";
import { PluginPage } from "./plugins/page.js";
import { plugins, refreshPlugins } from "./plugins/plugin_store.js";

/** @param {{ route: Route }} props */
export default function Plugins({ route }) {
  const ready = useStyle("views/plugins.css");
  const known = useStore(plugins);
  const [name] = route.parts;
  useEffect(() => void refreshPlugins(), [name]);
  if (!ready) return null;
  if (name) return html`<${PluginPage} key=${name} name=${name} known=${known} />`;
  return html`<${PluginList} known=${known} />`;
}
