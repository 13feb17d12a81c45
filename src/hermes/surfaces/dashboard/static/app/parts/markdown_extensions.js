// What marked does not know by itself: formulas and footnotes.
/** @import { TokenizerAndRendererExtension } from "/static/vendor/marked-18.2.0/marked.js" */

// Neither holds an empty line, so that an opening sign alone takes at most its own paragraph.
const DISPLAY =
  /^ {0,3}(?:\$\$((?:(?!\n[ \t]*\n)[\s\S])+?)\$\$|\\\[((?:(?!\n[ \t]*\n)[\s\S])+?)\\\])[ \t]*(?:\n+|$)/;
const INLINE_DISPLAY =
  /^(?:\$\$((?:(?!\n[ \t]*\n)[\s\S])+?)\$\$|\\\[((?:(?!\n[ \t]*\n)[\s\S])+?)\\\])/;
const PARENTHESES = /^\\\(((?:(?!\n[ \t]*\n)[\s\S])+?)\\\)/;
// As most programs read it: no space inside the signs, and no word or number right behind, so that prices stay text.
const DOLLARS = /^\$(?![\s$])((?:\\.|[^\\$\n]|\n(?![ \t]*\n)){0,1000}?)(?<!\s)\$(?![\w$])/;
const NOTE = /^\[\^([^\]\s]{1,60})\]:[ \t]*([^\n]*(?:\n(?:[ \t]*\n)?(?: {2,}|\t)[^\n]+)*)(?:\n+|$)/;
const NOTE_MARK = /^\[\^([^\]\s]{1,60})\]/;

/** @type {TokenizerAndRendererExtension} */
const displayFormula = {
  name: "displayFormula",
  level: "block",
  start: (text) => indexOf(text, /^ {0,3}(?:\$\$|\\\[)/m),
  tokenizer(text) {
    const found = DISPLAY.exec(text);
    return found
      ? { type: "displayFormula", raw: found[0], text: found[1] ?? found[2] }
      : undefined;
  },
};

/** @type {TokenizerAndRendererExtension} */
const formula = {
  name: "formula",
  level: "inline",
  start: (text) => indexOf(text, /(?<![\w\\$])\$(?!\s)|\\[([]/),
  tokenizer(text) {
    const display = INLINE_DISPLAY.exec(text);
    if (display)
      return { type: "formula", raw: display[0], text: display[1] ?? display[2], display: true };
    const found = PARENTHESES.exec(text) ?? DOLLARS.exec(text);
    return found?.[1] ? { type: "formula", raw: found[0], text: found[1] } : undefined;
  },
};

/** @type {TokenizerAndRendererExtension} */
const footnote = {
  name: "footnote",
  level: "block",
  start: (text) => indexOf(text, /^\[\^[^\]\s]+\]:/m),
  tokenizer(text) {
    const found = NOTE.exec(text);
    if (!found) return undefined;
    const tokens = this.lexer.blockTokens(found[2].replace(/\n(?: {1,4}|\t)/g, "\n"), []);
    return { type: "footnote", raw: found[0], label: found[1], tokens };
  },
};

/** @type {TokenizerAndRendererExtension} */
const footnoteMark = {
  name: "footnoteMark",
  level: "inline",
  start: (text) => indexOf(text, /\[\^/),
  tokenizer(text) {
    const found = NOTE_MARK.exec(text);
    return found ? { type: "footnoteMark", raw: found[0], label: found[1] } : undefined;
  },
};

export const EXTENSIONS = [displayFormula, formula, footnote, footnoteMark];

/**
 * @param {string} text
 * @param {RegExp} pattern
 */
function indexOf(text, pattern) {
  const at = text.search(pattern);
  return at < 0 ? undefined : at;
}
