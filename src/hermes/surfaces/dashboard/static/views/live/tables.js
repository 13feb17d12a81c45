// Counters beside the stream: topics with their rates; who publishes, who listens, and what was dropped on the way.
/** @import { Counters } from "./event_buffer.js" */
/** @import { Status } from "../../types/page.d.ts" */
import { api } from "../../app/api.js";
import { Empty, Tag } from "../../app/parts/basics.js";
import { count, duration, inFull } from "../../app/parts/format.js";
import { t } from "../../app/translation.js";
import { html } from "../../app/ui.js";
import { Columns } from "../columns.js";
import { useLoaded, whenLoaded } from "../loading.js";
import { useSeconds } from "./inspector.js";

/**
 * @typedef {object} Subscription
 * @property {string} pattern
 * @property {string} callback
 * @property {string | null} owner
 * @property {number} delivered
 * @property {number} failed
 * @property {number} dropped
 * @property {number} slowest
 */

const LOOK_MS = 2000; // milliseconds between two looks at the server's counters
const SPARK_PX = 14; // pixels of height
const SUBSCRIPTION_COLUMNS = [
  t("Pattern"),
  t("Owner"),
  t("Delivered"),
  t("Failed"),
  t("Dropped"),
  t("Slowest"),
];

/** @param {{ counters: Counters, onPick: (topic: string) => void }} props */
export function Topics({ counters, onPick }) {
  useSeconds();
  const rows = counters.rows(Date.now());
  if (!rows.length) {
    return html`
      <${Empty} icon="clock" title=${t("Nothing yet")}>${t("Topics are counted here as events arrive.")}<//>
    `;
  }
  const lately = html`<span class="unseen">${t("The last ten seconds")}</span>`;
  return html`
    <table class="numbers">
      <caption class="unseen">${t("Topics by frequency")}</caption>
      <${Columns} titles=${[t("Topic"), t("Count"), t("per second"), lately]} />
      <tbody>${rows.map((row) => html`<${Topic} key=${row.topic} row=${row} onPick=${onPick} />`)}</tbody>
    </table>
  `;
}

/**
 * @param {{ row: ReturnType<Counters["rows"]>[number], onPick: (topic: string) => void }} props
 */
function Topic({ row, onPick }) {
  return html`
    <tr>
      <td>
        <button type="button" class="link" title=${t("Show only these")} onClick=${() => onPick(row.topic)}>
          ${row.topic}
        </button>
      </td>
      <td>${inFull(row.count)}</td>
      <td>${rate(row.rate)}</td>
      <td><${Spark} slots=${row.slots} /></td>
    </tr>
  `;
}

/** @param {number} value */
export function rate(value) {
  if (value === 0) return "0";
  return value < 10 ? value.toFixed(1) : inFull(Math.round(value));
}

/** @param {{ slots: number[] }} props */
function Spark({ slots }) {
  const most = Math.max(...slots, 1);
  /**
   * @param {number} value
   * @param {number} index
   */
  const bar = (value, index) => {
    const height = value ? Math.max(1.5, (value / most) * SPARK_PX) : 0.5;
    return html`<rect key=${index} x=${index * 5} y=${SPARK_PX - height} width="4" height=${height} />`;
  };
  return html`
    <svg class="spark" viewBox=${`0 0 50 ${SPARK_PX}`} width="50" height=${SPARK_PX} aria-hidden="true">
      ${slots.map(bar)}
    </svg>
  `;
}

/** What the dashboard says of itself. */
export function Sources() {
  const beat = useSeconds(LOOK_MS);
  const status = useLoaded(() => api.get("/api/status"), [beat]);
  return html`
    ${whenLoaded(
      status,
      ({ feeds, ingest, bus }) => html`
        <div class="stack">
          <${Publishers} ingest=${ingest} />
          <${Feeds} feeds=${feeds} />
          <${BusCounts} bus=${bus} />
          <section>
            <h3>${t("Subscriptions")}</h3>
            <${Subscriptions} list=${/** @type {Subscription[]} */ (bus.subscriptions)} />
          </section>
        </div>
      `,
    )}
  `;
}

/** @param {{ ingest: Status["ingest"] }} props */
function Publishers({ ingest }) {
  const publishers = Object.entries(/** @type {Record<string, number>} */ (ingest.publishers));
  const numbers = [
    [t("Accepted"), ingest.published],
    [t("Duplicates"), ingest.known],
    [t("Refused"), ingest.refused, "bad"],
  ];
  /** @param {[string, number]} publisher */
  const publisher = ([channel, number]) => html`
    <li key=${channel}>
      <${Tag} kind="good">${number}<//> <span class="mono">${channel || t("(no channel)")}</span>
    </li>
  `;
  return html`
    <section>
      <h3>${t("Publishers")}</h3>
      <p class="muted small">${t("Other processes that send their events here.")}</p>
      ${
        publishers.length
          ? html`<ul class="plain">${publishers.map(publisher)}</ul>`
          : html`<p>${t("None right now.")}</p>`
      }
      <${Numbers} of=${numbers} />
    </section>
  `;
}

/** @param {{ feeds: Status["feeds"] }} props */
function Feeds({ feeds }) {
  const numbers = [
    [t("Open feeds"), feeds.open],
    [t("Dropped for slow readers"), feeds.lost, "warn"],
    [t("Closed for being slow"), feeds.closed_slow, "warn"],
  ];
  return html`
    <section>
      <h3>${t("Feeds")}</h3>
      <p class="muted small">${t("Pages and scripts that follow events.")}</p>
      <${Numbers} of=${numbers} />
    </section>
  `;
}

/** @param {{ bus: Status["bus"] }} props */
function BusCounts({ bus }) {
  const numbers = [
    [t("Delivered"), bus.delivered],
    [t("Waiting"), bus.pending],
    [t("Dropped"), bus.dropped, "bad"],
    [t("Failed callbacks"), bus.failed, "bad"],
    [t("Refused"), bus.refused, "bad"],
  ];
  return html`
    <section>
      <h3>${t("Bus")}</h3>
      <${Numbers} of=${numbers} />
    </section>
  `;
}

/**
 * `of` is [[label, value, kind]]; the kind colours what is not zero.
 * @param {{ of: [string, number, string?][] }} props
 */
function Numbers({ of }) {
  return html`
    <dl class="counts">
      ${of.map(
        ([label, value, kind]) => html`
        <div key=${label} class=${value && kind ? kind : ""}>
          <dt>${label}</dt>
          <dd title=${String(value)}>${count(value)}</dd>
        </div>
      `,
      )}
    </dl>
  `;
}

/** @param {{ list: Subscription[] }} props */
function Subscriptions({ list }) {
  return html`
    <div class="scroll-x" tabindex="0" role="region" aria-label=${t("Subscriptions")}>
      <table class="numbers">
        <${Columns} titles=${SUBSCRIPTION_COLUMNS} />
        <tbody>
          ${list.map(
            (one, index) => html`
            <tr key=${index}>
              <td class="mono" title=${one.callback}>${one.pattern}</td>
              <td>${one.owner ?? "Hermes"}</td>
              <td>${inFull(one.delivered)}</td>
              <td>${one.failed}</td>
              <td>${one.dropped}</td>
              <td>${one.slowest ? duration(one.slowest) : ""}</td>
            </tr>
          `,
          )}
        </tbody>
      </table>
    </div>
  `;
}
