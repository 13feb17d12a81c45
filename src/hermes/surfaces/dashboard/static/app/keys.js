// Keys and commands that are active while a component is shown. The key help and the palette list exactly these.
//
// A key without a modifier may only move the selection or open something: whatever allows, denies, undoes, runs or
// deletes needs a modifier or a focused button. Where there is a message field, such keys are typed into it.
/** @import { Binding, Ref } from "../types/page.d.ts" */
import { kept, Store, useLayoutEffect, useRef, useStore } from "./ui.js";

const SECOND_KEY_MS = 1500; // milliseconds

/** Every binding of what is shown: {keys?, label, group, run, typing?, hidden?}. See `holds`. */
export const bindings = new Store(/** @type {Binding[]} */ ([]));

/** Whether keys without a modifier are shortcuts. People who use dictation turn them off. */
export const singleKeys = new Store(kept.get("keys.single") !== "off");

/** The field that receives text typed outside of any field: {current}, or null. */
const composer = new Store(/** @type {Ref<HTMLTextAreaElement> | null} */ (null));

export function toggleSingleKeys() {
  kept.set("keys.single", singleKeys.value ? "off" : null);
  singleKeys.set(!singleKeys.value);
}

/**
 * While the component is shown, what is typed outside of fields goes into the field of this ref.
 * @param {Ref<HTMLTextAreaElement>} field
 */
export function useComposer(field) {
  useLayoutEffect(() => {
    composer.set(field);
    return () => composer.value === field && composer.set(null);
  }, [field]);
}

/** The field that `useComposer` named, while it is shown. */
export function messageField() {
  return composer.value?.current ?? null;
}

/** Every binding whose keys are active now. */
export function useBindings() {
  const list = useStore(bindings);
  useStore(singleKeys);
  useStore(composer);
  return list.map((one) => (isActive(one) ? one : { ...one, keys: undefined }));
}

/** @param {{ keys?: string }} binding */
function isActive({ keys }) {
  return !isSingle(keys) || (singleKeys.value && !composer.value);
}

/** Whether keys are signs alone, without Ctrl, Alt and the like: "j", "?", "g c". */
function isSingle(keys = "") {
  return keys === " " || (keys !== "" && keys.split(" ").every((key) => key.length === 1));
}

/**
 * Bindings while the component is shown. `keys` is such as "g c", "?", "Escape", "Mod+k"; without it, the palette alone
 * shows the command. Plain keys are left alone while the user types, unless `typing` is set.
 * @param {Binding[]} list
 */
export function useKeys(list) {
  const current = useRef(list);
  current.current = list;
  const shape = list.map((one) => `${one.keys}|${one.label}`).join("\n");
  // Before the browser paints: a key that is shown works.
  useLayoutEffect(() => {
    const mine = current.current.map((one, index) => ({
      ...one,
      run: (/** @type {Event} */ event) => current.current[index]?.run(event),
    }));
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
    const sequence = Date.now() - pending.at < SECOND_KEY_MS ? `${pending.key} ${name}` : "";
    const open = document.querySelector("dialog[open]");
    if (composer.value?.current && !open && isText(event) && !takesText(event.target)) {
      return void continueIn(composer.value.current);
    }
    /** @param {string} keys */
    const find = (keys) =>
      bindings.value.find(
        (one) =>
          one.keys === keys &&
          isActive(one) &&
          (!typing || one.typing || name.startsWith("Mod+")) &&
          (!open || one.inDialogs),
      );
    // "g c" takes precedence over a "c" of the view.
    const found = (sequence && find(sequence)) || find(name);
    pending = { key: name, at: typing ? 0 : Date.now() };
    if (!found || found.run(event) === false) return;
    pending = { key: "", at: 0 };
    event.preventDefault();
  });
}

/** @param {KeyboardEvent} event */
function nameOf(event) {
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  if (event.ctrlKey || event.metaKey) return `Mod+${event.shiftKey ? "Shift+" : ""}${key}`;
  // With Alt, some keyboards produce another character, so the physical key counts.
  if (event.altKey)
    return `Alt+${event.code.startsWith("Key") ? event.code.slice(3).toLowerCase() : key}`;
  return event.key.length > 1 && event.shiftKey ? `Shift+${key}` : key;
}

/**
 * @param {EventTarget | null} target
 * @returns {target is HTMLElement}
 */
function isTyping(target) {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  );
}

/**
 * Whether a key types a character. A space does so only in a field; elsewhere it presses buttons and scrolls.
 * @param {KeyboardEvent} event
 */
function isText(event) {
  const modified =
    (event.ctrlKey || event.metaKey || event.altKey) && !event.getModifierState("AltGraph");
  return event.key.length === 1 && event.key !== " " && !modified;
}

/**
 * Whether an event happened inside an element that matches.
 * @param {Event} event
 * @param {string} selector
 */
export function isWithin(event, selector) {
  return event.target instanceof Element && event.target.closest(selector) !== null;
}

/**
 * Whether an element does something with letters itself: fields, and lists that are chosen from by typing.
 * @param {EventTarget | null} target
 */
function takesText(target) {
  return (
    isTyping(target) &&
    !/^(checkbox|radio|button|submit|reset|range|color|file)$/.test(
      /** @type {HTMLInputElement} */ (target).type ?? "",
    )
  );
}

/**
 * Puts the cursor at the end of a field; the browser writes the sign there.
 * @param {HTMLTextAreaElement} field
 */
function continueIn(field) {
  pending = { key: "", at: 0 };
  field.focus();
  field.setSelectionRange(field.value.length, field.value.length);
}

const isMac = /Mac|iPhone|iPad/.test(navigator.platform);

/**
 * Keys as people read them: ["Ctrl", "K"].
 * @param {string} keys
 */
export function shown(keys) {
  return keys
    .split(" ")
    .flatMap((part) => part.split("+"))
    .map(
      (key) =>
        ({ Mod: isMac ? "⌘" : "Ctrl", Escape: "Esc", ArrowUp: "↑", ArrowDown: "↓" })[key] ??
        (key.length === 1 ? key.toUpperCase() : key),
    );
}
