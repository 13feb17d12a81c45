// Keeps the view up to date: by schedule events, and by polling for changes without an event.
/** @import { HermesEvent } from "../../types/page.d.ts" */
import { BusFeed } from "../../app/feed.js";
import { useEffect } from "../../app/ui.js";

const LOOK_MS = 10_000; // milliseconds; `hermes cron` and the clock change things without an event

/**
 * Calls `again` whenever something may have changed.
 * @param {() => unknown} again
 */
export function useRefresh(again) {
  useEffect(() => {
    const news = (/** @type {HermesEvent[]} */ events) =>
      events.some((event) => event.type !== "feed.hello") && again();
    const look = () => document.visibilityState === "visible" && again();
    const feed = new BusFeed("schedule.*", { onEvents: news });
    const timer = setInterval(look, LOOK_MS);
    document.addEventListener("visibilitychange", look);
    return () => {
      feed.close();
      clearInterval(timer);
      document.removeEventListener("visibilitychange", look);
    };
  }, [again]);
}
