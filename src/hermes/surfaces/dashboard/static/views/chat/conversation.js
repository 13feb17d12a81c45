// One session as the chat sees it: its transcript kept up to date by the feed, and what is on its way to it.
import { SessionFeed } from "../../app/feed.js";
import { Store } from "../../app/ui.js";
import { refreshWaiting } from "../../app/waiting.js";
import { Outbox } from "./outbox.js";
import { fresh, reduce } from "./transcript.js";

const REMEMBERED = 6; // sessions whose transcript is kept while another is shown
const HIDDEN = 200; // milliseconds between two looks while the page is not seen

const recent = new Map();

export class Conversation {
  #queue = [];
  #waiting = 0;
  #feed = null;

  constructor(id) {
    this.id = id;
    this.transcript = new Store(fresh(id));
    this.state = new Store("connecting");
    this.outbox = new Outbox(id, this.transcript);
  }

  /** Follows the session from where it was left. */
  open() {
    const { epoch, head } = this.transcript.value;
    this.#feed = new SessionFeed(
      this.id,
      {
        onEvents: (events) => this.#take(events),
        onState: (state) => this.state.set(state),
      },
      { epoch, seq: head },
    );
  }

  /** Stops following; what is known is kept. */
  close() {
    this.#feed?.close();
    this.#feed = null;
    this.#flush();
  }

  #take(events) {
    this.#queue.push(...events);
    if (events.some((event) => event.type === "feed.partial")) refreshWaiting();
    if (this.#waiting) return;
    // Once per picture, however many pieces come; a page that is not seen has no pictures.
    this.#waiting = document.hidden ? setTimeout(() => this.#flush(), HIDDEN) :
      requestAnimationFrame(() => this.#flush());
    if (!document.hidden) setTimeout(() => this.#waiting && this.#flush(), HIDDEN);
  }

  #flush() {
    this.#waiting = 0;
    if (!this.#queue.length) return;
    const events = this.#queue;
    this.#queue = [];
    this.transcript.set(reduce(this.transcript.value, events));
  }
}

/** The conversation of a session; the same as before if it was looked at lately. */
export function conversationOf(id) {
  const known = recent.get(id) ?? new Conversation(id);
  recent.delete(id);
  recent.set(id, known);
  if (recent.size > REMEMBERED) recent.delete(recent.keys().next().value);
  return known;
}
