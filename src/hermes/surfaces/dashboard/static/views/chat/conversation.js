// One session in the chat: its transcript, updated by the feed, and messages that are being sent.
/** @import { FeedState, HermesEvent } from "../../types/page.d.ts" */
import { SessionFeed } from "../../app/feed.js";
import { refreshWaiting } from "../../app/pending_requests.js";
import { Store } from "../../app/ui.js";
import { noteBeginning } from "./beginnings.js";
import { DrawingPace } from "./drawing_pace.js";
import { Past } from "./earlier_rows.js";
import { Outbox } from "./outbox.js";
import { beginningOf, fresh, isPiece, reduce } from "./transcript.js";

const REMEMBERED = 6; // sessions whose transcript is kept while another is shown

/** @type {Map<string, Conversation>} */
const recent = new Map();

export class Conversation {
  /** @type {HermesEvent[]} */
  #queue = [];
  #pace = new DrawingPace(() => this.#flush());
  /** @type {SessionFeed | null} */
  #feed = null;
  #past;
  /** @type {Promise<void> | null} */
  #beginning = null;
  /** @type {Promise<void> | null} */
  #reading = null;

  /** @param {string} id */
  constructor(id) {
    this.id = id;
    this.transcript = new Store(fresh(id));
    this.state = new Store(/** @type {FeedState} */ ("connecting"));
    this.outbox = new Outbox(id, this.transcript);
    this.transcript.watch((state) => noteBeginning(id, beginningOf(state)));
    this.#past = new Past(id);
  }

  /** Follows the session from the last position; at first, from its end. */
  open() {
    this.#feed = new SessionFeed(
      this.id,
      {
        begin: () => this.#begin(),
        onEvents: (events) => this.#take(events),
        onState: (state) => this.state.set(state),
      },
      this.#cursor(),
    );
  }

  /** Stops following; the transcript is kept. */
  close() {
    this.#feed?.close();
    this.#feed = null;
    this.#flush();
  }

  /** Loads earlier rows, back to a given row if there is one. One load at a time. */
  earlier(seq = Infinity) {
    this.#reading ??= this.#extend(seq).finally(() => {
      this.#reading = null;
    });
    return this.#reading;
  }

  /** @param {number} seq */
  async #extend(seq) {
    const { epoch, first } = this.transcript.value;
    if (first === 1) return;
    const found = await this.#past.before(this.transcript.value, seq);
    this.#flush();
    const now = this.transcript.value;
    if (found && now.epoch === epoch && now.first === first)
      this.transcript.set(this.#past.extend(now, found));
  }

  #cursor() {
    const { epoch, head } = this.transcript.value;
    return head ? { epoch, seq: head } : null;
  }

  async #begin() {
    this.#beginning ??= this.#readEnd().finally(() => {
      this.#beginning = null;
    });
    await this.#beginning;
    return this.#cursor() ?? { epoch: 0, seq: 0 };
  }

  async #readEnd() {
    if (this.#cursor()) return; // it was read for a feed before
    const end = await this.#past.end();
    this.transcript.set(end);
    const since = this.outbox.unsure();
    if (since < end.first) this.earlier(since).catch(() => {}); // then it is not known whether they were sent
  }

  /** @param {HermesEvent[]} events */
  #take(events) {
    this.#queue.push(...events);
    if (events.some((event) => event.type === "feed.partial")) refreshWaiting();
    if (events.every(isPiece)) this.#pace.soon();
    else this.#pace.atOnce();
  }

  #flush() {
    this.#pace.cancel();
    if (!this.#queue.length) return;
    const events = this.#queue;
    this.#queue = [];
    const next = reduce(this.transcript.value, events);
    this.#past.add(next, events);
    this.transcript.set(next);
  }
}

/**
 * The conversation of a session; the same as before if it was looked at lately.
 * @param {string} id
 */
export function conversationOf(id) {
  const known = recent.get(id) ?? new Conversation(id);
  recent.delete(id);
  recent.set(id, known);
  if (recent.size > REMEMBERED) recent.delete([...recent.keys()][0]);
  return known;
}
