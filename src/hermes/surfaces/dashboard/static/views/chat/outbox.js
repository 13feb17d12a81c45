// Messages on their way. Nothing typed is lost: what could not be sent stays here, also over a reload, and says why.
import { ApiError, api } from "../../app/api.js";
import { Store, kept } from "../../app/ui.js";
import { typed } from "./transcript.js";

const CLOCKS = 5; // seconds by which the clocks of browser and server may differ

export class Outbox {
  #transcript;

  constructor(session, transcript) {
    this.session = session;
    this.#transcript = transcript;
    /** [{key, text, images, delivery, model, at, state: "sending" | "accepted" | "failed", error, seq}] */
    this.messages = new Store(read(session).map((one) => ({ ...one, images: [], state: "failed" })));
    transcript.watch(() => this.#settle());
  }

  /** Sends a message. Resolves to whether it was accepted. */
  async send({ text, images = [], delivery = "queue", model = null }) {
    const key = `${Date.now()}-${Math.random().toString(36).slice(2, 8)}`;
    const message = { key, text, images, delivery, model, at: Date.now() / 1000, state: "sending", error: "", seq: 0 };
    this.#set([...this.messages.value, message]);
    return this.#try(message);
  }

  /** Tries a message that failed once more. */
  again(key) {
    const message = this.messages.value.find((one) => one.key === key);
    return message && this.#try({ ...message, at: Date.now() / 1000 });
  }

  /** Takes a message out; what it said. */
  remove(key) {
    const message = this.messages.value.find((one) => one.key === key);
    this.#set(this.messages.value.filter((one) => one.key !== key));
    return message;
  }

  async #try(message) {
    this.#change(message.key, { state: "sending", error: "", at: message.at });
    const body = { text: message.text, delivery: message.delivery };
    if (message.images.length) body.images = message.images.map(({ media_type, data }) => ({ media_type, data }));
    if (message.model !== null) body.model = message.model;
    try {
      const { epoch, seq } = await api.post(`/api/sessions/${encodeURIComponent(this.session)}/messages`, body);
      this.#change(message.key, { state: "accepted", seq, epoch });
      this.#settle();
      return true;
    } catch (error) {
      const words = error instanceof ApiError ? error.words : String(error);
      this.#change(message.key, { state: "failed", error: words, unsure: error.status === 0 });
      this.#settle();
      return false;
    }
  }

  /** What the transcript shows by now leaves: it is in the log, even if the answer to its request was lost. */
  #settle() {
    const { head, epoch, items } = this.#transcript.value;
    const left = this.messages.value.filter((one) => {
      if (one.state === "accepted") return !(one.epoch === epoch && one.seq <= head);
      if (one.state !== "failed" || !one.unsure) return true;
      return !items.some((item) => item.kind === "user" && item.ts >= one.at - CLOCKS &&
        typed(item.text).text === one.text);
    });
    if (left.length !== this.messages.value.length) this.#set(left);
  }

  #change(key, more) {
    this.#set(this.messages.value.map((one) => (one.key === key ? { ...one, ...more } : one)));
  }

  #set(messages) {
    this.messages.set(messages);
    const unsent = messages.filter((one) => one.state !== "accepted").map(({ images, ...rest }) =>
      ({ ...rest, pictures: images.length, unsure: true }));
    kept.set(`outbox.${this.session}`, unsent.length ? JSON.stringify(unsent) : null);
  }
}

function read(session) {
  try {
    const found = JSON.parse(kept.get(`outbox.${session}`) ?? "[]");
    return Array.isArray(found) ? found.map((one) => ({ ...one, error: one.error ||
      "The page was closed before it was sent." })) : [];
  } catch {
    return [];
  }
}
