// Feeds over WebSockets that come back by themselves. A session's feed resumes at its cursor, without holes or doubles.
import { openSocket } from "./api.js";

const FIRST_PAUSE = 200; // milliseconds before the second attempt
const LONGEST_PAUSE = 8000;
const LONG_AWAY = 30_000; // hidden or asleep for so long, a connection may be lost without a word
const BEAT = 5000; // milliseconds between two looks at the clock: a long one means that the machine slept
const GONE = new Set([4003, 4004]); // closed for good
const REFUSED = new Set([401, 403, 404]); // asking again would not help

class Feed {
  #socket = null;
  #timer = 0;
  #pause = 0;
  #attempt = 0;
  #closed = false;
  #hiddenAt = 0;
  #beat = 0;
  #beatAt = Date.now();

  constructor({ onEvents, onState = () => {} }) {
    this.state = "connecting";
    this.onEvents = onEvents;
    this.onState = onState;
    addEventListener("online", this.#now);
    document.addEventListener("visibilitychange", this.#seen);
    this.#beat = setInterval(this.#awake, BEAT);
    // Not at once: whoever makes a feed has its name first.
    queueMicrotask(() => this.#connect());
  }

  /** Ends it for good. */
  close() {
    this.#finish();
    this.#say("closed");
  }

  #finish() {
    this.#closed = true;
    clearTimeout(this.#timer);
    clearInterval(this.#beat);
    removeEventListener("online", this.#now);
    document.removeEventListener("visibilitychange", this.#seen);
    this.#drop();
  }

  #drop() {
    const socket = this.#socket;
    this.#socket = null;
    if (socket) hangUp(socket);
  }

  async #connect() {
    if (this.#closed) return;
    clearTimeout(this.#timer);
    this.#drop();
    const attempt = ++this.#attempt;
    let socket;
    try {
      socket = await openSocket(...(await this.target()));
    } catch (error) {
      if (attempt !== this.#attempt || this.#closed) return;
      if (REFUSED.has(error.status)) this.close();
      else this.#again();
      return;
    }
    if (attempt !== this.#attempt || this.#closed) return hangUp(socket);
    this.#socket = socket;
    socket.onmessage = ({ data }) => this.#socket === socket && this.#take(data);
    socket.onclose = ({ code }) => this.#socket === socket && this.#lost(code);
  }

  #take(data) {
    const events = this.sift(JSON.parse(data));
    if (events.some((event) => event.type === "feed.hello")) {
      this.#pause = 0;
      this.#say("live");
    }
    if (events.length) this.onEvents(events);
  }

  #lost(code) {
    this.#socket = null;
    if (GONE.has(code)) this.close();
    else this.#again();
  }

  #again() {
    this.#say("waiting");
    this.#timer = setTimeout(() => this.#connect(), this.#pause * (0.75 + Math.random() / 2));
    this.#pause = Math.min(Math.max(this.#pause * 2, FIRST_PAUSE), LONGEST_PAUSE);
  }

  #say(state) {
    if (state === this.state) return;
    this.state = state;
    this.onState(state);
  }

  #now = () => {
    this.#pause = 0;
    this.#connect();
  };

  #awake = () => {
    const slept = Date.now() - this.#beatAt > LONG_AWAY;
    this.#beatAt = Date.now();
    if (slept && !document.hidden) this.#now();
  };

  #seen = () => {
    if (document.hidden) {
      this.#hiddenAt = Date.now();
    } else if (
      this.state === "waiting" ||
      (this.#hiddenAt && Date.now() - this.#hiddenAt > LONG_AWAY)
    ) {
      this.#now();
    }
  };
}

/** Closes a socket; one that is not open yet once it is, as browsers complain otherwise. */
function hangUp(socket) {
  if (socket.readyState === WebSocket.CONNECTING) socket.onopen = () => socket.close();
  else socket.close();
}

/**
 * Everything of one session: its rows from the cursor on, then what happens. `cursor` resumes an earlier feed; without
 * one, `begin` is asked for it before the first connection.
 */
export class SessionFeed extends Feed {
  constructor(session, { begin, ...handlers }, cursor = begin ? null : { epoch: 0, seq: 0 }) {
    super(handlers);
    this.session = session;
    this.begin = begin;
    this.cursor = cursor && { ...cursor };
  }

  async target() {
    this.cursor ??= await this.begin();
    const { epoch, seq } = this.cursor;
    return [`/api/sessions/${encodeURIComponent(this.session)}/feed`, { epoch, after: seq }];
  }

  /** Only what is new, in order; the cursor moves along. Events of sessions that work for this one pass as they are. */
  sift(events) {
    return events.filter((event) => {
      if (event.type === "feed.epoch_changed") this.cursor = { epoch: event.epoch, seq: 0 };
      else if (event.type === "feed.truncated")
        this.cursor.seq = Math.max(this.cursor.seq, event.last);
      if (event.seq === undefined || event.session_id !== this.session) return true;
      if (event.epoch === this.cursor.epoch && event.seq <= this.cursor.seq) return false;
      this.cursor = { epoch: event.epoch, seq: event.seq };
      return true;
    });
  }
}

/** Whatever the dashboard's bus carries under a pattern, live, without a replay. Several patterns: commas between. */
export class BusFeed extends Feed {
  constructor(pattern, handlers) {
    super(handlers);
    this.pattern = pattern;
  }

  target() {
    return ["/api/feed", { pattern: this.pattern }];
  }

  sift(events) {
    return events;
  }
}
