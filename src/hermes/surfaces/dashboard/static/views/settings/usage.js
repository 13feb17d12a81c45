// What was spent: tokens and money, by day and by model.
import { api } from "../../app/api.js";
import { Empty } from "../../app/parts/basics.js";
import { count, money, plural } from "../../app/parts/format.js";
import { html, useMemo, useState } from "../../app/ui.js";
import { Loaded, useLoaded } from "../loading.js";
import { Area, Bars, seriesClass } from "./chart.js";

const RANGES = [[7, "7 days"], [30, "30 days"], [90, "90 days"], [0, "Everything"]];
const MOST_DAYS = 400; // drawn; older ones are in the table
const DAY = 86_400_000;

const AMOUNTS = {
  cost: { label: "Cost", of: (row) => row.cost_usd, format: money },
  tokens: { label: "Tokens", of: (row) => row.input_tokens + row.output_tokens, format: (value) => count(Math.round(value)) },
};

export function Usage() {
  const [range, setRange] = useState(30);
  const [chosen, setChosen] = useState("cost");
  const usage = useLoaded(() => api.get("/api/usage", { since: range ? dayOf(Date.now() - (range - 1) * DAY) : "" }), [range]);
  return html`<div class="stack">
    <div class="toolbar"><div class="chips" role="group" aria-label="How far back">${RANGES.map(([days, label]) => html`<button key=${days} type="button" class="chip" aria-pressed=${String(days === range)} onClick=${() => setRange(days)}>${label}</button>`)}</div>
      <div class="chips" role="group" aria-label="What is counted">${Object.entries(AMOUNTS).map(([name, { label }]) => html`<button key=${name} type="button" class="chip" aria-pressed=${String(name === chosen)} onClick=${() => setChosen(name)}>${label}</button>`)}</div></div>
    <${Loaded} of=${usage}>${({ usage: rows }) => (rows.length ? html`<${Report} rows=${rows} range=${range} amount=${AMOUNTS[chosen]} />` : html`<${Empty} icon="clock" title="Nothing was spent">No model was asked in this time.<//>`)}<//>
  </div>`;
}

function Report({ rows, range, amount }) {
  const { days, models } = useMemo(() => arranged(rows, range, amount), [rows, range, amount]);
  const total = sumOf(rows);
  const names = models.map((one) => one.name);
  return html`<${Tiles} total=${total} />
    <section class="card chart-card"><h2>${amount.label} by day</h2><${Legend} models=${models} amount=${amount} />
      <${Bars} days=${days} names=${names} format=${amount.format} label=${`${amount.label} by day, ${amount.format(models.reduce((so, one) => so + one.value, 0))} in all. The table below has the numbers.`} /></section>
    <section class="card chart-card"><h2>${amount.label}, added up</h2><${Area} days=${days} format=${amount.format} label=${`${amount.label} added up over ${plural(days.length, "day")}`} /></section>
    <section class="card"><h2>By model</h2><${Table} caption="Usage by model" head="Model" rows=${byName(rows, nameOf)} /></section>
    <details class="card fold"><summary>By day, as a table</summary><${Table} caption="Usage by day" head="Day" rows=${byName(rows, (row) => row.day).reverse()} /></details>`;
}

function Tiles({ total }) {
  const cached = total.input_tokens ? Math.round((total.cache_read_tokens / total.input_tokens) * 100) : 0;
  const tiles = [["Cost", money(total.cost_usd), total.unpriced_calls ? `${plural(total.unpriced_calls, "call")} of unknown price` : ""], ["Model calls", total.calls.toLocaleString("en"), ""],
    ["Tokens read", count(total.input_tokens), `${cached}% from the cache`], ["Tokens written", count(total.output_tokens), total.reasoning_tokens ? `${count(total.reasoning_tokens)} of them thinking` : ""]];
  return html`<dl class="tiles">${tiles.map(([label, value, note]) => html`<div key=${label} class="card"><dt>${label}</dt><dd>${value}</dd>${note && html`<dd class="muted small">${note}</dd>`}</div>`)}</dl>`;
}

function Legend({ models, amount }) {
  return html`<ul class="legend">${models.map((one, index) => html`<li key=${one.name}><i class=${seriesClass(index)} aria-hidden="true" />${one.name} <span class="muted">${amount.format(one.value)}</span></li>`)}</ul>`;
}

function Table({ caption, head, rows }) {
  const number = (value) => value.toLocaleString("en");
  return html`<div class="scroll-x" tabindex="0" role="region" aria-label=${caption}><table class="numbers"><caption class="unseen">${caption}</caption>
    <thead><tr><th scope="col">${head}</th><th scope="col">Calls</th><th scope="col">Read</th><th scope="col">Cached</th><th scope="col">Written</th><th scope="col">Cost</th></tr></thead>
    <tbody>${rows.map(([name, one]) => html`<tr key=${name}><th scope="row">${name}</th><td>${number(one.calls)}</td><td>${number(one.input_tokens)}</td><td>${number(one.cache_read_tokens)}</td><td>${number(one.output_tokens)}</td><td>${money(one.cost_usd)}</td></tr>`)}</tbody></table></div>`;
}

/** Days without a hole, and models by what they make up; those beyond five become one. */
function arranged(rows, range, amount) {
  const by = byName(rows, nameOf).map(([name, total]) => ({ name, value: amount.of(total) })).sort((a, b) => b.value - a.value);
  const models = by.length <= 6 ? by : [...by.slice(0, 5), { name: "others", value: by.slice(5).reduce((so, one) => so + one.value, 0) }];
  const place = new Map(by.map((one, index) => [one.name, Math.min(index, models.length - 1)]));
  const first = range ? Date.now() - (range - 1) * DAY : Math.max(Date.parse(rows[0].day), Date.now() - (MOST_DAYS - 1) * DAY);
  const days = [];
  for (let at = Date.parse(dayOf(first)); at <= Math.max(Date.now(), Date.parse(rows.at(-1).day)); at += DAY) days.push({ day: dayOf(at), parts: models.map(() => 0) });
  const found = new Map(days.map((one) => [one.day, one]));
  for (const row of rows) if (found.has(row.day)) found.get(row.day).parts[place.get(nameOf(row))] += amount.of(row);
  return { days, models };
}

const NUMBERS = ["calls", "input_tokens", "output_tokens", "cache_read_tokens", "reasoning_tokens", "cost_usd", "unpriced_calls"];

function sumOf(rows) {
  return Object.fromEntries(NUMBERS.map((name) => [name, rows.reduce((so, row) => so + row[name], 0)]));
}

function byName(rows, name) {
  const groups = new Map();
  for (const row of rows) groups.set(name(row), [...(groups.get(name(row)) ?? []), row]);
  return [...groups].map(([key, list]) => [key, sumOf(list)]);
}

function nameOf(row) {
  return row.model ? `${row.provider}:${row.model}` : row.provider || "unknown";
}

/** A day as the log names it: in UTC. */
function dayOf(at) {
  return new Date(at).toISOString().slice(0, 10);
}
