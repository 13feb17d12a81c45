// Renders Markdown as nodes. marked only splits the text into tokens; HTML in it is shown as text.
/** @import { Child } from "../../types/page.d.ts" */

import { Lexer, Marked } from "/static/vendor/marked-18.2.0/marked.js";
import { t } from "../translation.js";
import { html, memo, useMemo, useRef, useState } from "../ui.js";
import { Code } from "./code.js";
import { Distant } from "./distant.js";
import { Formula } from "./formula.js";
import { EXTENSIONS } from "./markdown_extensions.js";

/** @import { Token, Tokens } from "/static/vendor/marked-18.2.0/marked.js" */
/** @import { LongText } from "./long_text.js" */

const SAFE = /^(https?:|mailto:)/i;
/** @type {Record<string, string>} */
const ENTITIES = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
  nbsp: "\u00a0",
  hellip: "…",
  mdash: "—",
  ndash: "–",
  copy: "©",
  reg: "®",
  times: "×",
  rarr: "→",
  larr: "←",
  middot: "·",
  bull: "•",
  deg: "°",
  euro: "€",
  trade: "™",
};
const OPTIONS = new Marked({ gfm: true, breaks: false, extensions: EXTENSIONS }).defaults;
const GROUP = 32; // blocks that are drawn together
const LONG = 4 * GROUP; // blocks from which only those near what is seen are drawn
const BLOCKS = new Set(["heading", "paragraph", "code", "blockquote", "footnote", "html"]);
const OPEN = 2; // blocks at the end that may still change while they are written

/** Text of a token: character references become characters. */
export function plain(text = "") {
  return text.replace(
    /&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|([a-z]+));/gi,
    (whole, decimal, hex, name) => {
      const code = decimal ? Number(decimal) : hex ? parseInt(hex, 16) : 0;
      if (code > 0 && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff))
        return String.fromCodePoint(code);
      return (name && ENTITIES[name]) ?? whole;
    },
  );
}

/**
 * @param {Token} token
 * @returns {token is Token & { tokens: Token[] }}
 */
function hasTokens(token) {
  return "tokens" in token && Array.isArray(token.tokens);
}

/** @param {Token} token */
function textOf(token) {
  return "text" in token && typeof token.text === "string" ? token.text : token.raw;
}

/** A link target that is safe to follow, or "". */
export function safeLink(href = "") {
  const clean = plain(href).replace(/[\u0000-\u0020\u007f]/g, "");
  return SAFE.test(clean) ? plain(href) : "";
}

const STRONG =
  /[A-Za-z\u00c0-\u058f\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u3040-\u9fff\uac00-\ud7af]/;
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;

/**
 * The direction of a block by its first letter. `dir="auto"` does not look into children with a direction of their own.
 * @param {string} raw
 */
function directionOf(raw) {
  return RIGHT_TO_LEFT.test(STRONG.exec(raw)?.[0] ?? "") ? "rtl" : "ltr";
}

/**
 * @param {Token[]} [tokens]
 * @returns {Child[]}
 */
function inline(tokens = []) {
  return tokens.map((token, index) => inlineOne(token, index));
}

/**
 * @param {Token} token
 * @param {number} key
 * @returns {Child}
 */
function inlineOne(token, key) {
  switch (token.type) {
    case "strong":
      return html`<strong key=${key}>${inline(token.tokens)}</strong>`;
    case "em":
      return html`<em key=${key}>${inline(token.tokens)}</em>`;
    case "del":
      return html`<del key=${key}>${inline(token.tokens)}</del>`;
    case "codespan":
      return html`<code key=${key}>${token.text}</code>`;
    case "br":
      return html`<br key=${key} />`;
    case "link":
      return link(/** @type {Tokens.Link} */ (token), key);
    case "image":
      return picture(/** @type {Tokens.Image} */ (token), key);
    case "escape":
      return plain(token.text);
    case "html":
      return token.raw;
    case "checkbox":
      return checkbox(token.checked, key);
    case "formula":
      return html`<${Formula} key=${key} text=${token.text} display=${token.display} />`;
    case "footnoteMark":
      return html`<${FootnoteMark} key=${key} label=${token.label} />`;
    default:
      return hasTokens(token) ? inline(token.tokens) : plain(textOf(token));
  }
}

