// Earlier rows of a session. A transcript starts with the end of the log; earlier rows are loaded on demand,
// and the transcript is rebuilt from all loaded rows, so it is the same as if it had started there.
/** @import { EventOf, HermesEvent, Item, Transcript } from "../../types/page.d.ts" */
import { api, sessionPath } from "../../app/api.js";
import { fresh, reduce } from "./transcript.js";

const PAGE_ROWS = 400; // rows that are read at a time
const MOST_ROWS = 5000; // rows that one request may ask for

export class Past {
  #session;
  /** @type {HermesEvent[]} */
  #rows = []; // all that the transcript is made of, as long as there are others before them

  /** @param {string} session */
  constructor(session) {
    this.#session = session;
  }

  /** @param {{ after: number, limit: number }} range */
  async #read(range) {
    const page = await api.get(sessionPath(this.#session, "events"), range);
    return { ...page, events: /** @type {HermesEvent[]} */ (/** @type {unknown} */ (page.events)) };
  }

  /** The transcript of the end of the log. */
  async end() {
    const { session, epoch, head, events } = await this.#read({
      after: -PAGE_ROWS,
      limit: PAGE_ROWS,
    });
    const before = Math.max(0, head - PAGE_ROWS);
    const { first, rows } = this.#cut(
      events.filter((event) => event.seq <= head),
      before,
    );
    const { title, cwd, surface, kind, parent, model, cost_usd: cost } = session;
    const known = first > 1 ? { title, cwd, surface, kind, parent, model, cost } : {};
    this.#rows = rows;
    return { ...transcriptOf(this.#session, first, rows), ...known, epoch, head };
  }

  /**
   * Notes what came since; `state` is the transcript with it.
   * @param {Transcript} state
   * @param {HermesEvent[]} events
   */
  add(state, events) {
    if (state.first === 1)
      this.#rows = []; // they are not needed any more
    else
      this.#rows.push(
        ...events.filter(
          (event) =>
            event.type === "feed.truncated" ||
            (event.seq !== undefined && event.session_id === this.#session),
        ),
      );
  }

  /**
   * Rows before a transcript, back to `seq` and some more: {first, rows}. Null when it is another log by now.
   * @param {Transcript} transcript
   * @param {number} seq
   */
  async before({ epoch, first }, seq) {
    const start = Math.max(0, Math.min(seq, first) - 1 - PAGE_ROWS);
    /** @type {HermesEvent[]} */
    const events = [];
    for (let after = start; after < first - 1; after += MOST_ROWS) {
      const limit = Math.min(MOST_ROWS, first - 1 - after);
      const page = await this.#read({ after, limit });
      if (page.epoch !== epoch) return null;
      events.push(...page.events.filter((event) => event.seq <= after + limit));
    }
    return this.#cut(events, start);
  }

  /**
   * The transcript with rows that come before it. What has not changed stays the same object.
   * @param {Transcript} state
   * @param {{ first: number, rows: HermesEvent[] }} earlier
   * @returns {Transcript}
   */
  extend(state, { first, rows }) {
    this.#rows = [...rows, ...this.#rows];
    const known = new Map(state.items.map((item) => [item.key, item]));
    const items = transcriptOf(this.#session, first, this.#rows).items.map((item) => {
      const old = known.get(item.key);
      return old && (isSame(old, item) || hasUnsavedOutput(old, item)) ? old : item;
    });
    return { ...state, first, items };
  }

  /**
   * Rows from where a transcript can begin, with a word where some are gone; `before` is the row before them.
   * @param {HermesEvent[]} events
   * @param {number} before
   */
  #cut(events, before) {
    const at = before ? beginning(events) : 0;
    const first = at ? events[at].seq : before + 1;
    /** @type {HermesEvent[]} */
    const rows = [];
    let last = first - 1;
    for (const event of events.slice(at)) {
      if (event.seq > last + 1) rows.push(missingRows(this.#session, last + 1, event.seq - 1));
      rows.push(event);
      last = event.seq;
    }
    return { first, rows };
  }
}

/**
 * Behind the end of a turn; in a turn that is longer than that, with a reply, before which no call is open.
 * @param {HermesEvent[]} events
 */
function beginning(events) {
  const end = events.findIndex((event) => event.type === "agent.turn.ended");
  if (end >= 0 && end < events.length / 2) return end + 1;
  return Math.max(
    0,
    events.findIndex((event) => event.type === "agent.message.assistant"),
  );
}

/**
 * What rows come to. Those that begin with a reply are of a turn that has begun before.
 * @param {string} session
 * @param {number} first
 * @param {HermesEvent[]} rows
 */
function transcriptOf(session, first, rows) {
  const turn =
    first > 1 && rows[0]?.type === "agent.message.assistant" ? (rows[0].turn_id ?? "") : "";
  return reduce({ ...fresh(session), first, head: first - 1, turn }, rows);
}

/**
 * @param {Item} one
 * @param {Item} other
 */
function isSame(one, other) {
  const before = new Map(Object.entries(one));
  return Object.entries(other).every(([name, value]) => Object.is(before.get(name), value));
}

/**
 * A call whose output so far is in no row.
 * @param {Item} one
 * @param {Item} other
 */
function hasUnsavedOutput(one, other) {
  if (one.kind !== "tool" || other.kind !== "tool") return false;
  return one.status === other.status && !one.ended && !other.ended;
}

/**
 * The event that a feed sends in place of rows that are gone.
 * @param {string} session
 * @param {number} first
 * @param {number} last
 */
function missingRows(session, first, last) {
  const event = { type: "feed.truncated", session_id: session, first, last };
  return /** @type {EventOf<"feed.truncated">} */ (event);
}
