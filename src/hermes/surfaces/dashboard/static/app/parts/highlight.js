// Syntax highlighting: highlight.js with an emitter that builds a tree instead of HTML. Languages load on demand.
/** @import { Child } from "../../types/page.d.ts" */
import { html, useEffect, useState } from "../ui.js";

const HOME = "/static/vendor/highlightjs-cdn-assets-11.12.0";
const LONGEST_CHARS = 60_000; // characters that are highlighted
const LANGUAGES = new Set(
  [
    "bash c cpp csharp css diff dockerfile go ini java javascript json kotlin lua makefile", // not translated
    "markdown nix php powershell python ruby rust shell sql swift typescript xml yaml", // not translated
  ].flatMap((names) => names.split(" ")),
);
/** @type {Record<string, string>} */
const ALIASES = {
  sh: "bash",
  zsh: "bash",
  "c++": "cpp",
  cc: "cpp",
  h: "c",
  hpp: "cpp",
  cs: "csharp",
  patch: "diff",
  docker: "dockerfile",
  golang: "go",
  toml: "ini",
  cfg: "ini",
  conf: "ini",
  env: "ini",
  js: "javascript",
  mjs: "javascript",
  jsx: "javascript",
  kt: "kotlin",
  make: "makefile",
  md: "markdown",
  ps1: "powershell",
  py: "python",
  python3: "python",
  pycon: "python",
  rb: "ruby",
  rs: "rust",
  console: "shell",
  ts: "typescript",
  tsx: "typescript",
  html: "xml",
  svg: "xml",
  vue: "xml",
  yml: "yaml",
  jsonc: "json",
  json5: "json",
  jsonl: "json",
};

/** @typedef {{ scope: string, children: (string | Node)[] }} Node */

/**
 * The part of highlight.js that is used here.
 * @typedef {object} Engine
 * @property {() => Engine} newInstance
 * @property {(options: object) => void} configure
 * @property {(name: string) => object | undefined} getLanguage
 * @property {(name: string, grammar: Function) => void} registerLanguage
 * @property {(text: string, options: object) => { errorRaised?: unknown, _emitter: Tree }} highlight
 */

class Tree {
  constructor() {
    /** @type {Node} */
    this.root = { scope: "", children: [] };
    this.stack = [this.root];
  }
  get top() {
    return this.stack[this.stack.length - 1];
  }
  /** @param {string} text */
  addText(text) {
    if (text) this.top.children.push(text);
  }
  /** @param {string} scope */
  startScope(scope) {
    /** @type {Node} */
    const node = { scope, children: [] };
    this.top.children.push(node);
    this.stack.push(node);
  }
  endScope() {
    if (this.stack.length > 1) this.stack.pop();
  }
  /** @param {string} scope */
  openNode(scope) {
    this.startScope(scope);
  }
  closeNode() {
    this.endScope();
  }
  /** @param {Tree} other */
  __addSublanguage(other) {
    this.top.children.push(...other.root.children);
  }
  finalize() {
    this.stack.length = 1;
  }
  toHTML() {
    return "";
  }
}

/** @type {Promise<Engine> | null} */
let engine = null;
/** @type {Map<string, Engine>} */
const loaded = new Map();

/** The name under which a language is known here, or "". */
export function languageOf(name = "") {
  const lower = name
    .trim()
    .toLowerCase()
    .split(/[\s,{:]/)[0];
  const found = ALIASES[lower] ?? lower;
  return LANGUAGES.has(found) ? found : "";
}

/** The language of a file, by its name. */
export function languageOfFile(path = "") {
  const name = path.replace(/^.*\//, "").toLowerCase();
  if (name === "dockerfile" || name === "makefile") return name;
  return languageOf(name.includes(".") ? name.split(".").pop() : "");
}

/** @param {string} language */
async function load(language) {
  engine ??= import(`${HOME}/core.js`).then(({ default: core }) => {
    const mine = core.newInstance();
    mine.configure({ __emitter: Tree, classPrefix: "hl-" });
    return mine;
  });
  const core = await engine;
  if (!core.getLanguage(language)) {
    const grammar = await import(`${HOME}/languages/${language}.js`);
    core.registerLanguage(language, grammar.default);
  }
  loaded.set(language, core);
  return core;
}

/**
 * @param {(string | Node)[]} children
 * @returns {Child[]}
 */
function nodes(children) {
  return children.map((child) => {
    if (typeof child === "string") return child;
    return html`<span class=${className(child.scope)}>${nodes(child.children)}</span>`;
  });
}

/**
 * Text as highlighted nodes; plain while its language is loading, if it is unknown, or if the text is long.
 * @param {{ text: string, language: string }} props
 */
export function Highlighted({ text, language }) {
  const name = languageOf(language);
  const [core, setCore] = useState(() => loaded.get(name));
  useEffect(() => {
    let wanted = true;
    setCore(() => loaded.get(name));
    if (name && !loaded.has(name))
      load(name).then(
        (one) => wanted && setCore(() => one),
        () => {},
      );
    return () => {
      wanted = false;
    };
  }, [name]);
  if (!core || !name || !core.getLanguage(name) || text.length > LONGEST_CHARS) return text;
  const found = core.highlight(text, { language: name, ignoreIllegals: true });
  return found.errorRaised ? text : nodes(found._emitter.root.children); // partial highlighting is worse than none
}

/**
 * Loads languages; the component is drawn again when they are there. Returns a number that changes then.
 * @param {string[]} languages
 */
export function useLanguages(languages) {
  const [loads, tick] = useState(0);
  useEffect(() => {
    const missing = languages.filter((name) => name && !loaded.has(name));
    for (const name of missing)
      load(name).then(
        () => tick((count) => count + 1),
        () => {},
      );
  }, [languages.join()]);
  return loads;
}

/**
 * The lines of a text, each as highlighted nodes; null while its language is loading, or if there is none.
 * @param {string} text
 * @param {string} language
 * @returns {Child[][] | null}
 */
export function highlightedLines(text, language) {
  const core = loaded.get(language);
  if (!core || text.length > LONGEST_CHARS) return null;
  const found = core.highlight(text, { language, ignoreIllegals: true });
  if (found.errorRaised) return null;
  /** @type {Child[][]} */
  const lines = [[]];
  const walk = (/** @type {(string | Node)[]} */ children, /** @type {string[]} */ scopes) => {
    for (const child of children) {
      if (typeof child !== "string") {
        walk(child.children, [...scopes, className(child.scope)]);
        continue;
      }
      for (const [index, piece] of child.split("\n").entries()) {
        if (index) lines.push([]);
        if (piece) lines[lines.length - 1].push(wrapped(piece, scopes));
      }
    }
  };
  walk(found._emitter.root.children, []);
  return lines;
}

/** @param {string} scope */
function className(scope) {
  return `hl-${scope.replace(/^language:/, "lang-").replace(/\./g, "-")}`;
}

/**
 * @param {string} text
 * @param {string[]} scopes
 * @returns {Child}
 */
function wrapped(text, scopes) {
  return scopes.reduceRight(
    (/** @type {Child} */ inner, scope) => html`<span class=${scope}>${inner}</span>`,
    text,
  );
}
