// Learning: what Hermes proposes to learn, what it remembers, its skills, and how all of that changed.
/** @import { HermesEvent, ProposalRow, Route } from "../types/page.d.ts" */

import { api } from "../app/api.js";
import { BusFeed } from "../app/feed.js";
import { navigate } from "../app/router.js";
import { t } from "../app/translation.js";
import { html, useEffect, useStyle } from "../app/ui.js";
import { History } from "./learning/history.js";
import { Memory } from "./learning/memory.js";
import { Proposals } from "./learning/proposals.js";
import { Skills } from "./learning/skills.js";
import { useLoaded } from "./loading.js";
import { Tabs } from "./tabs.js";

/** @param {{ route: Route }} props */
export default function Learning({ route }) {
  const ready = useStyle("views/learning.css");
  const proposals = useLoaded(
    async () =>
      /** @type {ProposalRow[]} */ ((await api.get("/api/proposals", { all: true })).proposals),
    [],
  );
  useEffect(() => {
    const look = (/** @type {HermesEvent[]} */ events) =>
      events.some((event) => event.type !== "feed.hello") && proposals.again();
    const feed = new BusFeed("agent.learning.*", { onEvents: look });
    return () => feed.close();
  }, []);
  const open = proposals.value?.filter((one) => one.status === "pending").length ?? 0;
  const [part = "proposals", detail = ""] = route.parts;
  /** @param {string} name */
  const go = (name) => navigate(`/learning/${name}`, { replace: true });
  const badge =
    open > 0 &&
    html`<span class="badge" aria-label=${t("{count} waiting", { count: open })}>${open}</span>`;
  const parts = [
    [
      "proposals",
      html`${t("Proposals")}${badge}`,
      () => html`<${Proposals} proposals=${proposals} />`,
    ],
    ["memory", t("Memory"), () => html`<${Memory} />`],
    ["skills", t("Skills"), () => html`<${Skills} open=${detail} />`],
    ["history", t("History"), () => html`<${History} />`],
  ];
  return (
    ready &&
    html`
    <div class="page learning">
      <header class="page-head"><h1>${t("Learning")}</h1></header>
      <${Tabs} label=${t("Learning sections")} tabs=${parts} current=${part} onPick=${go} />
    </div>
  `
  );
}
