// Live events over a WebSocket that reconnects by itself. A session's feed resumes at its cursor: no event is missed or
// delivered twice.
/** @import { Cursor, FeedHandlers, FeedState, HermesEvent, Query } from "../types/page.d.ts" */
import { sessionPath } from "./api.js";
import { ReconnectingSocket } from "./reconnect.js";

class Feed {
  #socket;

  /** @param {FeedHandlers} handlers */
  constructor({ onEvents, onState = () => {} }) {
    /** @type {FeedState} */
    this.state = "connecting";
    this.onEvents = onEvents;
    this.onState = onState;
    this.#socket = new ReconnectingSocket({
      target: () => this.target(),
      onMessage: (data) => this.#receive(String(data)),
      onWaiting: () => this.#setState("waiting"),
      onGone: () => this.close(),
    });
  }

  /**
   * The path and parameters of the next connection.
   * @returns {Promise<[string, Query]> | [string, Query]}
   */
  target() {
    throw new Error("Each kind of feed has its own."); // not translated
  }

  /**
   * Drops the events that were delivered before.
   * @param {HermesEvent[]} events
   */
  keepNew(events) {
    return events;
  }

  /** Ends the feed permanently. */
  close() {
    this.#socket.close();
    this.#setState("closed");
  }

  /** @param {string} data */
  #receive(data) {
    const events = this.keepNew(JSON.parse(data));
    if (events.some((event) => event.type === "feed.hello")) {
      this.#socket.resetPause();
      this.#setState("live");
    }
    if (events.length) this.onEvents(events);
  }

  /** @param {FeedState} state */
  #setState(state) {
    if (state === this.state) return;
    this.state = state;
    this.onState(state);
  }
}

/**
 * All events of one session: the rows behind the cursor, then live events. `cursor` resumes an earlier feed; without
 * one, `begin` is asked for it before the first connection.
 */
export class SessionFeed extends Feed {
  /**
   * @param {string} session
   * @param {FeedHandlers & { begin?: () => Promise<Cursor> }} handlers
   * @param {Cursor | null} [cursor]
   */
  constructor(session, { begin, ...handlers }, cursor = null) {
    super(handlers);
    this.session = session;
    this.begin = begin ?? (async () => ({ epoch: 0, seq: 0 }));
    this.cursor = cursor && { ...cursor };
  }

  /** @returns {Promise<[string, Query]>} */
  async target() {
    this.cursor ??= await this.begin();
    const { epoch, seq } = this.cursor;
    return [sessionPath(this.session, "feed"), { epoch, after: seq }];
  }

  /**
   * Keeps what is new, in order, and moves the cursor. Events of child sessions pass as they are.
   * @param {HermesEvent[]} events
   */
  keepNew(events) {
    return events.filter((event) => this.#isNew(event));
  }

  /** @param {HermesEvent} event */
  #isNew(event) {
    const cursor = this.cursor ?? { epoch: 0, seq: 0 };
    if (event.type === "feed.epoch_changed") this.cursor = { epoch: event.epoch, seq: 0 };
    if (event.type === "feed.truncated") cursor.seq = Math.max(cursor.seq, event.last);
    if (event.seq === undefined || event.session_id !== this.session) return true;
    if (event.epoch === cursor.epoch && event.seq <= cursor.seq) return false;
    this.cursor = { epoch: event.epoch, seq: event.seq };
    return true;
  }
}

/** Events on the dashboard's bus that match a pattern, live, without a replay. Several patterns: separate by commas. */
export class BusFeed extends Feed {
  /**
   * @param {string} pattern
   * @param {FeedHandlers} handlers
   */
  constructor(pattern, handlers) {
    super(handlers);
    this.pattern = pattern;
  }

  /** @returns {[string, Query]} */
  target() {
    return ["/api/feed", { pattern: this.pattern }];
  }
}
