// What Hermes has to work with: tools and MCP servers.
/** @import { McpServer, ToolInfo } from "../../types/page.d.ts" */
import { api } from "../../app/api.js";
import { Empty, Tag } from "../../app/parts/basics.js";
import { plural } from "../../app/parts/format.js";
import { html, useState } from "../../app/ui.js";
import { useLoaded, whenLoaded } from "../loading.js";

/** @type {Record<string, [string, string]>} */
const EFFECTS = {
  read: ["", "only reads"],
  files: ["accent", "changes files"],
  network: ["accent", "uses the network"],
  other: ["warn", "any effect"],
};
/** @type {Record<string, string>} */
const STATES = { connected: "good", failed: "bad", connecting: "warn" };

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

export function Servers() {
  const servers = useLoaded(() => api.get("/api/mcp"), []);
  return html`${whenLoaded(servers, ({ servers: list }) => html`<${ServerList} list=${list} />`)}`;
}

/** @param {{ list: McpServer[] }} props */
function ServerList({ list }) {
  if (!list.length) {
    return html`
      <${Empty} icon="plugins" title="No MCP servers">
        <p>
          MCP servers add tools. Add one with <code>hermes mcp add</code>, or under <code>mcp_servers</code> in the
          settings.
        </p>
      <//>
    `;
  }
  return html`<ul class="plain lined card">${list.map((one) => html`<${Server} key=${one.name} one=${one} />`)}</ul>`;
}

/** @param {{ one: McpServer }} props */
function Server({ one }) {
  return html`
    <li class="tool-row">
      <div class="row">
        <strong>${one.name}</strong>
        <${Tag} kind=${STATES[one.state] ?? ""}>${one.state}<//>
        <span class="spring" />
        <span class="muted small">${plural(one.tools, "tool")}</span>
      </div>
      ${one.detail && html`<p class="small">${one.detail} ${one.hint}</p>`}
      ${
        one.changed.length > 0 &&
        html`
        <p class="small">
          <${Tag} kind="warn">changed<//> ${one.changed.join(", ")}: changed since you accepted them.
          See <code>hermes mcp</code>.
        </p>
      `
      }
    </li>
  `;
}
