// The steps of a session: past ones read from the log, which comes compressed, then live ones from its feed.
/** @import { Cursor, FeedState, HermesEvent } from "../../types/page.d.ts" */
import { api, sessionPath } from "../../app/api.js";
import { SessionFeed } from "../../app/feed.js";
import { useEffect, useRef, useState } from "../../app/ui.js";
import { StepLog } from "./steps.js";

const MOST_ROWS = 5000; // rows that one request may ask for

/**
 * Reads all rows; returns the place of the last one, where a feed goes on.
 * @param {string} id
 * @param {(events: HermesEvent[]) => void} take
 * @returns {Promise<Cursor>}
 */
async function readPast(id, take) {
  const cursor = { epoch: 0, seq: 0 };
  for (let more = true; more; ) {
    const range = { after: cursor.seq, limit: MOST_ROWS };
    const page = await api.get(sessionPath(id, "events"), range);
    const events = /** @type {HermesEvent[]} */ (/** @type {unknown} */ (page.events));
    if (cursor.epoch && page.epoch !== cursor.epoch) throw new Error("log rebuilt"); // begins anew
    take(events);
    cursor.epoch = page.epoch;
    cursor.seq = events.at(-1)?.seq ?? cursor.seq;
    more = page.more;
  }
  return cursor;
}

/**
 * {log, version, state, gone}. `version` grows with each addition; `state` is "replaying" until all are there.
 * @param {string} id
 */
export function useSteps(id) {
  const [first] = useState(() => new StepLog());
  const held = useRef(first);
  const [seen, setSeen] = useState({ version: 0, state: "replaying", gone: false });
  useEffect(() => {
    let frame = 0;
    let replaying = true;
    let grown = false; // since it was last drawn
    /** @type {{ state?: string, gone?: boolean }} */
    let next = {};
    // However many rows come, they are drawn once per frame; those of a replay when all are there.
    const draw = () => {
      const [news, more] = [next, grown ? 1 : 0];
      [frame, next, grown] = [0, {}, false];
      setSeen((was) => ({ ...was, ...news, version: was.version + more }));
    };
    /** @param {HermesEvent[]} events */
    const take = (events) => {
      for (const event of events) {
        if (event.type === "feed.epoch_changed") held.current = new StepLog();
        else if (event.type === "feed.partial") next.state = "live";
        else if (event.type === "feed.deleted") next.gone = true;
        else if (event.seq !== undefined && event.session_id === id) {
          held.current.add(event);
          grown = true;
        }
      }
      replaying &&= next.state !== "live" && !next.gone;
      if (!replaying && (grown || next.state || next.gone)) frame ||= requestAnimationFrame(draw);
    };
    /** @param {FeedState} state */
    const onState = (state) => {
      if (state !== "closed") return;
      replaying = false;
      setSeen((was) => ({ ...was, state: "closed" }));
    };
    const begin = async () => {
      held.current = new StepLog(); // a try before may have been cut off
      const cursor = await readPast(id, take);
      // What is past can be read while the feed connects.
      next.state = "connecting";
      replaying = false;
      frame ||= requestAnimationFrame(draw);
      return cursor;
    };
    const feed = new SessionFeed(id, { begin, onEvents: take, onState });
    return () => {
      cancelAnimationFrame(frame);
      feed.close();
    };
  }, [id]);
  return { log: held.current, ...seen };
}
