// Listens to the bus for the inspector. Events are stored at once and drawn once per frame.
/** @import { FeedState, HermesEvent } from "../../types/page.d.ts" */
import { BusFeed } from "../../app/feed.js";
import { useEffect, useMemo, useRef, useState } from "../../app/ui.js";
import { Counters, EventBuffer } from "./event_buffer.js";
import { matcher } from "./pattern.js";

/**
 * {ring, counters, state, version, clear}. `version` changes at most once per frame of the screen. One feed of all
 * events stays open whatever the patterns are, and they are filtered here: no event is missed while a pattern changes.
 * @param {string[]} patterns
 */
export function useInspector(patterns) {
  const [held] = useState(() => ({ ring: new EventBuffer(), counters: new Counters() }));
  const current = useMemo(() => matcher(patterns), [patterns.join(" ")]);
  const fits = useRef(current);
  fits.current = current;
  const [version, setVersion] = useState(0);
  const [state, setState] = useState(/** @type {FeedState} */ ("connecting"));
  useEffect(() => {
    let frame = 0;
    const draw = () => {
      frame = 0;
      setVersion((was) => was + 1);
    };
    /** @param {HermesEvent[]} events */
    const take = (events) => {
      const { ring, counters } = held;
      const now = Date.now();
      for (const event of events) {
        if (event.type === "feed.hello") continue;
        if (event.type === "gap") ring.missed += event.dropped ?? 0;
        else if (!fits.current(event.type)) continue;
        ring.push(event);
        counters.add(event.type, now);
      }
      frame ||= requestAnimationFrame(draw);
    };
    const feed = new BusFeed("**", { onEvents: take, onState: setState });
    return () => {
      cancelAnimationFrame(frame);
      feed.close();
    };
  }, []);
  const clear = () => {
    held.ring.clear();
    held.counters = new Counters();
    setVersion((was) => was + 1);
  };
  return { ...held, state, version, clear };
}

/**
 * A number that grows every second while the page is seen, for rates that fall when nothing comes.
 * @param {number} [step]
 */
export function useSeconds(step = 1000) {
  const [count, setCount] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => document.hidden || setCount((was) => was + 1), step);
    return () => clearInterval(timer);
  }, [step]);
  return count;
}
