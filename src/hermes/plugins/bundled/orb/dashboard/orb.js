// The orb on the page. Its states come from `orb.changed` on the bus; how each looks and moves is in this table, and
// what is drawn glides from one to the next.
/** @import { PluginTools } from "../../../../surfaces/dashboard/static/types/page.d.ts" */

/** @typedef {{ state: string, tool: string, where: string, busy: number }} Mood */

/** @typedef {CanvasRenderingContext2D} Pen */

/** @typedef {(more?: number, alpha?: number) => string} Tint */

/** @type {Record<string, number[]>} */
const LOOKS = {
  //          hue  colour light  size  wobble  speed pulse rings orbit
  idle: [246, 0.34, 0.62, 0.6, 0.012, 0.25, 0.02, 0.0, 0.0],
  listening: [190, 0.62, 0.6, 0.64, 0.02, 0.6, 0.03, 0.6, 0.0],
  thinking: [252, 0.78, 0.64, 0.64, 0.06, 1.1, 0.018, 0.0, 0.0],
  speaking: [268, 0.82, 0.66, 0.67, 0.034, 1.6, 0.055, 1.0, 0.0],
  tool: [206, 0.8, 0.58, 0.58, 0.022, 0.9, 0.012, 0.0, 1.0],
  waiting: [40, 0.88, 0.58, 0.64, 0.01, 0.45, 0.05, 0.8, 0.0],
  error: [2, 0.78, 0.58, 0.6, 0.075, 1.4, 0.02, 0.0, 0.0],
};
/** @type {Record<string, string>} */
const WORDS = {
  idle: "Idle",
  listening: "Listening",
  thinking: "Thinking",
  speaking: "Speaking",
  tool: "Using a tool",
  waiting: "Waiting for you",
  error: "Something went wrong",
};
const GLIDE = 0.075; // how much of the way to a new look is gone with each picture
const POINTS = 72;

/**
 * What a person reads: two short lines.
 * @param {Mood} mood
 */
export function wordsOf({ state, tool, where, busy }) {
  const first = state === "tool" && tool ? `Using ${tool}` : (WORDS[state] ?? state);
  const more = [where && `on ${where}`, busy > 1 && `${busy} sessions running`].filter(Boolean);
  return [first, more.join(" · ")];
}

/**
 * @param {HTMLElement} place
 * @param {PluginTools} tools
 */
export default function mount(place, { api, events, kind }) {
  const small = kind === "frame";
  const canvas = document.createElement("canvas");
  const words = small ? null : wordsElement();
  canvas.className = small ? "orb-small" : "";
  canvas.setAttribute("role", "img");
  place.className = small ? "" : "orb-page";
  place.append(canvas, ...(words ? [words] : []));
  const picture = new Picture(canvas, small);
  /** @param {Mood} mood */
  const show = (mood) => {
    const [first, second] = wordsOf(mood);
    canvas.setAttribute("aria-label", second ? `${first}, ${second}` : first);
    place.dataset.state = mood.state;
    if (words) words.replaceChildren(element("strong", first), element("span", second));
    picture.become(mood.state);
  };
  let heard = 0;
  /** @param {Mood} mood */
  const hear = (mood) => {
    heard += 1;
    show(mood);
  };
  // Changes alone come over the bus. What was before is asked for whenever the line is there (again).
  const ask = async () => {
    const before = heard;
    const answer = api.get("/api/plugins/orb/state").catch(() => null);
    const mood = /** @type {Mood | null} */ (/** @type {unknown} */ (await answer));
    if (mood && heard === before) show(mood);
  };
  const stop = events.subscribe("orb.changed", hear, ask);
  return () => {
    stop();
    picture.stop();
  };
}

function wordsElement() {
  const words = document.createElement("div");
  words.className = "orb-words";
  words.setAttribute("role", "status");
  return words;
}

/**
 * @param {string} tag
 * @param {string} text
 */
function element(tag, text) {
  const made = document.createElement(tag);
  made.textContent = text;
  return made;
}

/** Draws on a canvas for as long as somebody can see it. */
class Picture {
  #canvas;
  #look = [...LOOKS.idle];
  #goal = LOOKS.idle;
  #phase = 0;
  #last = 0;
  #frame = 0;
  #still = matchMedia("(prefers-reduced-motion: reduce)");
  #small;
  #begin = () => this.#wake();

  /**
   * @param {HTMLCanvasElement} canvas
   * @param {boolean} small
   */
  constructor(canvas, small) {
    this.#canvas = canvas;
    this.#small = small;
    this.#still.addEventListener("change", this.#begin);
    this.#wake();
  }

  /** @param {string} state */
  become(state) {
    this.#goal = LOOKS[state] ?? LOOKS.idle;
    this.#wake();
  }

