// Text with the words that were searched for marked in it.
import { html } from "../../app/ui.js";

/**
 * A pattern for the words of a search, or null without any.
 * @param {string} query
 */
export function wordsOf(query) {
  const words = query.match(/[\p{L}\p{N}_]+/gu);
  if (!words) return null;
  const longest = [...new Set(words)].sort((a, b) => b.length - a.length);
  return new RegExp(`(${longest.join("|")})`, "giu");
}

/**
 * `pattern` comes from `wordsOf`.
 * @param {{ text: string, pattern: RegExp | null }} props
 */
export function Marked({ text, pattern }) {
  if (!pattern) return text;
  // Splitting by a group leaves what matched at the odd places.
  return text.split(pattern).map((part, index) => (index % 2 ? html`<mark>${part}</mark>` : part));
}
