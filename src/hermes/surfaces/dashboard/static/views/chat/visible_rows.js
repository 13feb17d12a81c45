// The reading position in a long list: which rows are drawn, without moving what is read. Rows are drawn around that
// position only; at the end, the newest stay visible.
/** @import { CallGroupRow, Goal, Item, Ref, UndoneRow } from "../../types/page.d.ts" */
import { tryTo } from "../../app/parts.js";
import {
  useEffect,
  useElement,
  useLayoutEffect,
  useRef,
  useScreenfulFirst,
  useState,
} from "../../app/ui.js";

const STEP_ROWS = 60; // rows that are drawn, and more at a time
const SCREENFUL_ROWS = 24; // rows that are drawn before all others
const MOST_ROWS = 240; // rows that are drawn at once
const NEAR_PX = 60; // pixels from the end that count as being there
const AHEAD_PX = 800; // pixels before an edge comes into sight, its rows are made ready

/** @typedef {Item | UndoneRow | CallGroupRow} Row */

/** @typedef {{ row: Element, top: number }} Anchor */

/**
 * @typedef {object} Refs
 * @property {Ref<HTMLElement>} box
 * @property {Ref<HTMLElement>} inner
 * @property {Ref<HTMLElement | null>} top
 * @property {Ref<HTMLElement | null>} bottom
 */

/**
 * @typedef {object} ScrollState
 * @property {Ref<boolean>} held
 * @property {Ref<{ rows: Row[], first: number, last: number }>} now
 * @property {() => void} leave
 * @property {(away: boolean) => void} setAway
 */

/**
 * @typedef {object} GoalActions
 * @property {Ref<HTMLElement>} box
 * @property {(row: Row) => void} move
 * @property {(seq?: number) => void} more
 * @property {() => void} leave
 * @property {() => void} jump
 */

/**
 * {box, inner, top, bottom: refs; drawn, isBegin, isEnd; away, busy, jump, earlier}. `first` is the row that the list
 * begins with; if it is not 1, `read(seq)` gets more of them. `goal` is a place to go to: {seq, isFound}, with Infinity
 * for the end.
 * @param {Row[]} rows
 * @param {{ first: number, read: (seq?: number) => Promise<void>, goal: Goal | null }} options
 */
export function useVisibleRows(rows, { first: known, read, goal }) {
  const refs = /** @type {Refs} */ ({
    box: useElement(),
    inner: useElement(),
    top: useElement(),
    bottom: useElement(),
  });
  const held = useRef(true); // the end is to be kept in sight
  const place = useRef(/** @type {Anchor | null | undefined} */ (null)); // what is to stay where it is
  // The first row that is drawn; null while the end is shown.
  const [from, setFrom] = useState(/** @type {Row | null} */ (null));
  const [away, setAway] = useState(false);
  const [busy, setBusy] = useState(false);
  const least = useScreenfulFirst(STEP_ROWS, SCREENFUL_ROWS);
  const { first, last } = extent(rows, from, held.current, least);
  const now = useRef({ rows, first, last });
  now.current = { rows, first, last };
  /** @param {Row} row */
  const move = (row) => {
    place.current = held.current ? null : placeOf(refs);
    setFrom(row);
  };
  /** @param {number} [seq] */
  const more = async (seq) => {
    setBusy(true);
    await tryTo(() => read(seq));
    setBusy(false);
  };
  const earlier = () => {
    if (first > 0) move(rows[Math.max(0, first - STEP_ROWS)]);
    if (first <= STEP_ROWS && known > 1) more();
  };
  const leave = () => {
    held.current = false;
    place.current = null;
    setFrom(now.current.rows[now.current.first] ?? null);
  };
  const jump = () => {
    held.current = true;
    setFrom(null);
    setAway(false);
    toEnd(refs.box.current);
  };
  useLayoutEffect(() => {
    if (held.current) toEnd(refs.box.current);
    else if (place.current) restore(refs, place.current);
    place.current = null;
  }, [from]);
  useScrolling(refs, { held, now, leave, setAway });
  useGoal(goal, { rows, first, last, known }, { box: refs.box, move, more, leave, jump });
  useEdges(refs, [from, first, last, rows.length, known], (edge) => {
    if (held.current) return;
    if (edge === refs.top.current) earlier();
    else if (last < rows.length) move(rows[first + STEP_ROWS]);
  });
  return {
    ...refs,
    drawn: rows.slice(first, last),
    isBegin: first === 0 && known === 1,
    isEnd: last === rows.length,
    away,
    busy,
    jump,
    earlier: () => {
      if (held.current) leave();
      earlier();
    },
  };
}

/**
 * Which rows are drawn: at the end the last ones, elsewhere those behind `from`.
 * @param {Row[]} rows
 * @param {Row | null} from
 * @param {boolean} held
 * @param {number} least at the end
 */
