// The tools that Hermes has to work with.
/** @import { ToolInfo } from "../../types/page.d.ts" */
import { api } from "../../app/api.js";
import { Empty, Tag, Words } from "../../app/parts/basics.js";
import { t, withElements } from "../../app/translation.js";
import { html, useState } from "../../app/ui.js";
import { useLoaded, whenLoaded } from "../loading.js";

/** @type {Record<string, [string, string]>} */
const EFFECTS = {
  read: ["", t("only reads")],
  files: ["accent", t("changes files")],
  network: ["accent", t("uses the network")],
  other: ["warn", t("can do anything")],
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
        aria-label=${t("Search the tools")}
        placeholder=${t("Search the tools")}
        value=${words}
        onInput=${(event) => setWords(event.target.value)}
      />
      ${whenLoaded(tools, ({ tools: list }) => html`<${ToolList} list=${list.filter(isWanted)} />`)}
      <p class="muted small">
        ${withElements(t("The settings {enabled} and {disabled} decide which tools are offered."), {
          enabled: html`<code>tools.enabled</code>`,
          disabled: html`<code>tools.disabled</code>`,
        })}
      </p>
    </div>
  `;
}

/** @param {{ list: ToolInfo[] }} props */
function ToolList({ list }) {
  if (!list.length)
    return html`<${Empty} icon="tool" title=${t("No matching tools")}>${t("No tool matches your search.")}<//>`;
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
        ${one.offered ? html`<${Tag} kind="good">${t("offered")}<//>` : html`<${Tag}>${t("not offered")}<//>`}
      </div>
      <p class="muted small"><${Words} text=${one.summary} /></p>
    </li>
  `;
}
