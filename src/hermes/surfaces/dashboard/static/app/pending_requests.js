// What waits for a person, in any session: asked anew whenever the bus says that something changed.
/** @import { FeedState, HermesEvent, WaitingRow } from "../types/page.d.ts" */
import { api, Latest } from "./api.js";
import { BusFeed } from "./feed.js";
import { Store } from "./ui.js";

const PATTERN = "agent.approval.*,agent.question.*,agent.turn.*,session.*";
const SOON_MS = 60; // milliseconds in which several changes become one request

/** Open questions: [{session_id, root_session_id, title, kind, call_id, ...}]. */
export const waiting = new Store(/** @type {WaitingRow[]} */ ([]));

/** "connecting" | "live" | "waiting" | "closed": how the page is connected. */
export const connection = new Store(/** @type {FeedState} */ ("connecting"));

/** Counts up whenever a session began, ended a turn, was named or deleted: lists look again then. */
export const changes = new Store(
  /** @type {{ count: number, event: HermesEvent | null }} */ ({ count: 0, event: null }),
);

const refreshes = new Latest();
let timer = 0;

/** @param {HermesEvent | null} event */
function note(event) {
  changes.set({ count: changes.value.count + 1, event });
}

/** Asks again, soon. */
export function refreshWaiting() {
  clearTimeout(timer);
  timer = setTimeout(async () => {
    const isLatest = refreshes.begin();
    try {
      const answer = await api.get("/api/approvals");
      if (isLatest())
        waiting.set(/** @type {WaitingRow[]} */ (/** @type {unknown} */ (answer.waiting)));
    } catch {
      // The feed says when the dashboard can be reached again.
    }
  }, SOON_MS);
}

/** Begins to watch; the frame does so once. */
export function watch() {
  return new BusFeed(PATTERN, {
    onState: (state) => {
      connection.set(state);
      if (state !== "live") return;
      refreshWaiting();
      note(null); // Lists look again: what happened while there was no connection is not told.
    },
    onEvents: (events) => {
      for (const event of events) {
        if (event.type.startsWith("session.") || event.type.startsWith("agent.turn.")) note(event);
      }
      if (events.some((event) => !event.type.startsWith("session."))) refreshWaiting();
    },
  });
}
