// Keys and commands that hold while a component is shown. The key help and the palette list exactly these.
import { Store, useLayoutEffect, useRef } from "./ui.js";

const SECOND_KEY = 1500; // milliseconds

/** Every binding that holds: {keys?, label, group, run, typing?, hidden?}. */
export const bindings = new Store([]);

/**
 * Bindings while the component is shown. `keys` is such as "g c", "?", "Escape", "Mod+k"; without it, the palette alone
 * shows the command. Plain keys are left alone while the user types, unless `typing` is set.
 */
export function useKeys(list) {
  const current = useRef(list);
  current.current = list;
  const shape = list.map((one) => `${one.keys}|${one.label}`).join("\n");
  // Before the browser paints: a key that is shown works.
  useLayoutEffect(() => {
    const mine = current.current.map((one, index) => ({ ...one, run: (event) => current.current[index]?.run(event) }));
    bindings.set([...mine, ...bindings.value]);
    return () => bindings.set(bindings.value.filter((one) => !mine.includes(one)));
  }, [shape]);
}

let pending = { key: "", at: 0 };

/** Listens to the whole page. */
export function listen() {
  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing) return;
    const name = nameOf(event);
    const typing = isTyping(event.target);
    const sequence = Date.now() - pending.at < SECOND_KEY ? `${pending.key} ${name}` : "";
    const open = document.querySelector("dialog[open]");
    const find = (keys) => bindings.value.find(
      (one) => one.keys === keys && (!typing || one.typing || name.startsWith("Mod+")) && (!open || one.inDialogs),
    );
    // "g c" goes before a "c" of the view.
    const found = (sequence && find(sequence)) || find(name);
    pending = { key: name, at: typing ? 0 : Date.now() };
    if (!found || found.run(event) === false) return;
    pending = { key: "", at: 0 };
    event.preventDefault();
  });
}

function nameOf(event) {
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  if (event.ctrlKey || event.metaKey) return `Mod+${event.shiftKey ? "Shift+" : ""}${key}`;
  // With Alt, some keyboards give another sign; the place of the key is meant.
  if (event.altKey) return `Alt+${event.code.startsWith("Key") ? event.code.slice(3).toLowerCase() : key}`;
  return event.key.length > 1 && event.shiftKey ? `Shift+${key}` : key;
}

function isTyping(target) {
  return target instanceof HTMLElement && (target.isContentEditable ||
    /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

const isMac = /Mac|iPhone|iPad/.test(navigator.platform);

/** Keys as people read them: ["Ctrl", "K"]. */
export function shown(keys) {
  return keys
    .split(" ")
    .flatMap((part) => part.split("+"))
    .map((key) => ({ Mod: isMac ? "⌘" : "Ctrl", Escape: "Esc", ArrowUp: "↑",
      ArrowDown: "↓" })[key] ?? (key.length === 1 ? key.toUpperCase() : key));
}
