// A long list of which only the visible rows are drawn. All rows have the same height.
/** @import { Child, Ref } from "../types/page.d.ts" */
import { html, useEffect, useElement, useLayoutEffect, useRef, useState } from "../app/ui.js";

const SPARE_ROWS = 8; // rows drawn beyond either edge

/**
 * @template T
 * @typedef {object} RowsProps
 * @property {T[]} items
 * @property {(item: T, index: number) => Child} row
 * @property {number} height
 * @property {boolean} [stick]
 * @property {number} [shifted]
 * @property {number} [reveal]
 * @property {number} [mark]
 * @property {string} label
 * @property {string} [class]
 */

/**
 * `row(item, index)` draws one. `stick` keeps the end in sight until the user scrolls away. `shifted` says how many
 * rows were let go at the front so far, so that what is being read stays where it is. `reveal` is the index to bring
 * into sight, once for each `mark`.
 * @template T
 * @param {RowsProps<T>} props
 */
export function Rows({
  items,
  row,
  height,
  stick = false,
  shifted = 0,
  reveal = -1,
  mark = reveal,
  label,
  ...rest
}) {
  const { class: more = "", ...others } = rest;
  const box = /** @type {Ref<HTMLElement>} */ (useElement());
  const [view, setView] = useState({ top: 0, room: 600 });
  const atEnd = useRef(true);
  const gone = useRef(shifted);
  const look = () => {
    if (!box.current) return; // a last event of a list that is gone
    const { scrollTop, clientHeight, scrollHeight } = box.current;
    atEnd.current = scrollHeight - scrollTop - clientHeight < height;
    const next = { top: scrollTop, room: clientHeight };
    setView((was) => (was.top === next.top && was.room === next.room ? was : next));
  };
  useEffect(() => {
    const watcher = new ResizeObserver(look);
    watcher.observe(box.current);
    return () => watcher.disconnect();
  }, []);
  useLayoutEffect(() => {
    const lost = shifted - gone.current;
    gone.current = shifted;
    if (stick && atEnd.current) box.current.scrollTop = box.current.scrollHeight;
    else if (lost > 0) box.current.scrollTop = Math.max(0, box.current.scrollTop - lost * height);
  }, [items.length, shifted, stick, items]);
  useLayoutEffect(() => {
    if (reveal < 0) return;
    const { scrollTop, clientHeight } = box.current;
    const top = reveal * height;
    const isSeen = top >= scrollTop && top + height <= scrollTop + clientHeight;
    if (!isSeen) box.current.scrollTop = top - (clientHeight - height) / 2;
    look();
  }, [mark]);
  const first = Math.max(0, Math.floor(view.top / height) - SPARE_ROWS);
  const last = Math.min(items.length, Math.ceil((view.top + view.room) / height) + SPARE_ROWS);
  return html`
    <div
      ref=${box}
      class=${`rows ${more}`}
      role="group"
      tabindex="0"
      aria-label=${label}
      onScroll=${look}
      ...${others}
    >
      <div class="rows-all" style=${{ height: `${items.length * height}px` }}>
        <div class="rows-shown" style=${{ transform: `translateY(${first * height}px)` }}>
          ${items.slice(first, last).map((item, index) => row(item, first + index))}
        </div>
      </div>
    </div>
  `;
}