function extent(rows, from, held, least) {
  const same = from ? rows.findIndex((row) => row.key === from.key) : -1;
  const at = from && same < 0 ? rows.findIndex((row) => row.seq >= from.seq) : same; // it may have been folded away
  if (at < 0) return { first: Math.max(0, rows.length - least), last: rows.length };
  const first = held ? Math.max(at, rows.length - MOST_ROWS) : at;
  return { first, last: Math.min(rows.length, first + MOST_ROWS) };
}

/**
 * Follows the end while the reader is there, and notes when they leave it. A new width moves nothing that is read.
 * @param {Refs} refs
 * @param {ScrollState} state
 */
function useScrolling({ box, inner }, { held, now, leave, setAway }) {
  useEffect(() => {
    const element = box.current;
    let before = element.scrollTop;
    let width = element.clientWidth;
    let place = /** @type {Anchor | null | undefined} */ (null);
    const look = () => {
      const rest = element.scrollHeight - element.scrollTop - element.clientHeight;
      const isEnd = now.current.last === now.current.rows.length;
      // Only the user moves up; growing content makes the rest longer without that.
      if (element.scrollTop < before - 2 && rest > NEAR_PX) held.current && leave();
      else if (rest <= NEAR_PX && isEnd) held.current = true;
      before = element.scrollTop;
      place = held.current ? null : placeOf({ box, inner });
      setAway(!held.current);
    };
    const follow = () => {
      if (!held.current && place && element.clientWidth !== width) restore({ box }, place);
      width = element.clientWidth;
      if (held.current) toEnd(element);
      else look();
    };
    element.addEventListener("scroll", look, { passive: true });
    const sizes = new ResizeObserver(follow);
    sizes.observe(inner.current);
    sizes.observe(element);
    return () => {
      element.removeEventListener("scroll", look);
      sizes.disconnect();
    };
  }, []);
}

/**
 * Brings a row into sight, reading and drawing what that takes.
 * @param {Goal | null} goal
 * @param {{ rows: Row[], first: number, last: number, known: number }} list
 * @param {GoalActions} actions
 */
function useGoal(goal, { rows, first, last, known }, { box, move, more, leave, jump }) {
  const reached = useRef(/** @type {Goal | null} */ (null));
  useEffect(() => {
    if (!goal || reached.current === goal) return;
    if (known > goal.seq) return void more(goal.seq);
    const at = indexOf(rows, goal.seq);
    if (at < 0 && goal.seq !== Infinity) return; // it is still to come
    if (at >= 0) leave();
    if (at >= 0 && (at < first || at >= last)) return void move(rows[Math.max(0, at - 10)]);
    reached.current = goal;
    if (at < 0) return void jump();
    const row = box.current.querySelector(`[data-key="${CSS.escape(rows[at].key)}"]`);
    if (!row) return;
    if (goal.isFound) row.classList.add("found");
    row.scrollIntoView({ block: goal.isFound ? "center" : "end" });
  }, [goal, rows, first, last]);
}

/**
 * The row that shows a row of the log, or else the next one.
 * @param {Row[]} rows
 * @param {number} seq
 */
function indexOf(rows, seq) {
  /**
   * @param {Row} row
   * @returns {boolean}
   */
  const shows = (row) =>
    row.seq === seq ||
    ("result" in row && row.result === seq) ||
    ("group" in row && row.group.some(shows));
  const at = rows.findIndex(shows);
  return at < 0 ? rows.findIndex((row) => row.seq > seq) : at;
}

/**
 * Says when the first or the last drawn row comes near.
 * @param {Refs} refs
 * @param {unknown[]} changes
 * @param {(edge: Element) => void} reached
 */
function useEdges({ box, top, bottom }, changes, reached) {
  useEffect(() => {
    const near = new IntersectionObserver(
      (entries) => {
        for (const entry of entries) if (entry.isIntersecting) reached(entry.target);
      },
      { root: box.current, rootMargin: `${AHEAD_PX}px 0px` },
    );
    for (const mark of [top.current, bottom.current]) if (mark) near.observe(mark);
    return () => near.disconnect();
  }, changes);
}

/** @param {Element} box */
function toEnd(box) {
  box.scrollTop = box.scrollHeight;
}

/**
 * The first row in sight, and where it is.
 * @param {Pick<Refs, "box" | "inner">} refs
 * @returns {Anchor | undefined}
 */
function placeOf({ box, inner }) {
  const edge = box.current.getBoundingClientRect().top;
  const row = [...inner.current.querySelectorAll(":scope > .item")].find(
    (one) => one.getBoundingClientRect().bottom > edge,
  );
  return row && { row, top: row.getBoundingClientRect().top };
}

/**
 * @param {Pick<Refs, "box">} refs
 * @param {Anchor} anchor
 */
function restore({ box }, { row, top }) {
  if (row.isConnected) box.current.scrollTop += row.getBoundingClientRect().top - top;
}
