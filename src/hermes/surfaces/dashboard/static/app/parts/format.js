// Formats numbers and times for people, in the page's language.
import { language, t } from "../translation.js";

/** The page's language, as the browser's region writes it. Digits are those of the rest of the page. */
const LOCALES = [
  ...navigator.languages.filter((tag) => tag.split("-")[0] === language.split("-")[0]),
  language,
];
const DIGITS = /** @type {const} */ ({ numberingSystem: "latn" });
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
/** @type {Intl.RelativeTimeFormat | undefined} */
let relative; // made when it is first used: that takes long

/**
 * @param {number} at
 * @param {number} [now]
 */
export function ago(at, now = Date.now() / 1000) {
  let distance = at - now;
  if (Math.abs(distance) < 10) return t("now");
  relative ??= new Intl.RelativeTimeFormat(language, {
    ...DIGITS,
    numeric: "auto",
    style: "short",
  });
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
  inDetail ??= new Intl.DateTimeFormat(LOCALES, {
    ...DIGITS,
    dateStyle: "medium",
    timeStyle: "medium",
    hourCycle: "h23",
  });
  return inDetail.format(at * 1000);
}

/** @type {Intl.DateTimeFormat | undefined} */
let inMonths;

/**
 * The month and its year; `at` is in milliseconds.
 * @param {number} at
 */
export function month(at) {
  inMonths ??= new Intl.DateTimeFormat(LOCALES, { ...DIGITS, month: "long", year: "numeric" });
  return inMonths.format(at);
}

/**
 * The time of day, always of the same width.
 * @param {number} at
 */
export function clock(at) {
  return new Date(at * 1000).toTimeString().slice(0, 8);
}

/** @type {Map<string, Intl.NumberFormat>} */
const byDigits = new Map();

/**
 * A number with so many digits behind the point, or the comma.
 * @param {number} number
 * @param {number} most
 * @param {number} [least]
 */
export function decimal(number, most, least = most) {
  const key = `${least} ${most}`;
  const format = byDigits.get(key) ?? decimalFormat(most, least);
  byDigits.set(key, format);
  return format.format(number);
}

/**
 * @param {number} most
 * @param {number} least
 */
function decimalFormat(most, least) {
  return new Intl.NumberFormat(language, {
    ...DIGITS,
    minimumFractionDigits: least,
    maximumFractionDigits: most,
    useGrouping: false,
  });
}

/**
 * Dollars; small amounts get more digits.
 * @param {number | null | undefined} amount
 */
export function money(amount) {
  if (amount === null || amount === undefined) return t("unknown");
  if (amount === 0) return "$0";
  const size = Math.abs(amount);
  if (size < 0.0001) return `<$${decimal(0.0001, 4)}`;
  return `$${decimal(amount, size < 0.01 ? 4 : size < 1 ? 3 : 2)}`;
}

/**
 * A number of bytes.
 * @param {number} bytes
 */
export function size(bytes) {
  let rest = bytes;
  for (const unit of ["B", "KB", "MB", "GB"]) {
    const shown = unit === "B" || rest >= 100 ? Math.round(rest) : decimal(rest, 1);
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
  if (seconds < 1) return t("{number} ms", { number: Math.max(1, Math.round(seconds * 1000)) });
  if (seconds < 60) return t("{number} s", { number: decimal(seconds, seconds < 10 ? 1 : 0) });
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60)];
  if (!hours) return t("{minutes} min {seconds} s", { minutes, seconds: Math.round(seconds % 60) });
  return t("{hours} h {minutes} min", { hours, minutes: Math.round((seconds % 3600) / 60) });
}

/**
 * A short form of a count: 1.2k, 3.4M.
 * @param {number} number
 */
export function count(number) {
  if (number < 1000) return String(number);
  if (number < 1_000_000) return `${decimal(number / 1000, number < 10_000 ? 1 : 0)}k`;
  return `${decimal(number / 1_000_000, 1, 0)}M`;
}

/**
 * A count of tokens in short: 1 token, 1.2k tokens.
 * @param {number} number
 */
export function tokens(number) {
  return t("{count} token", "{count} tokens", { count: count(number) });
}

/**
 * A number with all its digits: 12,345.
 * @param {number} number
 */
export function inFull(number) {
  return number.toLocaleString(language, DIGITS);
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