/**
 * @param {Pick<Tokens.Link, "href" | "tokens"> & { title?: string | null }} token
 * @param {number} key
 */
function link(token, key) {
  const href = safeLink(token.href);
  const words = inline(token.tokens);
  if (!href) return html`<span key=${key}>${words}</span>`;
  const title = token.title ? plain(token.title) : href;
  return html`
    <a key=${key} href=${href} title=${title} target="_blank" rel="noopener noreferrer nofollow">${words}</a>
  `;
}

/**
 * A link to a picture. The picture is not loaded, because its URL could leak data.
 * @param {Tokens.Image} token
 * @param {number} key
 */
function picture({ href, text }, key) {
  const words = [{ type: "text", raw: text || href, text: text || href }];
  const way = safeLink(href) ? link({ href, tokens: words }, 0) : plain(text);
  return html`<span key=${key} class="md-picture">${way}</span>`;
}

/**
 * @param {boolean | undefined} checked
 * @param {number} [key]
 */
function checkbox(checked, key) {
  const label = checked ? t("done") : t("to do");
  return html`<input key=${key} type="checkbox" disabled checked=${checked} aria-label=${label} />`;
}

/**
 * @param {Token} token
 * @param {number} key
 * @param {boolean} open
 * @returns {Child}
 */
function block(token, key, open) {
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "heading":
      // Below the headings of the page itself.
      return html`<${`h${Math.min(6, token.depth + 2)}`} key=${key} dir="auto">${inline(token.tokens)}<//>`;
    case "paragraph":
      return html`<p key=${key} dir="auto">${inline(token.tokens)}</p>`;
    case "code":
      return html`<${Code} key=${key} text=${token.text} language=${(token.lang ?? "").split(/\s/)[0]} open=${open} />`;
    case "blockquote":
      return html`<blockquote key=${key} dir=${directionOf(token.raw)}>${blocks(token.tokens, open)}</blockquote>`;
    case "list":
      return list(/** @type {Tokens.List} */ (token), key, open);
    case "table":
      return table(/** @type {Tokens.Table} */ (token), key);
    case "displayFormula":
      return html`<div key=${key}><${Formula} text=${token.text} display /></div>`;
    case "footnote":
      return html`<${Footnote} key=${key} label=${token.label}>${blocks(token.tokens, open)}<//>`;
    case "hr":
      return html`<hr key=${key} />`;
    case "html":
      return html`<p key=${key} class="md-raw">${token.raw.trimEnd()}</p>`;
    default:
      return hasTokens(token)
        ? inline(token.tokens)
        : html`<p key=${key} dir="auto">${plain(textOf(token))}</p>`;
  }
}

/**
 * @param {Token[]} [tokens]
 * @param {boolean} [open]
 */
function blocks(tokens = [], open = false) {
  return tokens.map((token, index) => block(token, index, open));
}

/**
 * @param {Tokens.List} token
 * @param {number} key
 * @param {boolean} open
 */
function list(token, key, open) {
  const items = token.items.map(
    (item, index) => html`
    <li key=${index} dir="auto" class=${item.task ? "task" : ""}>
      ${item.task && !hasCheckbox(item) ? html`${checkbox(item.checked)} ` : null}
      ${item.tokens.map((one, at) => listPart(one, at, open))}
    </li>
  `,
  );
  const dir = directionOf(token.raw);
  if (token.ordered) return html`<ol key=${key} dir=${dir} start=${token.start || 1}>${items}</ol>`;
  return html`<ul key=${key} dir=${dir}>${items}</ul>`;
}

