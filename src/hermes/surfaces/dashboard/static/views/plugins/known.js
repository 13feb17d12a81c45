// The plugins the page knows of, for the view and for the tabs in the navigation.
import { api } from "../../app/api.js";
import { Store } from "../../app/ui.js";

/** {list, error}; `list` is null until it was asked for. */
export const plugins = new Store({ list: null, error: null });

/** Asks again. An answer of a change to a plugin can be given instead. */
export async function refreshPlugins(answer = null) {
  try {
    plugins.set({ list: (answer ?? (await api.get("/api/plugins"))).plugins, error: null });
  } catch (error) {
    plugins.set({ ...plugins.value, error });
  }
}

/** Those that run and have a page of their own. */
export function tabsOf({ list }) {
  return (list ?? []).filter((one) => one.state === "enabled" && one.tab && one.entry);
}

/** Those that run and have something small to show. */
export function widgetsOf({ list }) {
  return (list ?? []).filter((one) => one.state === "enabled" && !one.tab && one.entry);
}

export function labelOf(plugin) {
  return plugin.label || plugin.name;
}

/** A file of a running plugin. Its hash is in the address, so that a changed plugin is loaded anew. */
export function fileOf(plugin, file) {
  return `/plugins/${plugin.name}/${file.split("/").map(encodeURIComponent).join("/")}?v=${plugin.hash.slice(0, 16)}`;
}
