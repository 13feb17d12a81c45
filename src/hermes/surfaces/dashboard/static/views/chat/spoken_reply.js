// Spoken replies: cuts the text into sentences while it is being written, and plays them one after the other.
/** @import { Transcript } from "../../types/page.d.ts" */
/** @import { Store } from "../../app/ui.js" */
import { api, errorText } from "../../app/api.js";
import { toast } from "../../app/parts.js";

const SHORTEST = 12; // characters; a shorter sentence is said together with the next
const SENTENCE_END = /[.!?…:]["'”’)\]]*(?=\s)|[。！？]/g;

/** Cuts growing Markdown into what can be said already. Code blocks are left out. */
export class SentenceCutter {
  #rest = "";
  #inCode = false;
  #atLineStart = true;
  #short = "";

  /**
   * @param {string} text
   * @returns {string[]}
   */
  add(text) {
    this.#rest += text;
    const pieces = [];
    for (let end = this.#rest.indexOf("\n"); end >= 0; end = this.#rest.indexOf("\n")) {
      pieces.push(...this.#line(this.#rest.slice(0, end)));
      this.#rest = this.#rest.slice(end + 1);
      this.#atLineStart = true;
    }
    const mayBeFence = this.#atLineStart && /^\s*(`|~|$)/.test(this.#rest);
    if (!this.#inCode && !mayBeFence) pieces.push(...this.#sentences());
    return pieces;
  }

  /** The rest, when nothing more comes. */
  finish() {
    const pieces = this.#line(this.#rest);
    const last = this.#short;
    this.#rest = this.#short = "";
    this.#inCode = false;
    this.#atLineStart = true;
    return last ? [...pieces, last] : pieces;
  }

  /** @param {string} line */
  #line(line) {
    if (this.#atLineStart && /^\s*(```|~~~)/.test(line)) {
      this.#inCode = !this.#inCode;
      return [];
    }
    return this.#inCode ? [] : this.#long(line);
  }

  /** The sentences of a line that is still being written. */
  #sentences() {
    const ends = [...this.#rest.matchAll(SENTENCE_END)];
    const last = ends.at(-1);
    if (!last) return [];
    const end = last.index + last[0].length;
    const said = this.#rest.slice(0, end);
    this.#rest = this.#rest.slice(end);
    this.#atLineStart = false;
    return this.#long(said);
  }

  /** @param {string} text */
  #long(text) {
    const all = `${this.#short}\n${text}`.trim();
    const isLong = all.length >= SHORTEST;
    this.#short = isLong ? "" : all;
    return isLong ? [all] : [];
  }
}

/** Speaks texts in their order. The next one is fetched while one is played. */
export class SpeechPlayer {
  #context = new AudioContext();
  #round = 0;
  #waiting = 0;
  /** @type {Promise<unknown>} */
  #last = Promise.resolve();
  /** @type {AudioBufferSourceNode | null} */
  #source = null;

  /** @param {() => void} onChange called when it starts or stops speaking */
  constructor(onChange) {
    this.onChange = onChange;
  }

  get isSpeaking() {
    return this.#waiting > 0;
  }

  /** @param {string} text */
  say(text) {
    const round = this.#round;
    const before = this.#last;
    const sound = this.#fetch(text);
    this.#waiting += 1;
    if (this.#waiting === 1) this.onChange();
    this.#last = before
      .then(() => sound)
      .then((found) => (found && round === this.#round ? this.#play(found) : undefined))
      .finally(() => {
        this.#waiting -= 1;
        if (!this.#waiting) this.onChange();
      });
  }

  /** Falls silent, and forgets what was to be said. */
  stop() {
    this.#round += 1;
    this.#source?.stop();
  }

  close() {
    this.stop();
    this.#context.close().catch(() => {});
  }

  /** @param {string} text */
  async #fetch(text) {
    try {
      const spoken = await api.post("/api/speech", { text });
      if (!spoken.data) return null;
      const bytes = Uint8Array.from(atob(spoken.data), (one) => one.charCodeAt(0));
      return await this.#context.decodeAudioData(bytes.buffer);
    } catch (error) {
      toast(errorText(error), "bad");
      return null;
    }
  }

  /** @param {AudioBuffer} sound */
  async #play(sound) {
    await this.#context.resume();
    const source = this.#context.createBufferSource();
    source.buffer = sound;
    source.connect(this.#context.destination);
    this.#source = source;
    await new Promise((resolve) => {
      source.onended = resolve;
      source.start();
    });
    this.#source = null;
  }
}

/**
 * Speaks the replies of a session from now on, while they are being written. Returns a function that ends that.
 * @param {Store<Transcript>} transcript
 * @param {SpeechPlayer} player
 */
export function speakReplies(transcript, player) {
  let seen = transcript.value.head;
  let origin = 0;
  let at = 0;
  let cutter = new SentenceCutter();
  const say = (/** @type {string[]} */ pieces) => {
    for (const piece of pieces) player.say(piece);
  };
  return transcript.watch((state) => {
    for (const item of state.items) {
      if (item.kind !== "assistant" || item.seq <= seen) continue;
      seen = item.seq;
      say([...cutter.add(item.text.slice(at)), ...cutter.finish()]);
      [origin, at, cutter] = [0, 0, new SentenceCutter()];
    }
    const live = state.live?.text;
    if (!live?.length) return;
    if (live.origin !== origin) {
      [origin, at, cutter] = [live.origin, 0, new SentenceCutter()];
    }
    const more = live.from(at);
    at += more.length;
    say(cutter.add(more));
  });
}
