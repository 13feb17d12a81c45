// Counters beside the stream: topics with their rates; who publishes, who listens, and what was dropped on the way.
import { api } from "../../app/api.js";
import { Empty, Tag } from "../../app/parts/basics.js";
import { count, duration } from "../../app/parts/format.js";
import { html } from "../../app/ui.js";
import { Loaded, useLoaded } from "../loading.js";
import { useSeconds } from "./inspector.js";

const LOOK = 2000; // milliseconds between two looks at the server's counters

export function Topics({ counters, onPick }) {
  useSeconds();
  const rows = counters.rows(Date.now());
  if (!rows.length) return html`<${Empty} icon="clock" title="Nothing yet">As soon as something happens, its topic is counted here.<//>`;
  return html`<table class="numbers"><caption class="unseen">Topics, by how often they come</caption>
    <thead><tr><th scope="col">Topic</th><th scope="col">Number</th><th scope="col">per second</th><th scope="col"><span class="unseen">The last ten seconds</span></th></tr></thead>
    <tbody>${rows.map((row) => html`<tr key=${row.topic}><td><button type="button" class="link" onClick=${() => onPick(row.topic)} title="Show only these">${row.topic}</button></td>
      <td>${row.count.toLocaleString("en")}</td><td>${rate(row.rate)}</td><td><${Spark} slots=${row.slots} /></td></tr>`)}</tbody></table>`;
}

export function rate(value) {
  return value === 0 ? "0" : value < 10 ? value.toFixed(1) : Math.round(value).toLocaleString("en");
}

function Spark({ slots }) {
  const most = Math.max(...slots, 1);
  return html`<svg class="spark" viewBox="0 0 50 14" width="50" height="14" aria-hidden="true">${slots.map((value, index) => {
    const height = value ? Math.max(1.5, (value / most) * 14) : 0.5;
    return html`<rect key=${index} x=${index * 5} y=${14 - height} width="4" height=${height} />`;
  })}</svg>`;
}

/** What the dashboard says of itself. */
export function Sources() {
  const beat = useSeconds(LOOK);
  const status = useLoaded(() => api.get("/api/status"), [beat]);
  return html`<${Loaded} of=${status}>${({ feeds, ingest, bus }) => html`<div class="stack">
    <section><h3>Publishers</h3><p class="muted small">Other processes that send their events here.</p>
      ${Object.keys(ingest.publishers).length ? html`<ul class="plain">${Object.entries(ingest.publishers).map(([channel, number]) => html`<li key=${channel}><${Tag} kind="good">${number}<//> <span class="mono">${channel || "(no channel)"}</span></li>`)}</ul>` : html`<p>None right now.</p>`}
      <${Numbers} of=${[["Taken", ingest.published], ["Known already", ingest.known], ["Refused", ingest.refused, "bad"]]} /></section>
    <section><h3>Feeds</h3><p class="muted small">Pages and scripts that watch.</p>
      <${Numbers} of=${[["Open", feeds.open], ["Events lost to slow ones", feeds.lost, "warn"], ["Closed for being slow", feeds.closed_slow, "warn"]]} /></section>
    <section><h3>Bus</h3><${Numbers} of=${[["Delivered", bus.delivered], ["Waiting", bus.pending], ["Dropped", bus.dropped, "bad"], ["Failed callbacks", bus.failed, "bad"], ["Refused", bus.refused, "bad"]]} /></section>
    <section><h3>Subscriptions</h3><${Subscriptions} list=${bus.subscriptions} /></section>
  </div>`}<//>`;
}

function Numbers({ of }) {
  return html`<dl class="counts">${of.map(([label, value, kind]) => html`<div key=${label} class=${value && kind ? kind : ""}><dt>${label}</dt><dd title=${String(value)}>${count(value)}</dd></div>`)}</dl>`;
}

function Subscriptions({ list }) {
  return html`<div class="scroll-x" tabindex="0" role="region" aria-label="Subscriptions"><table class="numbers"><thead><tr><th scope="col">Pattern</th><th scope="col">Owner</th><th scope="col">Delivered</th><th scope="col">Failed</th><th scope="col">Dropped</th><th scope="col">Slowest</th></tr></thead>
    <tbody>${list.map((one, index) => html`<tr key=${index}><td class="mono" title=${one.callback}>${one.pattern}</td><td>${one.owner ?? "Hermes"}</td><td>${one.delivered.toLocaleString("en")}</td><td>${one.failed}</td><td>${one.dropped}</td><td>${one.slowest ? duration(one.slowest) : ""}</td></tr>`)}</tbody></table></div>`;
}
