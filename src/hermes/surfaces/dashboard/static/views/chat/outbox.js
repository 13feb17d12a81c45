// Outgoing messages. Nothing typed is lost: an unsent message stays here, even after a reload, with the reason.
/** @import { Message, RequestBody, Transcript } from "../../types/page.d.ts" */

import { ApiError, api, errorText, sessionPath } from "../../app/api.js";
import { toast } from "../../app/parts.js";
import { t } from "../../app/translation.js";
import { kept, Store } from "../../app/ui.js";
import { typed } from "./message_parts.js";

export class Outbox {
  #transcript;
  /** The message of the queue that is being sent. The next one waits for it, or it would overtake a large file. */
  #sent = Promise.resolve(true);

  /**
   * @param {string} session
   * @param {Store<Transcript>} transcript
   */
  constructor(session, transcript) {
    this.session = session;
    this.#transcript = transcript;
    this.messages = new Store(
      /** @type {Message[]} */ (
        read(session).map((one) => ({ ...one, images: [], state: "failed" }))
      ),
    );
    transcript.watch(() => this.#settle());
  }

  /**
   * Sends a message. Resolves to whether it was accepted.
   * @param {Partial<Message> & { text: string }} message
   */
  async send({
    text,
    images = [],
    files = [],
    recordings = [],
    earlier = null,
    delivery = "queue",
    model = null,
    approvals = null,
    since = this.#known(),
  }) {
    const key = `${Date.now()}-${Math.random().toString(36).slice(2, 8)}`;
    /** @type {Message} */
    const message = {
      key,
      text,
      images,
      files,
      recordings,
      earlier,
      delivery,
      model,
      approvals,
      since,
      state: "sending",
      error: "",
      seq: 0,
    };
    this.#set([...this.messages.value, message]);
    if (delivery !== "queue") return this.#try(message);
    this.#sent = this.#sent.then(() => this.#try(message));
    return this.#sent;
  }

  /**
   * Tries a message that failed once more.
   * @param {string} key
   */
  again(key) {
    const message = this.messages.value.find((one) => one.key === key);
    return message && this.#try(message);
  }

  /**
   * Removes a message and returns it.
   * @param {string} key
   */
  remove(key) {
    const message = this.messages.value.find((one) => one.key === key);
    this.#set(this.messages.value.filter((one) => one.key !== key));
    return message;
  }

  /** @param {Message} message */
  async #try(message) {
    this.#change(message.key, { state: "sending", error: "" });
    /** @type {RequestBody<"POST", "/api/sessions/x/messages">} */
    const body = { text: message.text, delivery: message.delivery };
    if (message.images.length)
      body.images = message.images.map(({ media_type, data }) => ({ media_type, data }));
    if (message.files?.length) body.files = message.files.map(({ name, data }) => ({ name, data }));
    if (message.recordings?.length) body.recordings = message.recordings;
    if (message.earlier) body.earlier = message.earlier;
    if (message.model !== null) body.model = message.model;
    if (message.approvals) body.approvals = message.approvals;
    try {
      const { epoch, seq, remarks } = await api.post(sessionPath(this.session, "messages"), body);
      this.#change(message.key, { state: "accepted", seq, epoch });
      this.#settle();
      for (const remark of remarks) toast(remark);
      return true;
    } catch (error) {
      const unsure = error instanceof ApiError && error.status === 0;
      this.#change(message.key, { state: "failed", error: errorText(error), unsure });
      this.#settle();
      return false;
    }
  }

  /** The row behind which messages may stand of which nobody knows whether they were taken. */
  unsure() {
    const rows = this.messages.value
      .filter((one) => one.state === "failed" && one.unsure)
      .map((one) => one.since);
    return Math.min(...rows.filter((since) => since !== null));
  }

  #known() {
    const { ready, head } = this.#transcript.value;
    return ready ? head : null;
  }

  /** Removes messages that the transcript shows: they are in the log, even if the response was lost. */
  #settle() {
    const { head, epoch, items } = this.#transcript.value;
    /** @type {Map<string, number>} */
    const rows = new Map(); // words that were found, and where: the same may have been said twice
    /** @param {Message} one */
    const after = (one) => Math.max(one.since ?? head, rows.get(one.text) ?? 0);
    const left = this.messages.value.filter((one) => {
      if (one.state === "accepted") return !(one.epoch === epoch && one.seq <= head);
      if (one.state !== "failed" || !one.unsure) return true;
      const row = items.find(
        (item) =>
          item.kind === "user" && item.seq > after(one) && typed(item.text).text === one.text,
      );
      if (row) rows.set(one.text, row.seq);
      return !row;
    });
    if (left.length === this.messages.value.length) return;
    this.#set(left.map((one) => (rows.has(one.text) ? { ...one, since: after(one) } : one)));
  }

  /**
   * @param {string} key
   * @param {Partial<Message>} more
   */
  #change(key, more) {
    this.#set(this.messages.value.map((one) => (one.key === key ? { ...one, ...more } : one)));
  }

  /** @param {Message[]} messages */
  #set(messages) {
    this.messages.set(messages);
    const unsent = messages
      .filter((one) => one.state !== "accepted")
      .map(({ images, files, approvals, ...rest }) => ({
        ...rest,
        pictures: images.length + (files?.length ?? 0),
        unsure: true,
      }));
    kept.set(`outbox.${this.session}`, unsent.length ? JSON.stringify(unsent) : null);
  }
}

/**
 * @param {string} session
 * @returns {Message[]}
 */
function read(session) {
  try {
    const found = JSON.parse(kept.get(`outbox.${session}`) ?? "[]");
    return Array.isArray(found)
      ? found.map((one) => ({
          ...one,
          error: one.error || t("The page was closed before the message was sent."),
        }))
      : [];
  } catch {
    return [];
  }
}
