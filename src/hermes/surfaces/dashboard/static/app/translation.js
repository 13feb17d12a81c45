// The page's sentences in the browser's language. English is what stands in the code; for any other language the server
// adds a script to the page that sets `hermesSentences`.
/** @import { Child } from "../types/page.d.ts" */

/** @typedef {{ language: string, forms: string[], sentences: Record<string, string | string[]> }} Catalogue */
/** @typedef {Record<string, string | number>} Values */

const catalogue = /** @type {{ hermesSentences?: Catalogue }} */ (globalThis).hermesSentences;
/** @type {Intl.PluralRules | undefined} */
let plurals; // made when it is first used: that takes long

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