/** @param {Tokens.ListItem} item */
function hasCheckbox(item) {
  return item.tokens?.some(
    (one) => one.type === "checkbox" || (hasTokens(one) && one.tokens[0]?.type === "checkbox"),
  );
}

/**
 * @param {Token} token
 * @param {number} key
 * @param {boolean} open
 */
function listPart(token, key, open) {
  if (token.type === "text" && token.tokens) return inline(token.tokens);
  return token.type === "checkbox" ? inlineOne(token, key) : block(token, key, open);
}

/**
 * @param {Tokens.Table} token
 * @param {number} key
 */
function table(token, key) {
  const cell =
    (/** @type {string} */ kind) =>
    (/** @type {Tokens.TableCell} */ one, /** @type {number} */ index) => {
      const align = token.align[index];
      return html`<${kind} key=${index} dir="auto" class=${align ? `align-${align}` : ""}>${inline(one.tokens)}<//>`;
    };
  return html`
    <div key=${key} class="md-table" tabindex="0" role="region" aria-label=${t("Table")}>
      <table dir=${directionOf(token.raw)}>
        <thead>
          <tr>${token.header.map(cell("th"))}</tr>
        </thead>
        <tbody>${token.rows.map((row, index) => html`<tr key=${index}>${row.map(cell("td"))}</tr>`)}</tbody>
      </table>
    </div>
  `;
}

/**
 * Goes from a footnote to its mark or back. Addresses can't do that: they name the views of the page.
 * @param {Event} event
 * @param {string} selector
 */
function follow(event, selector) {
  const from = event.currentTarget instanceof Element ? event.currentTarget : null;
  const target = from?.closest(".markdown")?.querySelector(selector);
  if (!(target instanceof HTMLElement)) return;
  target.scrollIntoView({ block: "nearest" });
  target.focus({ preventScroll: true });
}

/** @param {{ label: string }} props */
function FootnoteMark({ label }) {
  const go = (/** @type {Event} */ event) =>
    follow(event, `.footnote[data-label="${CSS.escape(label)}"]`);
  return html`
    <sup><button type="button" class="footnote-mark" data-label=${label} aria-label=${t("Footnote {label}", { label })}
      onClick=${go}>${label}</button></sup>
  `;
}

/** @param {{ label: string, children?: Child }} props */
function Footnote({ label, children }) {
  const back = (/** @type {Event} */ event) =>
    follow(event, `.footnote-mark[data-label="${CSS.escape(label)}"]`);
  return html`
    <div class="footnote" role="note" aria-label=${t("Footnote {label}", { label })} data-label=${label} tabindex="-1">
      <button type="button" class="footnote-back" aria-label=${t("Back to the mark of footnote {label}", { label })}
        onClick=${back}>${label}</button>
      <div>${children}</div>
    </div>
  `;
}

/** The tokens of a growing LongText: finished blocks are not parsed again. */
export class Growing {
  /** @type {Token[]} */
  settled = [];
  #at = 0;
  #origin = 0;

