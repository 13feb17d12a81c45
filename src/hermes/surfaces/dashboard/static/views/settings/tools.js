// The tools that Hermes has to work with.
/** @import { ToolInfo } from "../../types/page.d.ts" */
import { api } from "../../app/api.js";
import { Empty, Tag } from "../../app/parts/basics.js";
import { html, useState } from "../../app/ui.js";
import { useLoaded, whenLoaded } from "../loading.js";

/** @type {Record<string, [string, string]>} */
const EFFECTS = {
  read: ["", "only reads"],
  files: ["accent", "changes files"],
  network: ["accent", "uses the network"],
  other: ["warn", "can do anything"],
};

export function Tools() {
  const tools = useLoaded(() => api.get("/api/tools"), []);
  const [words, setWords] = useState("");
  /** @param {ToolInfo} one */
  const isWanted = (one) =>
    `${one.name} ${one.toolset} ${one.summary}`.toLowerCase().includes(words.toLowerCase());
  return html`
    <div class="stack">
      <input
        class="input"
        type="search"
        aria-label="Search the tools"
        placeholder="Search the tools"
        value=${words}
        onInput=${(event) => setWords(event.target.value)}
      />
      ${whenLoaded(tools, ({ tools: list }) => html`<${ToolList} list=${list.filter(isWanted)} />`)}
      <p class="muted small">
        The settings <code>tools.enabled</code> and <code>tools.disabled</code> decide which tools are offered.
      </p>
    </div>
  `;
}

/** @param {{ list: ToolInfo[] }} props */
function ToolList({ list }) {
  if (!list.length)
    return html`<${Empty} icon="tool" title="No matching tools">No tool matches your search.<//>`;
  return html`<ul class="plain lined card">${list.map((one) => html`<${Tool} key=${one.name} one=${one} />`)}</ul>`;
}

/** @param {{ one: ToolInfo }} props */
function Tool({ one }) {
  const [kind, effect] = EFFECTS[one.effect] ?? ["", one.effect];
  return html`
    <li class="tool-row">
      <div class="row">
        <code>${one.name}</code>
        <${Tag}>${one.toolset}<//>
        <${Tag} kind=${kind}>${effect}<//>
        <span class="spring" />
        ${one.offered ? html`<${Tag} kind="good">offered<//>` : html`<${Tag}>not offered<//>`}
      </div>
      <p class="muted small">${one.summary}</p>
    </li>
  `;
}
