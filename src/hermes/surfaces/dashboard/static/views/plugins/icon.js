// The icon of a plugin: a character, a picture of a plugin that runs, or a plug.
import { Icon } from "../../app/parts/basics.js";
import { html } from "../../app/ui.js";
import { fileOf } from "./known.js";

export function PluginIcon({ plugin, size = 22 }) {
  const { icon } = plugin;
  if (/\.(svg|png|jpg|webp)$/.test(icon)) {
    return plugin.state === "enabled" ? html`<img class="plugin-icon" src=${fileOf(plugin, icon)} alt="" width=${size} height=${size} />` : html`<${Icon} name="plugins" size=${size} />`;
  }
  return icon && [...icon].length <= 2 ? html`<span class="plugin-icon" aria-hidden="true" style=${{ fontSize: `${size - 4}px`, width: `${size}px` }}>${icon}</span>` : html`<${Icon} name="plugins" size=${size} />`;
}
