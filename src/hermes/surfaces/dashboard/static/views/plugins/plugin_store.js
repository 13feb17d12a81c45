// The plugins the page knows of, for the view and for the tabs in the navigation.
/** @import { KnownPlugins, PluginRow } from "../../types/page.d.ts" */
import { api, asFailure, Latest } from "../../app/api.js";
import { Store } from "../../app/ui.js";

/** {list, error}; `list` is null until it was asked for. */
export const plugins = new Store(/** @type {KnownPlugins} */ ({ list: null, error: null }));

const refreshes = new Latest();

/**
 * Asks again. The answer to a change of a plugin can be given instead. An answer that is out of date is ignored.
 * @param {{ plugins: PluginRow[] } | null} [answer]
 */
export async function refreshPlugins(answer = null) {
  const isLatest = refreshes.begin();
  try {
    const { plugins: list } = answer ?? (await api.get("/api/plugins"));
    if (isLatest()) plugins.set({ list, error: null });
  } catch (error) {
    if (isLatest()) plugins.set({ ...plugins.value, error: asFailure(error) });
  }
}

/**
 * Those that run and have a page of their own.
 * @param {KnownPlugins} known
 */
export function tabsOf({ list }) {
  return (list ?? []).filter((one) => one.state === "enabled" && one.tab && one.entry);
}

/**
 * Those that run and have something small to show.
 * @param {KnownPlugins} known
 */
export function widgetsOf({ list }) {
  return (list ?? []).filter(
    (one) => one.state === "enabled" && !one.tab && one.entry && !one.uses_sdk,
  );
}

/**
 * Those that run and are written for the SDK of the original agent.
 * @param {KnownPlugins} known
 */
export function sdkPluginsOf({ list }) {
  return (list ?? []).filter((one) => one.state === "enabled" && one.uses_sdk && one.entry);
}

/** @param {PluginRow} plugin */
export function labelOf(plugin) {
  return plugin.label || plugin.name;
}

/**
 * A file of a running plugin. Its hash is in the address, so that a changed plugin is loaded anew.
 * @param {PluginRow} plugin
 * @param {string} file
 */
export function fileOf(plugin, file) {
  return `/plugins/${plugin.name}/${file.split("/").map(encodeURIComponent).join("/")}?v=${plugin.hash.slice(0, 16)}`;
}
