// The screens of all open terminals. They outlive the view, so that coming back is no loss.
/** @import { TerminalInfo } from "../../types/page.d.ts" */
import { Screen } from "./screen.js";

/** @type {Map<string, Screen>} */
const screens = new Map(); // by terminal

/**
 * @param {TerminalInfo} info
 * @returns {Screen}
 */
export function screenOf(info) {
  const screen = screens.get(info.id) ?? new Screen(info);
  screens.set(info.id, screen);
  return screen;
}

/**
 * Whether a program runs in it, as far as this page knows.
 * @param {string} id
 */
export function isLive(id) {
  return screens.get(id)?.state.value === "live";
}

/** @param {string} id */
export function forget(id) {
  screens.get(id)?.close();
  screens.delete(id);
}
