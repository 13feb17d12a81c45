// Light, dark, high contrast, or the system's theme. `initial_theme.js` applies a choice before the first paint.
import { t } from "./translation.js";
import { kept, Store } from "./ui.js";

const ORDER = ["auto", "light", "dark", "contrast"];

export const theme = new Store(kept.get("theme") ?? "auto");

/** What each theme is called on a button. */
export const THEME_NAMES = /** @type {Record<string, string>} */ ({
  auto: t("automatic"),
  light: t("light"),
  dark: t("dark"),
  contrast: t("high contrast"),
});

function wantsContrast() {
  return matchMedia("(prefers-contrast: more)").matches;
}

/** @param {string} name */
export function chooseTheme(name) {
  kept.set("theme", name === "auto" ? null : name);
  const shown = name === "auto" && wantsContrast() ? "contrast" : name;
  if (shown === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = shown;
  theme.set(name);
}

export function nextTheme() {
  chooseTheme(ORDER[(ORDER.indexOf(theme.value) + 1) % ORDER.length]);
}
