// Usage: tokens and cost, by day and by model.
/** @import { UsageRow, UsageTotal } from "../../types/page.d.ts" */
/** @import { SurfaceUsage } from "../../types/api.d.ts" */
import { api } from "../../app/api.js";
import { Empty } from "../../app/parts/basics.js";
import { count, inFull, money } from "../../app/parts/format.js";
import { language, t } from "../../app/translation.js";
import { html, useMemo, useState } from "../../app/ui.js";
import { Columns } from "../columns.js";
import { Chips } from "../inputs.js";
import { useLoaded, whenLoaded } from "../loading.js";
import { Area, Bars, seriesClass } from "./chart.js";
import { byName, firstDay, nameOf, sumOf, usageByDay } from "./usage_totals.js";

/**
 * @typedef {object} Amount
 * @property {string} label
 * @property {string} byDay
 * @property {string} cumulative
 * @property {(total: string) => string} inTotal
 * @property {(count: number) => string} overDays
 * @property {(row: UsageTotal) => number} of
 * @property {(value: number) => string} format
 */

const RANGES = [
  [7, t("7 days")],
  [30, t("30 days")],
  [90, t("90 days")],
  [0, t("All time")],
];
/** @type {Record<string, Amount>} */
const AMOUNTS = {
  cost: {
    label: t("Cost"),
    byDay: t("Cost by day"),
    cumulative: t("Cost, cumulative"),
    inTotal: (total) =>
      t("Cost by day, {total} in total. The table below has the numbers.", { total }),
    overDays: (count) =>
      t("Cost cumulative over {count} day", "Cost cumulative over {count} days", { count }),
    of: (row) => row.cost_usd,
    format: money,
  },
  tokens: {
    label: t("Tokens"),
    byDay: t("Tokens by day"),
    cumulative: t("Tokens, cumulative"),
    inTotal: (total) =>
      t("Tokens by day, {total} in total. The table below has the numbers.", { total }),
    overDays: (count) =>
      t("Tokens cumulative over {count} day", "Tokens cumulative over {count} days", { count }),
    of: (row) => row.input_tokens + row.output_tokens,
    format: (value) => count(Math.round(value)),
  },
};
const COUNTED = Object.entries(AMOUNTS).map(([name, { label }]) => [name, label]);
/** @type {[string, (row: UsageTotal) => string][]} */
const COLUMNS = [
  [t("Calls"), (row) => inFull(row.calls)],
  [t("Input"), (row) => inFull(row.input_tokens)],
  [t("Cached"), (row) => inFull(row.cache_read_tokens)],
  [t("Output"), (row) => inFull(row.output_tokens)],
  [t("Cost"), (row) => money(row.cost_usd)],
];

