// The place in a timeline, and moving it: by hand, by itself while it plays, along with a session that still runs.
/** @import { Step } from "../../types/page.d.ts" */
import { useEffect, useRef, useState } from "../../app/ui.js";

/** @typedef {ReturnType<typeof usePlayer>} Player */

const SHORTEST_MS = 60; // milliseconds that a step is shown
const LONGEST = 1500;

/**
 * `seq` is the row to begin at; without one it begins at the end. `moved` says whether the user has moved it.
 * @param {Step[]} steps
 * @param {{ ready: boolean, seq: number }} options
 */
export function usePlayer(steps, { ready, seq }) {
  const [place, setPlace] = useState({
    seq: /** @type {number | null} */ (seq || null),
    moved: false,
    playing: false,
  });
  const [speed, setSpeed] = useState(4);
  const last = steps.length - 1;
  // A place is a row, not a number: it stays when kinds are hidden or rows are added.
  const found = place.seq === null ? last : findRow(steps, place.seq);
  const at = Math.max(found, 0);
  const current = useRef({ steps, at, last });
  current.current = { steps, at, last };

  /** @param {number} index */
  const go = (index) => {
    const { steps: all, last: end } = current.current;
    const target = Math.min(Math.max(index, 0), end);
    // At the end, the place moves on with what is added.
    const row = target === end ? null : (all[target]?.seq ?? null);
    setPlace((was) => ({ seq: row, moved: true, playing: was.playing && target < end }));
  };
  const toggle = () => {
    const { steps: all, at: here, last: end } = current.current;
    setPlace((was) => {
      const from = !was.playing && here === end ? 0 : here;
      return { seq: all[from]?.seq ?? null, moved: true, playing: !was.playing && end > 0 };
    });
  };
  useEffect(() => {
    if (!place.playing || !ready) return undefined;
    const gap = ((steps[at + 1]?.ts ?? 0) - (steps[at]?.ts ?? 0)) * 1000;
    const timer = setTimeout(
      () => go(at + 1),
      Math.min(Math.max(gap / speed, SHORTEST_MS), LONGEST),
    );
    return () => clearTimeout(timer);
  }, [place.playing, at, speed, ready, steps.length]);
  return { at, go, toggle, playing: place.playing, moved: place.moved, speed, setSpeed };
}

/**
 * @param {Step[]} steps
 * @param {number} seq
 */
function findRow(steps, seq) {
  return steps.findLastIndex((step) => step.seq <= seq);
}
