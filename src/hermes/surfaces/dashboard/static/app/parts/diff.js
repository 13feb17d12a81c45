// A unified diff as rows. Lines are text; nothing in them is markup.
import { html, useMemo, useState } from "../ui.js";
import { Button } from "./basics.js";
import { plural } from "./format.js";

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
    else rows.push({ kind: "same", text: line.slice(1), was: was++, now: now++ });
  }
  return rows;
}

/** @type {Record<string, string>} */
const SIGN = { add: "+", del: "−" };
/** @type {Record<string, string>} */
const SPOKEN = { add: "added", del: "removed" };

/**
 * A unified diff.
 * @param {{ text: string, label?: string }} props
 */
export function Diff({ text, label = "Changes" }) {
  const [whole, setWhole] = useState(false);
  const rows = useMemo(() => readDiff(text), [text]);
  const shown = whole ? rows : rows.slice(0, MOST_LINES);
  const added = rows.filter((row) => row.kind === "add").length;
  const removed = rows.filter((row) => row.kind === "del").length;
  const spoken = `${label}: ${plural(added, "line")} added, ${removed} removed`;
  return html`
    <figure class="diff">
      <figcaption>
        <span>${label}</span>
        <span class="diff-sum"><ins>+${added}</ins> <del>−${removed}</del></span>
      </figcaption>
      <div class="diff-scroll" tabindex="0" role="region" aria-label=${spoken}>
        <table>
          <tbody>${shown.map(diffRow)}</tbody>
        </table>
      </div>
      ${
        shown.length < rows.length &&
        html`
        <${Button} kind="quiet" class="unfold" icon="down" onClick=${() => setWhole(true)}>
          Show all ${rows.length} lines
        <//>
      `
      }
    </figure>
  `;
}

/**
 * @param {DiffRow} row
 * @param {number} index
 */
function diffRow({ kind, was, now, text }, index) {
  const sign = SIGN[kind];
  return html`
    <tr key=${index} class=${`diff-${kind}`}>
      <td class="diff-no" data-no=${was ?? ""} />
      <td class="diff-no" data-no=${now ?? ""} />
      <td class="diff-sign">
        ${sign && html`<span aria-hidden="true">${sign}</span><span class="unseen">${SPOKEN[kind]} </span>`}
      </td>
      <td class="diff-text">${text || " "}</td>
    </tr>
  `;
}
