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
    position: plugin.position,
    draw: () => {
      if (plugin.widget) return html`<${LiveIcon} key=${plugin.name} plugin=${plugin} />`;
      return html`<${PluginIcon} plugin=${plugin} />`;
    },
  }));
}

/** Our views by the original's names of its pages. */
const PAGES = /** @type {Record<string, string>} */ ({
  skills: "learning",
  cron: "schedules",
  logs: "live",
  kanban: "board",
  config: "settings",
  env: "settings",
  models: "settings",
  mcp: "settings",
  analytics: "settings",
  system: "settings",
});

/**
 * The views with the tabs of plugins among them, each where its manifest wants it: "end", "after:skills" or
 * "before:cron". One that names a view that is not there comes at the end.
 * @param {View[]} views
 * @param {View[]} tabs
 */
export function withTabs(views, tabs) {
  const placed = [...views];
  for (const tab of tabs) {
    const [side, page = ""] = (tab.position ?? "").split(":");
    const at = placed.findIndex((view) => view.name === (PAGES[page] ?? page));
    if (at === -1 || (side !== "after" && side !== "before")) placed.push(tab);
    else placed.splice(side === "before" ? at : behindTabs(placed, at), 0, tab);
  }
  return placed;
}

/**
 * The place behind a view and the tabs that already follow it, so that plugins keep their order.
 * @param {View[]} placed
 * @param {number} at
 */
function behindTabs(placed, at) {
  let next = at + 1;
  while (next < placed.length && placed[next].position !== undefined) next += 1;
  return next;
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
