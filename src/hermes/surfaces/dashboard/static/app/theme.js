// Light, dark, or the system's theme. `initial_theme.js` applies a choice before the first paint.
import { kept, Store } from "./ui.js";

const ORDER = ["auto", "light", "dark"];

export const theme = new Store(kept.get("theme") ?? "auto");

/** @param {string} name */
export function chooseTheme(name) {
  kept.set("theme", name === "auto" ? null : name);
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  theme.set(name);
}

export function nextTheme() {
  chooseTheme(ORDER[(ORDER.indexOf(theme.value) + 1) % ORDER.length]);
}
