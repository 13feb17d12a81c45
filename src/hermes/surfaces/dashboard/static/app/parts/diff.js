// A unified diff as rows. Lines are text, coloured by the language of their file; nothing in them is markup.
/** @import { Child } from "../../types/page.d.ts" */
import { t } from "../translation.js";
import { html, useMemo, useState } from "../ui.js";
import { Button } from "./basics.js";
import { highlightedLines, languageOfFile, useLanguages } from "./highlight.js";

const MOST_LINES = 400; // lines shown at first
const META = /^(diff |index |new file|deleted file|similarity |rename |old mode|new mode)/;
const FILE = /^(---|\+\+\+) /;
const NEXT_FILE = /^--- (a\/|\/dev\/null|")/; // ends a hunk; any other `--- ` inside one is a removed line

/** @typedef {{ kind: string, text: string, was?: number, now?: number }} DiffRow */

/**
 * Lines of a diff with their kind and numbers.
 * @param {string} text
 * @returns {DiffRow[]}
 */
export function readDiff(text) {
  /** @type {DiffRow[]} */
  const rows = [];
  let was = 0;
  let now = 0;
  let inside = false;
  for (const line of text.replace(/\n$/, "").split("\n")) {
    const hunk = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/.exec(line);
    if (hunk) {
      [was, now] = [Number(hunk[1]), Number(hunk[2])];
      inside = true;
      rows.push({ kind: "hunk", text: line });
    } else if (META.test(line) || (!inside && FILE.test(line))) {
      inside = false;
      rows.push({ kind: FILE.test(line) ? "file" : "meta", text: line });
    } else if (NEXT_FILE.test(line)) {
      inside = false;
      rows.push({ kind: "file", text: line });
    } else if (line.startsWith("+")) rows.push({ kind: "add", text: line.slice(1), now: now++ });
    else if (line.startsWith("-")) rows.push({ kind: "del", text: line.slice(1), was: was++ });
    else if (line.startsWith("\\")) rows.push({ kind: "meta", text: line });
    else rows.push({ kind: "same", text: line.replace(/^ /, ""), was: was++, now: now++ });
  }
  return rows;
}

/**
 * The language of each row, by the name of the file above it.
 * @param {DiffRow[]} rows
 * @param {string} path of the file, if there is only one
 */
function languagesOf(rows, path) {
  let language = languageOfFile(path);
  return rows.map(({ kind, text }) => {
    const name = /^(?:\+\+\+|---) (?:[ab]\/)?(.+)$/.exec(kind === "file" ? text : "")?.[1];
    if (name && name !== "/dev/null") language = languageOfFile(name);
    return language;
  });
}

/**
 * The rows as nodes. Both sides of each part are highlighted whole, as a line alone may be inside of something.
 * @param {DiffRow[]} rows
 * @param {string[]} languages
 * @returns {(Child[] | undefined)[]}
 */
function colouredRows(rows, languages) {
  /** @type {(Child[] | undefined)[]} */
  const coloured = [];
  for (const side of ["del", "add"]) {
    for (let at = 0; at < rows.length; ) {
      /** @type {number[]} */
      const part = [];
      for (; at < rows.length && !["hunk", "file"].includes(rows[at].kind); at++)
        if (rows[at].kind === side || rows[at].kind === "same") part.push(at);
      at++;
      const language = languages[part[0]];
      const text = part.map((index) => rows[index].text).join("\n");
      const lines = language && part.length ? highlightedLines(text, language) : null;
      if (lines?.length === part.length)
        for (const [index, row] of part.entries()) coloured[row] = lines[index];
    }
  }
  return coloured;
}

/** @type {Record<string, string>} */
const SIGN = { add: "+", del: "−" };
/** @type {Record<string, string>} */
const SPOKEN = { add: t("added"), del: t("removed") };

/**
 * A unified diff. `path` is the name of the file where the diff itself does not have it.
 * @param {{ text: string, label?: string, path?: string }} props
 */
export function Diff({ text, label = t("Changes"), path = "" }) {
  const [whole, setWhole] = useState(false);
  const rows = useMemo(() => readDiff(text), [text]);
  const shown = useMemo(() => (whole ? rows : rows.slice(0, MOST_LINES)), [rows, whole]);
  const languages = useMemo(() => languagesOf(shown, path), [shown, path]);
  const coloured = useColours(shown, languages);
  const added = rows.filter((row) => row.kind === "add").length;
  const removed = rows.filter((row) => row.kind === "del").length;
  const spoken = t(
    "{label}: {count} line added, {removed} removed",
    "{label}: {count} lines added, {removed} removed",
    { label, count: added, removed },
  );
  return html`
    <figure class="diff">
      <figcaption>
        <span>${label}</span>
        <span class="diff-sum"><ins>+${added}</ins> <del>−${removed}</del></span>
      </figcaption>
      <div class="diff-scroll" tabindex="0" role="region" aria-label=${spoken}>
        <table>
          <tbody>${shown.map((row, index) => diffRow(row, index, coloured[index]))}</tbody>
        </table>
      </div>
      ${
        shown.length < rows.length &&
        html`
        <${Button} kind="quiet" class="unfold" icon="down" onClick=${() => setWhole(true)}>
          ${t("Show all {count} line", "Show all {count} lines", { count: rows.length })}
        <//>
      `
      }
    </figure>
  `;
}

/**
 * @param {DiffRow[]} rows
 * @param {string[]} languages
 */
function useColours(rows, languages) {
  const names = useMemo(() => [...new Set(languages)].filter(Boolean), [languages]);
  const count = useLanguages(names);
  return useMemo(() => colouredRows(rows, languages), [rows, languages, count]);
}

/**
 * @param {DiffRow} row
 * @param {number} index
 * @param {Child[]} [coloured]
 */
function diffRow({ kind, was, now, text }, index, coloured) {
  const sign = SIGN[kind];
  return html`
    <tr key=${index} class=${`diff-${kind}`}>
      <td class="diff-no" data-no=${was ?? ""} />
      <td class="diff-no" data-no=${now ?? ""} />
      <td class="diff-sign">
        ${sign && html`<span aria-hidden="true">${sign}</span><span class="unseen">${SPOKEN[kind]} </span>`}
      </td>
      <td class="diff-text">${coloured?.length ? coloured : text || " "}</td>
    </tr>
  `;
}