  stop() {
    cancelAnimationFrame(this.#frame);
    this.#still.removeEventListener("change", this.#begin);
  }

  #wake() {
    cancelAnimationFrame(this.#frame);
    this.#frame = requestAnimationFrame((now) => this.#step(now));
  }

  /** @param {number} now */
  #step(now) {
    const still = this.#still.matches;
    const rests = this.#goal === LOOKS.idle && now - this.#last < 45; // idle is calm: fewer pictures do
    if (!rests && this.#canvas.offsetParent) {
      const passed = Math.min((now - this.#last) / 1000, 0.1);
      const glide = still ? 1 : 1 - (1 - GLIDE) ** (passed * 60);
      this.#look = this.#look.map((value, at) => value + (this.#goal[at] - value) * glide);
      this.#phase += still ? 0 : passed * this.#look[5];
      this.#last = now;
      this.#draw();
    }
    if (!still) this.#frame = requestAnimationFrame((next) => this.#step(next));
  }

  #draw() {
    const side = Math.max(1, Math.round(this.#canvas.clientWidth * devicePixelRatio));
    if (this.#canvas.width !== side) this.#canvas.width = this.#canvas.height = side;
    const pen = this.#canvas.getContext("2d");
    if (!pen) return;
    const [hue, colour, light, size, wobble, , pulse, rings, orbit] = this.#look;
    const middle = side / 2;
    const radius =
      middle * size * (this.#small ? 1.25 : 1) * (1 + pulse * Math.sin(this.#phase * 3.1));
    const tint = (more = 0, alpha = 1) =>
      `hsl(${hue} ${colour * 100}% ${(light + more) * 100}% / ${alpha})`;
    pen.clearRect(0, 0, side, side);
    if (!this.#small) glow(pen, middle, radius, tint);
    if (rings > 0.02) waves(pen, middle, radius, this.#phase, rings, tint);
    body(pen, middle, radius, wobble, this.#phase, tint);
    if (orbit > 0.02) moons(pen, middle, radius, this.#phase, orbit, tint);
  }
}

/**
 * @param {Pen} pen
 * @param {number} middle
 * @param {number} radius
 * @param {Tint} tint
 */
function glow(pen, middle, radius, tint) {
  const light = pen.createRadialGradient(middle, middle, radius * 0.6, middle, middle, middle);
  light.addColorStop(0, tint(0, 0.38));
  light.addColorStop(1, tint(0, 0));
  pen.fillStyle = light;
  pen.fillRect(0, 0, middle * 2, middle * 2);
}

/**
 * @param {Pen} pen
 * @param {number} middle
 * @param {number} radius
 * @param {number} phase
 * @param {number} strength
 * @param {Tint} tint
 */
function waves(pen, middle, radius, phase, strength, tint) {
  pen.lineWidth = Math.max(1, middle * 0.012);
  for (let number = 0; number < 3; number++) {
    const way = (phase * 0.35 + number / 3) % 1;
    pen.strokeStyle = tint(0.05, (1 - way) * 0.45 * strength);
    pen.beginPath();
    pen.arc(middle, middle, radius + (middle - radius) * way, 0, Math.PI * 2);
    pen.stroke();
  }
}

/**
 * @param {Pen} pen
 * @param {number} middle
 * @param {number} radius
 * @param {number} wobble
 * @param {number} phase
 * @param {Tint} tint
 */
function body(pen, middle, radius, wobble, phase, tint) {
  pen.beginPath();
  for (let at = 0; at <= POINTS; at++) {
    const angle = (at / POINTS) * Math.PI * 2;
    const slow = Math.sin(angle * 3 + phase * 1.7);
    const quick = 0.6 * Math.sin(angle * 5 - phase * 2.3);
    const wide = 0.4 * Math.sin(angle * 2 + phase);
    const reach = radius * (1 + wobble * (slow + quick + wide));
    pen.lineTo(middle + Math.cos(angle) * reach, middle + Math.sin(angle) * reach);
  }
  pen.closePath();
  const turn = phase * 0.4;
  const [x, y] = [
    middle - radius * 0.35 * Math.cos(turn),
    middle - radius * 0.4 * Math.sin(turn + 1.1),
  ];
  const skin = pen.createRadialGradient(x, y, radius * 0.05, middle, middle, radius * 1.15);
  skin.addColorStop(0, tint(0.27));
  skin.addColorStop(0.5, tint(0));
  skin.addColorStop(1, tint(-0.22));
  pen.fillStyle = skin;
  pen.fill();
}

/**
 * @param {Pen} pen
 * @param {number} middle
 * @param {number} radius
 * @param {number} phase
 * @param {number} strength
 * @param {Tint} tint
 */
function moons(pen, middle, radius, phase, strength, tint) {
  for (let number = 0; number < 3; number++) {
    const angle = phase * 1.8 + (number * Math.PI * 2) / 3;
    const way = radius * 1.32;
    pen.fillStyle = tint(0.1, strength);
    pen.beginPath();
    pen.arc(
      middle + Math.cos(angle) * way,
      middle + Math.sin(angle) * way,
      middle * 0.055 * strength,
      0,
      Math.PI * 2,
    );
    pen.fill();
  }
}
