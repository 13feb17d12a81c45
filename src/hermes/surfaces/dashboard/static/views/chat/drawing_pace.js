// When new events are drawn. Pieces of a reply come up to 200 times a second; drawing in each frame that has one would
// take most of a slow machine, so after a drawing comes a rest. It is a multiple of what the drawing took, which bounds
// the share. A key that comes in the middle of a drawing waits for its end and for the next frame; so while somebody
// types, pieces are drawn right behind a key, when the next one is farthest away, or when they pause.
const LEAST_REST_MS = 50; // more drawings than 15 a second read no smoother
const MOST_REST_MS = 90; // longer rests would be seen
const REST_PER_DRAWING = 4; // of a drawing's time
const HIDDEN_MS = 200; // milliseconds between two drawings while the page is not seen: it has no frames
const TYPING_MS = 500; // since the last key: somebody types, and looks at what they type
const TYPING_REST_MS = 150; // the rest then
const KEY_MS = 20; // for so long a key keeps pieces from being drawn: its own frame comes first
const BEHIND_KEY_MS = 45; // until then a drawing is still right behind the key
const PAUSE_MS = 200; // without a key: the next one may take long
const PATIENCE_MS = 500; // that a piece waits at most: keys may come faster than frames

let lastKey = -Infinity;
/** @type {Set<DrawingPace>} */
const waiting = new Set(); // those that wait for a key

addEventListener(
  "keydown",
  () => {
    lastKey = performance.now();
    for (const pace of [...waiting]) pace.reconsider();
  },
  { capture: true },
);

export class DrawingPace {
  #draw;
  #frame = 0;
  #timer = 0;
  #isAtOnce = false; // what is asked for does not wait for a rest or a key
  #restUntil = 0;
  #since = 0; // the first piece that is not drawn has waited since then

  /** @param {() => void} draw */
  constructor(draw) {
    this.#draw = draw;
  }

  /** Draws in the next frame, or in the first good one after the rest. */
  soon() {
    if (this.#frame || this.#timer) return;
    this.#since ||= performance.now();
    const wait = this.#due() - performance.now();
    if (wait <= 0) return this.#ask(() => this.#runUnlessKey());
    this.#timer = setTimeout(() => this.reconsider(), wait);
    waiting.add(this);
  }

  /** Looks again when to draw what was asked for. */
  reconsider() {
    this.#clear();
    this.soon();
  }

  /** When the next drawing may begin. */
  #due() {
    const now = performance.now();
    if (now - lastKey >= TYPING_MS) return this.#restUntil;
    const behindKey = Math.max(this.#restUntil, lastKey + KEY_MS);
    const isBehind = Math.max(now, behindKey) < lastKey + BEHIND_KEY_MS;
    const due = isBehind ? behindKey : Math.max(this.#restUntil, lastKey + PAUSE_MS);
    return Math.min(due, this.#since + PATIENCE_MS);
  }

  /** In a frame that shows a key, pieces wait for a later one. */
  #runUnlessKey() {
    if (this.#due() <= performance.now()) this.#run();
    else this.reconsider();
  }

  /** Draws in the next frame. Asking again does not put it off: a hidden page has only the timer. */
  atOnce() {
    if (this.#isAtOnce) return;
    this.cancel();
    this.#isAtOnce = true;
    this.#ask(() => this.#run());
  }

  /** @param {() => void} run */
  #ask(run) {
    this.#frame = requestAnimationFrame(run);
    this.#timer = setTimeout(() => this.#run(), HIDDEN_MS);
  }

  /** Draws nothing that was asked for so far. */
  cancel() {
    this.#since = 0;
    this.#clear();
  }

  #clear() {
    waiting.delete(this);
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#timer);
    this.#frame = this.#timer = 0;
    this.#isAtOnce = false;
  }

  #run() {
    this.cancel();
    const begun = performance.now();
    this.#restUntil = begun + MOST_REST_MS;
    this.#draw();
    setTimeout(() => this.#rest(performance.now() - begun)); // runs when the frame is painted
  }

  /** @param {number} took milliseconds of the last drawing */
  #rest(took) {
    const now = performance.now();
    const rest = Math.min(MOST_REST_MS, Math.max(LEAST_REST_MS, took * REST_PER_DRAWING));
    this.#restUntil = now + (now - lastKey < TYPING_MS ? TYPING_REST_MS : rest);
  }
}
