// When new events are drawn. Pieces of a reply come up to 200 times a second; drawing in each frame that has one would
// take most of a slow machine, so after a drawing comes a rest. It is a multiple of what the drawing took, which bounds
// the share.
const LEAST_REST_MS = 50; // more drawings than 15 a second read no smoother
const MOST_REST_MS = 90; // longer rests would be seen
const REST_PER_DRAWING = 4; // of a drawing's time
const HIDDEN_MS = 200; // milliseconds between two drawings while the page is not seen: it has no frames
const TYPING_MS = 500; // since the last key: somebody types, and looks at what they type
const TYPING_REST_MS = 150; // the rest then: fewer keys come in the middle of a drawing and wait for its end
const KEY_MS = 20; // for so long a key keeps pieces from being drawn: its own frame comes first

let lastKey = -Infinity;
addEventListener("keydown", (event) => (lastKey = event.timeStamp), { capture: true });

export class DrawingPace {
  #draw;
  #frame = 0;
  #timer = 0;
  #restUntil = 0;

  /** @param {() => void} draw */
  constructor(draw) {
    this.#draw = draw;
  }

  /** Draws in the next frame, or in the first one after the rest. */
  soon() {
    if (this.#frame || this.#timer) return;
    const rest = Math.max(this.#restUntil, lastKey + KEY_MS) - performance.now();
    if (rest <= 0) this.#ask(() => this.#runUnlessKey());
    else this.#timer = setTimeout(() => this.#afterRest(), rest);
  }

  #afterRest() {
    this.#timer = 0;
    this.#ask(() => this.#runUnlessKey());
  }

  /** In a frame that shows a key, pieces wait for the next one. */
  #runUnlessKey() {
    if (performance.now() - lastKey >= KEY_MS) return this.#run();
    this.#frame = requestAnimationFrame(() => this.#run());
  }

  /** Draws in the next frame. */
  atOnce() {
    if (this.#frame) return;
    clearTimeout(this.#timer);
    this.#ask(() => this.#run());
  }

  /** @param {() => void} run */
  #ask(run) {
    this.#frame = requestAnimationFrame(run);
    this.#timer = setTimeout(() => this.#run(), HIDDEN_MS);
  }

  /** Draws nothing that was asked for so far. */
  cancel() {
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#timer);
    this.#frame = this.#timer = 0;
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
