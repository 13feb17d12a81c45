// Loads what a view shows again: after events, and every few seconds for changes without one.
/** @import { HermesEvent } from "../types/page.d.ts" */
import { BusFeed } from "../app/feed.js";
import { Store, useEffect, useRef, useState } from "../app/ui.js";

const SETTLE_MS = 150; // milliseconds; events come in groups
const LOOK_MS = 15_000; // milliseconds; limits and times change without an event

/**
 * The newest events on the bus that match a pattern, while the view is shown.
 * @param {string} pattern
 */
export function useBusEvents(pattern) {
  const [news] = useState(() => new Store(/** @type {HermesEvent[]} */ ([])));
  useEffect(() => {
    const feed = new BusFeed(pattern, { onEvents: (events) => news.set(events) });
    return () => feed.close();
  }, [news, pattern]);
  return news;
}

/**
 * Calls `reload` soon after something may have changed, and never while it is still loading.
 * @param {Store<HermesEvent[]>} news
 * @param {(event: HermesEvent) => boolean} concerns
 * @param {() => Promise<void>} reload
 */
export function useLiveReload(news, concerns, reload) {
  const latest = useRef(concerns);
  latest.current = concerns; // a new function with each drawing, for which nothing is set up anew
  useEffect(() => {
    let timer = 0;
    let isBusy = false;
    let isStale = false;
    let isGone = false;
    const soon = () => {
      isStale = true;
      if (!timer && !isBusy && !isGone) timer = window.setTimeout(load, SETTLE_MS);
    };
    const load = async () => {
      [timer, isBusy, isStale] = [0, true, false];
      try {
        await reload();
      } finally {
        isBusy = false;
        if (isStale) soon();
      }
    };
    const unwatch = news.watch((events) => events.some((one) => latest.current(one)) && soon());
    const look = () => document.visibilityState === "visible" && soon();
    const regularly = setInterval(look, LOOK_MS);
    document.addEventListener("visibilitychange", look);
    return () => {
      isGone = true;
      unwatch();
      clearTimeout(timer);
      clearInterval(regularly);
      document.removeEventListener("visibilitychange", look);
    };
  }, [news, reload]);
}
