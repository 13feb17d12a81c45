// The steps of a session from its feed: past ones, then live ones.
/** @import { FeedState, HermesEvent } from "../../types/page.d.ts" */
import { SessionFeed } from "../../app/feed.js";
import { useEffect, useRef, useState } from "../../app/ui.js";
import { StepLog } from "./steps.js";

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
    /** @type {{ state?: string, gone?: boolean }} */
    let next = {};
    // However many rows come, they are drawn once per frame; those of a replay when all are there.
    const draw = () => {
      const news = next;
      [frame, next] = [0, {}];
      setSeen((was) => ({ ...was, ...news, version: was.version + 1 }));
    };
    /** @param {HermesEvent[]} events */
    const take = (events) => {
      let grown = false;
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
    const feed = new SessionFeed(id, { onEvents: take, onState });
    return () => {
      cancelAnimationFrame(frame);
      feed.close();
    };
  }, [id]);
  return { log: held.current, ...seen };
}
