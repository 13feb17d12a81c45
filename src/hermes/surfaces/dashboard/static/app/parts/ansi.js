// Program output: terminal colours become CSS classes, and all other terminal codes are removed.
import { html, useMemo } from "../ui.js";

const NAMES = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];
// Sequences with parameters (the last sign says what they do), titles and other strings, and short ones.
const CODES = new RegExp(
  [
    "\\x1b\\[([0-9;:]*)[ -/]*([@-~])",
    "\\x1b\\][^\\x07\\x1b]*(?:\\x07|\\x1b\\\\)",
    "\\x1b[PX^_][^\\x1b]*\\x1b\\\\",
    "\\x1b[@-Z\\\\-_=>78]",
    "\\x1b[()][0-9A-Za-z]",
  ].join("|"),
  "g",
);

/** @typedef {{ bold?: boolean, dim?: boolean, italic?: boolean, underline?: boolean, colour?: string }} Style */

/**
 * Runs of text with the classes they are shown in.
 * @param {string} text
 */
export function readAnsi(text) {
  /** @type {{ text: string, style: string }[]} */
  const runs = [];
  /** @type {Style} */
  let style = {};
  let last = 0;
  /** @param {string} part */
  const push = (part) => {
    if (part) runs.push({ text: part, style: className(style) });
  };
  const clean = settled(text);
  for (const found of clean.matchAll(CODES)) {
    push(clean.slice(last, found.index));
    last = found.index + found[0].length;
    if (found[2] === "m") style = styled(style, found[1]);
  }
  push(clean.slice(last).replace(/\x1b[^\n]{0,20}$/, ""));
  return runs;
}

/**
 * The text that remains on each line after carriage returns and backspaces.
 * @param {string} text
 */
function settled(text) {
  if (!/[\r\x08]/.test(text)) return text;
  return text.replace(/\r+\n/g, "\n").split("\n").map(settledLine).join("\n");
}

/** @param {string} line */
function settledLine(line) {
  const last = line.slice(line.lastIndexOf("\r", line.length - 2) + 1);
  return last.replace(/\r$/, "").replace(/[^\x08]\x08/g, "");
}

/**
 * @param {Style} style
 * @param {string} parameters
 */
function styled(style, parameters) {
  const numbers = (parameters || "0").split(/[;:]/).map(Number);
  let next = { ...style };
  for (let at = 0; at < numbers.length; at++) {
    const number = numbers[at];
    if (number === 0) next = {};
    else if (number === 1) next.bold = true;
    else if (number === 2) next.dim = true;
    else if (number === 3) next.italic = true;
    else if (number === 4) next.underline = true;
    else if (number === 22) next.bold = next.dim = false;
    else if (number === 23) next.italic = false;
    else if (number === 24) next.underline = false;
    else if (number >= 30 && number <= 37) next.colour = NAMES[number - 30];
    else if (number >= 90 && number <= 97) next.colour = NAMES[number - 90];
    else if (number === 39) next.colour = "";
    // Exact colours may be unreadable on our background.
    else if (number === 38 || number === 48) at += numbers[at + 1] === 5 ? 2 : 4;
  }
  return next;
}

/** @param {Style} style */
function className({ bold, dim, italic, underline, colour }) {
  return [
    bold && "a-bold",
    dim && "a-dim",
    italic && "a-italic",
    underline && "a-underline",
    colour && `a-${colour}`,
  ]
    .filter(Boolean)
    .join(" ");
}

/**
 * Output as a terminal would have shown it.
 * @param {{ text: string }} props
 */
export function Ansi({ text }) {
  const runs = useMemo(() => readAnsi(text), [text]);
  return runs.map((run) =>
    run.style ? html`<span class=${run.style}>${run.text}</span>` : run.text,
  );
}
