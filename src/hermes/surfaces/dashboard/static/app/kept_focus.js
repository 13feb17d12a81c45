// Keeps the focus near where somebody works. An element that has it can go away: a request that was answered, a row
// that was deleted, a view that was left. The browser then gives the focus to the page as a whole, so that Tab and a
// screen reader would begin again somewhere else.
import { messageField } from "./keys.js";
import { afterFrame } from "./ui.js";

const CONTROLS =
  "a[href], :is(button, input, select, textarea):not(:disabled), summary, [tabindex='0']";
const QUESTION = ".asking"; // a second press of the same key must not answer the next one
const POINTS = matchMedia("(hover: hover)"); // elsewhere a focused field opens a keyboard on the screen

/** @typedef {{ element: Element, place: number }} Step an element, and which of its children leads to the focus */

/** @type {Step[]} */
let path = []; // from the element that has the focus to the page
let isWriting = false; // that element is the message field

/** Begins to watch the page. */
export function keepFocus() {
  document.addEventListener("focusin", ({ target }) => {
    path = target instanceof Element && target !== document.body ? stepsTo(target) : [];
    isWriting = target === messageField();
  });
  document.addEventListener("pointerdown", () => (path = []), { capture: true });
  new MutationObserver(() => isLost() && afterFrame(restore)).observe(document.body, {
    childList: true,
    subtree: true,
  });
}

/** @param {Element} target */
function stepsTo(target) {
  const steps = [{ element: target, place: 0 }];
  for (let one = target; one.parentElement; one = one.parentElement)
    steps.push({
      element: one.parentElement,
      place: [...one.parentElement.children].indexOf(one),
    });
  return steps;
}

/** Whether nothing that a person uses has the focus. */
export function isFocusFree() {
  const { activeElement } = document;
  return activeElement === document.body || activeElement?.id === "main";
}

function isLost() {
  return path.length > 0 && !path[0].element.isConnected;
}

function restore() {
  if (!isLost() || document.activeElement !== document.body) return; // somebody else took it
  const left = path.slice(path.findIndex(({ element }) => element.isConnected));
  path = [];
  const near = fieldNear(left[0].element) ?? (isWriting ? null : controlNear(left)); // another field may follow
  (near ?? document.getElementById("main"))?.focus({ preventScroll: true });
}

/**
 * The message field, if the focus was in the same conversation.
 * @param {Element} element
 */
function fieldNear(element) {
  const field = messageField();
  const isNear = field?.form?.parentElement?.contains(element);
  return isNear && POINTS.matches ? field : null;
}

/**
 * The control that took the place, or else the last one before it, in the nearest part of the view that has any.
 * @param {Step[]} steps
 * @returns {HTMLElement | null}
 */
function controlNear(steps) {
  for (const { element, place } of steps) {
    if (!element.closest("#main") || element.id === "main") return null;
    const controls = [...element.querySelectorAll(CONTROLS)].filter(
      (one) => one.checkVisibility() && !one.closest(QUESTION),
    );
    const next = element.children[place];
    const found = controls.find((one) => next && !isBefore(one, next)) ?? controls.at(-1);
    if (found instanceof HTMLElement) return found;
  }
  return null;
}

/** @param {Element} one @param {Element} other */
function isBefore(one, other) {
  return Boolean(one.compareDocumentPosition(other) & Node.DOCUMENT_POSITION_FOLLOWING);
}