export function Usage() {
  const [range, setRange] = useState(30);
  const [chosen, setChosen] = useState("cost");
  const usage = useLoaded(
    () => api.get("/api/usage", { since: range ? firstDay(range) : "" }),
    [range],
  );
  return html`
    <div class="stack">
      <div class="toolbar">
        <${Chips} label=${t("Period")} choices=${RANGES} value=${range} onPick=${setRange} />
        <${Chips} label=${t("Measure")} choices=${COUNTED} value=${chosen} onPick=${setChosen} />
      </div>
      ${whenLoaded(usage, ({ usage: rows, surfaces }) =>
        rows.length
          ? html`<${Report} rows=${rows} surfaces=${surfaces} range=${range} amount=${AMOUNTS[chosen]} />`
          : html`<${Empty} icon="clock" title=${t("No usage")}>${t("No model was called in this period.")}<//>`,
      )}
    </div>
  `;
}

/** @param {{ rows: UsageRow[], surfaces: SurfaceUsage[], range: number, amount: Amount }} props */
function Report({ rows, surfaces, range, amount }) {
  const { byDay, cumulative, format } = amount;
  const { days, models } = useMemo(() => usageByDay(rows, range, amount.of), [rows, range, amount]);
  const names = models.map((one) => one.name);
  const total = format(models.reduce((so, one) => so + one.value, 0));
  return html`
    <${Tiles} total=${sumOf(rows)} />
    <section class="card chart-card">
      <h2>${byDay}</h2>
      <${Legend} models=${models} format=${format} />
      <${Bars} days=${days} names=${names} format=${format} label=${amount.inTotal(total)} />
    </section>
    <section class="card chart-card">
      <h2>${cumulative}</h2>
      <${Area} days=${days} format=${format} label=${amount.overDays(days.length)} />
    </section>
    <section class="card">
      <h2>${t("By model")}</h2>
      <${Table} caption=${t("Usage by model")} head=${t("Model")} rows=${byName(rows, nameOf)} />
    </section>
    <section class="card">
      <h2>${t("By surface")}</h2>
      <${Shares} surfaces=${surfaces} amount=${amount} />
      <${Table} caption=${t("Usage by surface")} head=${t("Started in")}
        rows=${surfaces.map((one) => [one.surface || t("imported"), one])} />
    </section>
    <details class="card fold">
      <summary>${t("By day, as a table")}</summary>
      <${Table} caption=${t("Usage by day")} head=${t("Day")}
        rows=${byName(rows, (row) => row.day).reverse()} />
    </details>
  `;
}

/**
 * One bar per surface, as long as its share.
 * @param {{ surfaces: SurfaceUsage[], amount: Amount }} props
 */
function Shares({ surfaces, amount }) {
  const most = Math.max(...surfaces.map(amount.of), Number.MIN_VALUE);
  return html`<ul class="shares" aria-hidden="true">${surfaces.map(
    (one, index) => html`<li key=${one.surface}>
      <i class=${seriesClass(index)} style=${{ width: `${(amount.of(one) / most) * 100}%` }} />
      <span>${one.surface || t("imported")} <span class="muted">${amount.format(amount.of(one))}</span></span></li>`,
  )}</ul>`;
}

/** @param {{ total: UsageTotal }} props */
function Tiles({ total }) {
  const cached = total.input_tokens
    ? Math.round((total.cache_read_tokens / total.input_tokens) * 100)
    : 0;
  const share = (cached / 100).toLocaleString(language, {
    style: "percent",
    numberingSystem: "latn",
  });
  const unpriced = total.unpriced_calls
    ? t("cost of {count} call unknown", "cost of {count} calls unknown", {
        count: total.unpriced_calls,
      })
    : "";
  const thinking = total.reasoning_tokens
    ? t("{tokens} for thinking", { tokens: count(total.reasoning_tokens) })
    : "";
  const tiles = [
    [t("Cost"), money(total.cost_usd), unpriced],
    [t("Model calls"), inFull(total.calls), ""],
    [t("Input tokens"), count(total.input_tokens), t("{share} from the cache", { share })],
    [t("Output tokens"), count(total.output_tokens), thinking],
  ];
  return html`
    <dl class="tiles">
      ${tiles.map(
        ([label, value, note]) => html`
        <div key=${label} class="card">
          <dt>${label}</dt>
          <dd>${value}</dd>
          ${note && html`<dd class="muted small">${note}</dd>`}
        </div>
      `,
      )}
    </dl>
  `;
}

/**
 * @param {{ models: { name: string, value: number }[], format: (value: number) => string }} props
 */
function Legend({ models, format }) {
  return html`
    <ul class="legend">
      ${models.map(
        (one, index) => html`
        <li key=${one.name}>
          <i class=${seriesClass(index)} aria-hidden="true" />
          ${one.name} <span class="muted">${format(one.value)}</span>
        </li>
      `,
      )}
    </ul>
  `;
}

/** @param {{ caption: string, head: string, rows: [string, UsageTotal][] }} props */
function Table({ caption, head, rows }) {
  return html`
    <div class="scroll-x" tabindex="0" role="region" aria-label=${caption}>
      <table class="numbers">
        <caption class="unseen">${caption}</caption>
        <${Columns} titles=${[head, ...COLUMNS.map(([title]) => title)]} />
        <tbody>
          ${rows.map(
            ([name, row]) => html`
            <tr key=${name}>
              <th scope="row">${name}</th>
              ${COLUMNS.map(([title, tell]) => html`<td key=${title}>${tell(row)}</td>`)}
            </tr>
          `,
          )}
        </tbody>
      </table>
    </div>
  `;
}
