// The page's sentences in the browser's language. English is what stands in the code; for any other language the server
// adds a script to the page that sets `hermesSentences`.
/** @import { Child } from "../types/page.d.ts" */

/**
 * @typedef {{
 *   language: string,
 *   forms: string[],
 *   sentences: Record<string, string | string[]>,
 *   reasons?: Record<string, string>,
 *   scopes?: Record<string, string>,
 * }} Catalogue
 */
/** @typedef {Record<string, string | number>} Values */

const catalogue = /** @type {{ hermesSentences?: Catalogue }} */ (globalThis).hermesSentences;
/** @type {Intl.PluralRules | undefined} */
let plurals; // made when it is first used: that takes long

const MAX_REASON_LENGTH = 2000;

/** The code of the page's language. */
export const language = catalogue?.language ?? "en";

/**
 * A sentence with its values: `t("Hello, {name}", { name })`, or with a plural that the value `count` chooses:
 * `t("{count} file", "{count} files", { count })`.
 * @param {string} text
 * @param {string | Values} [second]
 * @param {Values} [third]
 */
export function t(text, second, third) {
  const plural = typeof second === "string" ? second : null;
  const values = typeof second === "string" ? third : second;
  const found = plural === null ? sentence(text) : form(text, plural, Number(values?.count));
  if (!values) return found;
  return found.replace(/\{(\w+)\}/g, (whole, name) => String(values[name] ?? whole));
}

/**
 * A sentence with elements in its places: `withElements(t("seen {time}"), { time: html`…` })`.
 * @param {string} text
 * @param {Record<string, Child>} elements
 * @returns {Child[]}
 */
export function withElements(text, elements) {
  return text
    .split(/\{(\w+)\}/)
    .map((part, index) => (index % 2 ? (elements[part] ?? `{${part}}`) : part));
}

/**
 * Why a person is asked, in the page's language. Only for showing: the hash of a request has the English text.
 * @param {string} text
 * @returns {string}
 */
export function shownReason(text) {
  const known = Object.entries(catalogue?.reasons ?? {});
  if (known.length === 0 || text.length > MAX_REASON_LENGTH) return text;
  const whole = reasonAs(known, text);
  if (whole !== null) return whole;
  const end = text.indexOf(". "); // what is wrong with the rules may follow
  const first = end > 0 ? reasonAs(known, text.slice(0, end)) : null;
  if (first !== null) return `${first}${text.slice(end)}`;
  const bracket = text.lastIndexOf(" ("); // codex's wish, and the policy's concern behind it
  if (bracket < 0 || !text.endsWith(")")) return text;
  return `${shownReason(text.slice(0, bracket))} (${shownReason(text.slice(bracket + 2, -1))})`;
}

/**
 * What a lasting answer covers, in the page's language. Commands and names in it stay as they are.
 * @param {string} text
 * @returns {string}
 */
export function shownScope(text) {
  const known = Object.entries(catalogue?.scopes ?? {});
  if (known.length === 0) return text;
  const reasons = Object.entries(catalogue?.reasons ?? {});
  const bracket = text.endsWith(")") ? text.lastIndexOf(" (") : -1;
  if (bracket > 0) {
    const why = text
      .slice(bracket + 2, -1)
      .split("; ")
      .map((one) => reasonAs(reasons, one));
    const what = text.slice(0, bracket);
    if (!why.includes(null)) return `${scopeAs(known, what)} (${why.join("; ")})`;
  }
  return scopeAs(known, text);
}

/**
 * A text as the one of a few sentences that it is; unchanged if it is none.
 * @param {[string, string][]} known
 * @param {string} text
 */
function scopeAs(known, text) {
  for (const [english, translated] of known) {
    const parts = english.split(/\{(\w+)\}/);
    const words = parts.filter((_, index) => index % 2 === 0);
    const values = new RegExp(`^${words.map(literal).join("(.+)")}$`, "s").exec(text);
    if (!values) continue;
    const names = parts.filter((_, index) => index % 2);
    return translated.replace(
      /\{(\w+)\}/g,
      (place, name) => values[names.indexOf(name) + 1] ?? place,
    );
  }
  return text;
}

/**
 * A text as the sentence that shares the most with it; null if it is none.
 * @param {[string, string][]} known
 * @param {string} text
 */
function reasonAs(known, text) {
  let [most, found] = [0, /** @type {string | null} */ (null)];
  for (const [english, translated] of known) {
    const parts = english.split(/\{(\w+)\}/); // words and names by turns
    const words = parts.filter((_, index) => index % 2 === 0);
    const length = words.join("").length;
    if (length <= most || !text.startsWith(words[0]) || !text.endsWith(words.at(-1) ?? ""))
      continue;
    const values = new RegExp(`^${words.map(literal).join("(.+?)")}$`, "s").exec(text);
    if (!values) continue;
    const named = Object.fromEntries(
      parts.filter((_, index) => index % 2).map((name, index) => [name, values[index + 1]]),
    );
    most = length;
    found = translated.replace(/\{(\w+)\}/g, (place, name) => named[name] ?? place);
  }
  return found;
}

/** @param {string} text */
const literal = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

/** @param {string} text */
function sentence(text) {
  const found = catalogue?.sentences[text];
  return typeof found === "string" ? found : text;
}

/**
 * @param {string} one
 * @param {string} many
 * @param {number} count
 */
function form(one, many, count) {
  const found = catalogue?.sentences[one];
  if (!Array.isArray(found)) return count === 1 ? one : many;
  plurals ??= new Intl.PluralRules(language);
  const place = catalogue?.forms.indexOf(plurals.select(count)) ?? -1;
  return found[place] ?? found[found.length - 1] ?? many;
}