  /**
   * Updates to the current text. Returns the tokens at its end that may still change.
   * @param {LongText} text
   */
  grow(text) {
    if (text.origin !== this.#origin) {
      this.settled = [];
      this.#at = 0;
      this.#origin = text.origin;
    }
    const fresh = Lexer.lex(text.from(this.#at), OPTIONS);
    const solid = fresh.filter((token) => token.type !== "space").length - OPEN;
    for (let passed = 0; passed < solid && fresh.length > 1; ) {
      const token = fresh.shift();
      if (!token) break;
      if (token.type !== "space") passed++;
      this.settled.push(token);
      this.#at += token.raw.length;
    }
    return fresh;
  }
}

const Block = memo(
  /** @param {{ token: Token, open: boolean }} props */
  ({ token, open }) => block(token, 0, open),
);

/** @param {Token[]} tokens */
function settledBlocks(tokens) {
  return tokens.map((token, index) => html`<${Block} key=${index} token=${token} open=${false} />`);
}

/**
 * Markdown. With `open`, `text` is a LongText and more of it is still to come.
 * @param {{ text: string | LongText, open?: boolean }} props
 */
export function Markdown({ text, open = false }) {
  return html`<div class="markdown"><${open ? StreamingMarkdown : FinishedMarkdown} text=${text} /></div>`;
}

/** @param {{ text: string }} props */
function FinishedMarkdown({ text }) {
  const tokens = useMemo(() => Lexer.lex(text, OPTIONS), [text]);
  const groups = useMemo(() => (tokens.length > LONG ? grouped(tokens) : null), [tokens]);
  if (!groups) return settledBlocks(tokens);
  return groups.map(
    (group, index) =>
      html`<${Group} key=${index} tokens=${group} isNew=${index === groups.length - 1} />`,
  );
}

/** @param {Token[]} tokens */
function grouped(tokens) {
  const groups = [];
  for (let at = 0; at < tokens.length; at += GROUP) groups.push(tokens.slice(at, at + GROUP));
  return groups;
}

/**
 * What tokens read like when they are drawn, as one text.
 * @param {Token[]} tokens
 * @returns {string}
 */
function wordsOf(tokens) {
  return tokens.map(wordsOfOne).join("");
}

/** @param {Token} token */
function wordsOfOne(token) {
  if (token.type === "list")
    return token.items
      .map((/** @type {Tokens.ListItem} */ item) => `${wordsOf(item.tokens)}\n`)
      .join("");
  if (token.type === "table")
    return [token.header, ...token.rows]
      .map((row) =>
        row.map((/** @type {Tokens.TableCell} */ cell) => wordsOf(cell.tokens)).join(" "),
      )
      .join("\n");
  const text = hasTokens(token) ? wordsOf(token.tokens) : plain(textOf(token));
  return BLOCKS.has(token.type) ? `${text}\n` : text;
}

/** Settled blocks that are drawn together, and behind them those in `open`, which may still change. */
const Group = memo(
  /** @param {{ tokens: Token[], open?: Token[], isNew: boolean }} props */
  ({ tokens, open, isNew }) => {
    const chars = open ? 0 : tokens.reduce((sum, token) => sum + token.raw.length, 0);
    const draw = () => [...settledBlocks(tokens), ...openBlocks(open ?? [], tokens.length)];
    const words = () => wordsOf(tokens);
    return html`<${Distant} chars=${chars} draw=${draw} words=${words} isNew=${isNew} isGrowing=${Boolean(open)} />`;
  },
);

/**
 * @param {Token[]} tokens
 * @param {number} first the key of the first
 */
function openBlocks(tokens, first) {
  const last = tokens.length - 1;
  return tokens.map(
    (token, index) => html`<${Block} key=${first + index} token=${token} open=${index === last} />`,
  );
}

/**
 * Text being streamed. Blocks are drawn in groups, and one that is settled is not drawn again, so that the cost of a
 * new piece does not grow with the text. The last group grows until it is full; its elements stay when it is.
 * @param {{ text: LongText }} props
 */
function StreamingMarkdown({ text }) {
  const [growing] = useState(() => new Growing());
  const full = useRef(/** @type {Token[][]} */ ([])); // the groups that are settled
  const open = useMemo(() => growing.grow(text), [text]);
  const { settled } = growing;
  if (full.current.length && full.current[0][0] !== settled[0]) full.current = []; // of another text
  while ((full.current.length + 1) * GROUP <= settled.length) {
    const begun = full.current.length * GROUP;
    full.current.push(settled.slice(begun, begun + GROUP));
  }
  const last = full.current.length;
  const rest = settled.slice(last * GROUP);
  return [
    ...full.current.map((tokens, index) => html`<${Group} key=${index} tokens=${tokens} isNew />`),
    html`<${Group} key=${last} tokens=${rest} open=${open} isNew />`,
  ];
}
