// The page's colors as a terminal wants them: sixteen names, resolved to what the theme makes of them.

import { theme } from "../../app/theme.js";
import { Store } from "../../app/ui.js";

const NAMES = {
  background: "--bg",
  foreground: "--text",
  cursor: "--accent",
  cursorAccent: "--bg",
  black: "--raised",
  red: "--bad",
  green: "--good",
  yellow: "--warn",
  blue: "--blue",
  magenta: "--purple",
  cyan: "--cyan",
  white: "--text",
  brightBlack: "--muted",
  brightRed: "--bad",
  brightGreen: "--good",
  brightYellow: "--warn",
  brightBlue: "--blue",
  brightMagenta: "--purple",
  brightCyan: "--cyan",
  brightWhite: "--text",
};

function resolved() {
  const probe = document.createElement("span");
  probe.hidden = true;
  document.body.append(probe);
  /** @param {string} name */
  const read = (name) => {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  };
  const found = Object.fromEntries(
    Object.entries(NAMES).map(([name, property]) => [name, read(property)]),
  );
  probe.remove();
  const tint = found.cursor.replace(/^rgb\((.*)\)$/, "rgba($1, 0.32)");
  return { ...found, selectionBackground: tint, selectionInactiveBackground: tint };
}

/** What terminals are drawn in; changes with the page. */
export const colors = new Store(resolved());

const follow = () => colors.set(resolved());
theme.watch(follow);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", follow);
