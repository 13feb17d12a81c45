// The icon of a plugin: a character, a picture of a plugin that runs, or a plug.
/** @import { PluginRow } from "../../types/page.d.ts" */
import { Icon } from "../../app/parts/basics.js";
import { html } from "../../app/ui.js";
import { fileOf } from "./plugin_store.js";

const PICTURE = /\.(svg|png|jpg|webp)$/;

/**
 * Plugins for the original agent name an icon of Lucide; ours that mean the same.
 * @type {Record<string, string>}
 */
const NAMED = {
  Activity: "live",
  Clock: "clock",
  Eye: "eye",
  FileText: "file",
  Globe: "globe",
  KeyRound: "key",
  MessageSquare: "chat",
  Settings: "settings",
  Shield: "lock",
  Terminal: "terminal",
  Wrench: "tool",
  Zap: "bolt",
};

/** @param {{ plugin: PluginRow, size?: number }} props */
export function PluginIcon({ plugin, size = 22 }) {
  const { icon } = plugin;
  if (PICTURE.test(icon) && plugin.state === "enabled") {
    return html`<img class="plugin-icon" src=${fileOf(plugin, icon)} alt="" width=${size} height=${size} />`;
  }
  if (icon && [...icon].length <= 2) {
    const style = { fontSize: `${size - 4}px`, width: `${size}px` };
    return html`<span class="plugin-icon" aria-hidden="true" style=${style}>${icon}</span>`;
  }
  return html`<${Icon} name=${NAMED[icon] ?? "plugins"} size=${size} />`;
}
