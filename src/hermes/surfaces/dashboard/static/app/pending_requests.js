// Open requests and questions of all sessions: loaded again whenever the bus reports a change.
/** @import { FeedState, HermesEvent, WaitingRow } from "../types/page.d.ts" */
import { api, Latest } from "./api.js";
import { BusFeed } from "./feed.js";
import { Store } from "./ui.js";

const PATTERN = "agent.approval.*,agent.question.*,agent.turn.*,session.*,store.*";
const SOON_MS = 60; // milliseconds in which several changes become one request

/** Open questions: [{session_id, root_session_id, title, kind, call_id, ...}]. */
export const waiting = new Store(/** @type {WaitingRow[]} */ ([]));

/** "connecting" | "live" | "waiting" | "closed": how the page is connected. */
export const connection = new Store(/** @type {FeedState} */ ("connecting"));

/** Whether the dashboard waits for its database. */
export const storeAway = new Store(false);

/** Counts sessions that started, ended a turn, were renamed or deleted, so that lists reload. */
export const changes = new Store(
  /** @type {{ count: number, event: HermesEvent | null }} */ ({ count: 0, event: null }),
);

const refreshes = new Latest();
let timer = 0;

/** @param {HermesEvent | null} event */
function note(event) {
  changes.set({ count: changes.value.count + 1, event });
}

/** Makes lists reload after this page changed something that no event reports, such as a deletion. */
export function reloadLists() {
  note(null);
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
      // The feed reports when the dashboard can be reached again.
    }
  }, SOON_MS);
}

/** Begins to watch; the frame does so once. */
export function watch() {
  return new BusFeed(PATTERN, {
    onState: (state) => {
      connection.set(state);
      if (state !== "live") return;
      storeAway.set(false); // the events right behind the greeting say otherwise
      refreshWaiting();
      note(null); // Lists reload, because events during a lost connection are not replayed.
    },
    onEvents: (events) => {
      for (const event of events) {
        if (event.type.startsWith("store.")) storeAway.set(event.type === "store.unreachable");
        if (event.type === "store.reachable") note(null);
        if (event.type.startsWith("session.") || event.type.startsWith("agent.turn.")) note(event);
      }
      if (events.some((event) => !event.type.startsWith("session."))) refreshWaiting();
    },
  });
}
