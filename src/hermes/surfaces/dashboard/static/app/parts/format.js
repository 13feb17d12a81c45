// Formats numbers and times for people.
/** @type {[number, Intl.RelativeTimeFormatUnit][]} */
const STEPS = [
  [60, "second"],
  [60, "minute"],
  [24, "hour"],
  [7, "day"],
  [4.35, "week"],
  [12, "month"],
  [Infinity, "year"],
];
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "short" });

/**
 * @param {number} at
 * @param {number} [now]
 */
export function ago(at, now = Date.now() / 1000) {
  let distance = at - now;
  if (Math.abs(distance) < 10) return "now";
  for (const [count, unit] of STEPS) {
    if (Math.abs(distance) < count) return relative.format(Math.round(distance), unit);
    distance /= count;
  }
  return "";
}

/** @type {Intl.DateTimeFormat | undefined} */
let inDetail; // making one takes as long as hundreds of uses

/** @param {number} at */
export function absolute(at) {
  inDetail ??= new Intl.DateTimeFormat(undefined, {
    dateStyle: "medium",
    timeStyle: "medium",
    hourCycle: "h23",
  });
  return inDetail.format(at * 1000);
}

/**
 * The time of day, always of the same width.
 * @param {number} at
 */
export function clock(at) {
  return new Date(at * 1000).toTimeString().slice(0, 8);
}

/**
 * Dollars; small amounts get more digits.
 * @param {number | null | undefined} amount
 */
export function money(amount) {
  if (amount === null || amount === undefined) return "unknown";
  if (amount === 0) return "$0";
  const size = Math.abs(amount);
  if (size < 0.0001) return "<$0.0001";
  return `$${amount.toFixed(size < 0.01 ? 4 : size < 1 ? 3 : 2)}`;
}

/**
 * A number of bytes.
 * @param {number} bytes
 */
export function size(bytes) {
  let rest = bytes;
  for (const unit of ["B", "KB", "MB", "GB"]) {
    const shown = unit === "B" || rest >= 100 ? Math.round(rest) : rest.toFixed(1);
    if (rest < 1024 || unit === "GB") return `${shown} ${unit}`;
    rest /= 1024;
  }
  return "";
}

/**
 * A number of seconds.
 * @param {number} seconds
 */
export function duration(seconds) {
  if (seconds < 1) return `${Math.max(1, Math.round(seconds * 1000))} ms`;
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.round((seconds % 3600) / 60)} min`;
}

/**
 * A short form of a count: 1.2k, 3.4M.
 * @param {number} number
 */
export function count(number) {
  if (number < 1000) return String(number);
  if (number < 1_000_000) return `${(number / 1000).toFixed(number < 10_000 ? 1 : 0)}k`;
  return `${(number / 1_000_000).toFixed(1).replace(/\.0$/, "")}M`;
}

/**
 * A count of tokens in short: 1 token, 1.2k tokens.
 * @param {number} number
 */
export function tokens(number) {
  return `${count(number)} ${number === 1 ? "token" : "tokens"}`;
}

/**
 * A number with all its digits: 12,345.
 * @param {number} number
 */
export function inFull(number) {
  return number.toLocaleString("en");
}

/**
 * One or many: `plural(2, "file")`.
 * @param {number} number
 * @param {string} word
 * @param {string} [many]
 */
export function plural(number, word, many = `${word}s`) {
  return `${number} ${number === 1 ? word : many}`;
}
