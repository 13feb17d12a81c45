// Calls that only look around, such as reading files, are shown as one row when several follow each other.
/** @import { CallGroupRow, Item, ItemContext, ToolItem, UndoneRow } from "../../types/page.d.ts" */
import { Icon } from "../../app/parts/basics.js";
import { plural } from "../../app/parts/format.js";
import { argumentsOf } from "../../app/parts/tool_card.js";
import { html, isOpen, useState } from "../../app/ui.js";
import { Item as TranscriptItem } from "./items.js";

/**
 * By tool: the verb, what is counted, and the argument that names it; without one, each call counts.
 * @type {Record<string, [string, string, string?]>}
 */
const KINDS = {
  read_file: ["Read", "file", "path"],
  list_files: ["Listed", "folder", "path"],
  vision_analyze: ["Looked at", "picture", "image"],
  search_files: ["Searched", "time"],
  session_search: ["Searched", "time"],
  web_search: ["Searched the web", "time"],
  web_fetch: ["Fetched", "page", "url"],
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
  /** @type {Map<string, { noun: string, objects: Set<unknown> }>} */
  const kinds = new Map();
  for (const call of calls) {
    const [verb, noun, name] = KINDS[call.name];
    const kind = kinds.get(verb) ?? { noun, objects: new Set() };
    kind.objects.add((name && argumentsOf(call.arguments)?.[name]) || call.key);
    kinds.set(verb, kind);
  }
  return [...kinds]
    .map(([verb, { noun, objects }], index) => {
      const first = index ? verb[0].toLowerCase() + verb.slice(1) : verb;
      return `${first} ${plural(objects.size, noun)}`;
    })
    .join(", ");
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
