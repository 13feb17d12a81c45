// The events the inspector remembers: the newest, bounded in number and size, with counters over all.
/** @import { BufferedEvent, HermesEvent } from "../../types/page.d.ts" */

import { inFull } from "../../app/parts/format.js";
import { t } from "../../app/translation.js";

/** @typedef {{ count: number, slots: number[] }} Count */

const SPARE = 500; // events over the bound before the oldest are let go, so that it happens seldom
const LONGEST_CHARS = 20_000; // characters of one text that are kept
const TOPICS = 500; // that are counted by name
const SECONDS = 10; // over which a rate is taken
const OTHERS = t("(other topics)");

export class EventBuffer {
  /** @type {BufferedEvent[]} */
  events = [];
  received = 0;
  missed = 0; // events the server says it dropped
  evicted = 0;
  #size = 0;

  constructor(most = 5000, mostSize = 16 * 1024 * 1024) {
    this.most = most;
    this.mostSize = mostSize;
  }

  /** @param {HermesEvent} event */
  push(event) {
    this.received += 1;
    const kept = { number: this.received, event, size: 200 };
    kept.event = /** @type {HermesEvent} */ (shortened(event, kept, 0));
    this.events.push(kept);
    this.#size += kept.size;
    if (this.events.length > this.most + SPARE || this.#size > this.mostSize) this.#evict();
  }

  clear() {
    this.evicted += this.events.length;
    this.events = [];
    this.#size = 0;
  }

  #evict() {
    let gone = Math.max(this.events.length - this.most, 0);
    let size = this.#size;
    for (let index = 0; index < gone; index++) size -= this.events[index].size;
    while (size > this.mostSize * 0.8 && gone < this.events.length - 1)
      size -= this.events[gone++].size;
    this.events = this.events.slice(gone); // a new list: a paused view keeps the one it has
    this.evicted += gone;
    this.#size = size;
  }
}

/**
 * The same with long texts cut; what is left counts.
 * @param {unknown} value
 * @param {{ size: number }} kept
 * @param {number} depth
 * @returns {unknown}
 */
function shortened(value, kept, depth) {
  if (typeof value === "string") {
    kept.size += Math.min(value.length, LONGEST_CHARS);
    if (value.length <= LONGEST_CHARS) return value;
    const count = value.length - LONGEST_CHARS;
    const values = { count, number: inFull(count) };
    const left = t("({number} more character)", "({number} more characters)", values);
    return `${value.slice(0, LONGEST_CHARS)}… ${left}`;
  }
  if (value === null || typeof value !== "object") return value;
  if (depth > 6 || kept.size > 20 * LONGEST_CHARS) return `… ${t("(omitted)")}`;
  kept.size += 50;
  if (Array.isArray(value)) return value.map((one) => shortened(one, kept, depth + 1));
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [name, shortened(one, kept, depth + 1)]),
  );
}

/** How often each topic came, and how often lately. */
export class Counters {
  topics = new Map(); // topic -> {count, slots}
  total = { count: 0, slots: new Array(SECONDS).fill(0) };
  #second = 0;

  /**
   * @param {string} topic
   * @param {number} now
   */
  add(topic, now) {
    this.#turn(Math.floor(now / 1000));
    const slot = this.#second % SECONDS;
    for (const one of [this.total, this.#of(topic)]) {
      one.count += 1;
      one.slots[slot] += 1;
    }
  }

  /**
   * Rows by number: {topic, count, rate, slots}.
   * @param {number} now
   */
  rows(now) {
    this.#turn(Math.floor(now / 1000));
    return [...this.topics]
      .map(([topic, one]) => ({
        topic,
        count: one.count,
        rate: rateOf(one),
        slots: this.#ordered(one),
      }))
      .sort((a, b) => b.rate - a.rate || b.count - a.count);
  }

  /** @param {number} now */
  rate(now) {
    this.#turn(Math.floor(now / 1000));
    return rateOf(this.total);
  }

  /** @param {string} topic */
  #of(topic) {
    let found = this.topics.get(topic);
    if (!found) {
      const name = this.topics.size < TOPICS ? topic : OTHERS;
      found = this.topics.get(name) ?? { count: 0, slots: new Array(SECONDS).fill(0) };
      this.topics.set(name, found);
    }
    return found;
  }

  /** @param {Count} one */
  #ordered(one) {
    return Array.from(
      { length: SECONDS },
      (_, index) => one.slots[(this.#second + 1 + index) % SECONDS],
    );
  }

  /**
   * Time went on: the seconds since then are empty.
   * @param {number} second
   */
  #turn(second) {
    const passed = Math.min(second - this.#second, SECONDS);
    if (passed <= 0) return;
    for (let step = 1; step <= passed; step++) {
      const slot = (second - passed + step) % SECONDS;
      for (const one of [this.total, ...this.topics.values()]) one.slots[slot] = 0;
    }
    this.#second = second;
  }
}

/** @param {Count} one */
function rateOf(one) {
  return one.slots.reduce((sum, value) => sum + value, 0) / SECONDS;
}
