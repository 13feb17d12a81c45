// The screens of all open terminals. They outlive the view, so that coming back is no loss.
import { Screen } from "./screen.js";

const screens = new Map(); // by terminal

export function screenOf(info) {
  if (!screens.has(info.id)) screens.set(info.id, new Screen(info));
  return screens.get(info.id);
}

/** Whether a program runs in it, as far as this page knows. */
export function isLive(id) {
  return screens.get(id)?.state.value === "live";
}

export function forget(id) {
  screens.get(id)?.close();
  screens.delete(id);
}
