// Part of a long text, drawn only near what is seen; elsewhere it is a gap of the same height. A reply of 300 KB would
// otherwise be 50,000 elements, which take memory and are laid out again with each piece that comes. In a gap are only
// the words, hidden, so that the browser's search (Ctrl F) finds them.
/** @import { Child, Ref } from "../../types/page.d.ts" */
import { html, useEffect, useElement, useLayoutEffect, useMemo, useRef, useState } from "../ui.js";

const NEAR_PX = 1000; // pixels above and below what is seen
let pxPerChar = 0.4; // as measured last, to guess the height of what was never drawn

/** @typedef {(entry: IntersectionObserverEntry) => void} Look */

/** @typedef {{ observer: IntersectionObserver, looks: Map<Element, Look> }} Watch */

/** @type {WeakMap<Element, Watch>} */
const watches = new WeakMap(); // one observer for each scroller: the browser asks each of them in every frame

/** @param {Element} scroller */
function watchOf(scroller) {
  const known = watches.get(scroller);
  if (known) return known;
  /** @type {Map<Element, Look>} */
  const looks = new Map();
  const look = (/** @type {IntersectionObserverEntry[]} */ entries) => {
    for (const entry of new Map(entries.map((one) => [one.target, one])).values())
      looks.get(entry.target)?.(entry);
  };
  const observer = new IntersectionObserver(look, {
    root: scroller,
    rootMargin: `${NEAR_PX}px 0px`,
  });
  const watch = { observer, looks };
  watches.set(scroller, watch);
  return watch;
}

/**
 * Calls `look` when a part comes near what is seen, or is no longer near. Returns a function that ends this.
 * @param {Element} scroller
 * @param {Element} part
 * @param {Look} look
 */
function watchNear(scroller, part, look) {
  const { observer, looks } = watchOf(scroller);
  looks.set(part, look);
  observer.observe(part);
  return () => {
    observer.unobserve(part);
    looks.delete(part);
  };
}

/**
 * `draw` makes the content. Where nothing scrolls, it is always drawn. `chars` is how long it is; `isNew` says that it
 * came at the end of what is read, so it is drawn at first; `isGrowing` that more of it is to come, so it stays drawn.
 * `words` gives its text for the browser's search.
 * @param {{ draw: () => Child, words: () => string, chars: number, isNew?: boolean, isGrowing?: boolean }} props
 */
export function Distant({ draw, words, chars, isNew = false, isGrowing = false }) {
  const box = /** @type {Ref<HTMLElement>} */ (useElement());
  const [isNear, setIsNear] = useState(isNew);
  const gapPx = useRef(0);
  const drawn = useRef(isNear);
  drawn.current = isNear;
  useEffect(() => {
    if (isGrowing) return;
    const scroller = box.current.closest(".scroll");
    if (!scroller) return void setIsNear(true);
    return watchNear(scroller, box.current, (entry) => {
      const { height } = entry.boundingClientRect;
      if (drawn.current && !entry.isIntersecting) {
        gapPx.current = height;
        pxPerChar = height / Math.max(1, chars);
      }
      setIsNear(entry.isIntersecting);
    });
  }, [isGrowing]);
  const first = useRef(true);
  useLayoutEffect(() => {
    const scroller = box.current.closest(".scroll");
    const isFirst = first.current;
    first.current = false;
    if (!isNear || !scroller || isFirst) return;
    // Above what is read, another height than the gap's would move it.
    const { top, height } = box.current.getBoundingClientRect();
    const was = gapPx.current || guess(chars);
    if (top < scroller.getBoundingClientRect().top) scroller.scrollTop += height - was;
  }, [isNear]);
  const style = isNear ? undefined : `height: ${gapPx.current || guess(chars)}px`;
  return html`
    <div ref=${box} class="md-group" style=${style}>
      ${isNear ? draw() : html`<${Unseen} words=${words} onFound=${() => setIsNear(true)} />`}
    </div>
  `;
}

/**
 * The words of a gap. A browser that finds some of them says so first, and scrolls there afterwards.
 * @param {{ words: () => string, onFound: () => void }} props
 */
function Unseen({ words, onFound }) {
  const text = useMemo(words, []);
  return html`<div class="md-unseen" hidden="until-found" onBeforeMatch=${onFound}>${text}</div>`;
}

/** @param {number} chars */
function guess(chars) {
  return Math.round(chars * pxPerChar);
}
