// Calls that only look around, such as reading files, are shown as one row when several follow each other.
/** @import { CallGroupRow, Item, ItemContext, ToolItem, UndoneRow } from "../../types/page.d.ts" */

import { Icon } from "../../app/parts/basics.js";
import { argumentsOf } from "../../app/parts/call_arguments.js";
import { language, t } from "../../app/translation.js";
import { html, isOpen, useState } from "../../app/ui.js";
import { Item as TranscriptItem } from "./items.js";

const listed = new Intl.ListFormat(language, { type: "unit", style: "short" });

/** @param {number} count */
const searched = (count) => t("Searched {count} time", "Searched {count} times", { count });

/**
 * By tool: what was done so often, and the argument that names what is counted; without one, each call counts.
 * @type {Record<string, [(count: number) => string, string?]>}
 */
const KINDS = {
  read_file: [(count) => t("Read {count} file", "Read {count} files", { count }), "path"],
  list_files: [(count) => t("Listed {count} folder", "Listed {count} folders", { count }), "path"],
  vision_analyze: [
    (count) => t("Looked at {count} picture", "Looked at {count} pictures", { count }),
    "image",
  ],
  search_files: [searched],
  session_search: [searched],
  web_search: [
    (count) => t("Searched the web {count} time", "Searched the web {count} times", { count }),
  ],
  web_fetch: [(count) => t("Fetched {count} page", "Fetched {count} pages", { count }), "url"],
};

/**
 * @param {Item | UndoneRow} row
 * @returns {row is ToolItem}
 */
function isGrouped(row) {
  return (
    "kind" in row &&
    row.kind === "tool" &&
    Object.hasOwn(KINDS, row.name) &&
    row.status === "done" &&
    !row.approval &&
    !row.images.length
  );
}

/**
 * Rows, with calls of these kinds that follow each other in one.
 * @param {(Item | UndoneRow)[]} rows
 * @returns {(Item | UndoneRow | CallGroupRow)[]}
 */
export function groupCalls(rows) {
  /** @type {(Item | UndoneRow | CallGroupRow)[]} */
  const grouped = [];
  for (let at = 0; at < rows.length; ) {
    let end = at;
    while (end < rows.length && isGrouped(rows[end])) end++;
    const first = rows[at];
    if (end - at > 1) {
      const group = rows.slice(at, end).filter(isGrouped);
      grouped.push({ key: `calls ${first.key}`, seq: first.seq, group, isCalls: true });
      at = end;
    } else {
      grouped.push(first);
      at++;
    }
  }
  return grouped;
}

/**
 * Several calls in one phrase: `Read 6 files, searched 2 times`.
 * @param {ToolItem[]} calls
 */
export function phraseOf(calls) {
  /** @type {Map<(count: number) => string, Set<unknown>>} */
  const kinds = new Map();
  for (const call of calls) {
    const [phrase, name] = KINDS[call.name];
    const objects = kinds.get(phrase) ?? new Set();
    objects.add((name && argumentsOf(call.arguments)?.[name]) || call.key);
    kinds.set(phrase, objects);
  }
  const phrases = [...kinds].map(([phrase, objects], index) => {
    const words = phrase(objects.size);
    return index ? words[0].toLocaleLowerCase(language) + words.slice(1) : words;
  });
  return listed.format(phrases);
}

/** @param {{ calls: ToolItem[], context: ItemContext }} props */
export function CallGroup({ calls, context }) {
  const [open, setOpen] = useState(false);
  return html`<details class="calls" onToggle=${(/** @type {Event} */ event) => setOpen(isOpen(event))}>
    <summary><${Icon} name="search" size=${16} /><span>${phraseOf(calls)}</span><${Icon} name="down" size=${16} />
    </summary>
    ${
      open &&
      calls.map(
        (item) =>
          html`<div class="item" key=${item.key}><${TranscriptItem} item=${item} context=${context} /></div>`,
      )
    }</details>`;
}
