// One event of the bus: as a row of the stream, and whole.
/** @import { BufferedEvent, HermesEvent } from "../../types/page.d.ts" */
import { Button, Empty } from "../../app/parts/basics.js";
import { Code } from "../../app/parts/code.js";
import { absolute, clock } from "../../app/parts/format.js";
import { linkTo } from "../../app/router.js";
import { t } from "../../app/translation.js";
import { html } from "../../app/ui.js";

const ENVELOPE = new Set([
  "type",
  "ts",
  "src",
  "session_id",
  "root_session_id",
  "turn_id",
  "epoch",
  "seq",
]);
const TELLING = [
  "text",
  "summary",
  "message",
  "title",
  "preview",
  "command",
  "reason",
  "detail",
  "name",
  "answer",
];
/** @type {Record<string, string>} */
const COLOURS = {
  agent: "accent",
  session: "blue",
  tui: "green",
  gateway: "orange",
  schedule: "purple",
  bus: "bad",
  gap: "bad",
};

/**
 * The most telling fields of an event. Computed once per event.
 * @param {BufferedEvent} kept
 */
function previewOf(kept) {
  if (kept.preview === undefined) {
    const event = /** @type {Record<string, unknown>} */ (/** @type {unknown} */ (kept.event));
    const name = typeof event.name === "string" && event.name ? `${event.name}  ` : "";
    const telling = TELLING.find(
      (field) => field !== "name" && typeof event[field] === "string" && event[field],
    );
    kept.preview = (name + (telling ? event[telling] : otherFields(kept.event))).slice(0, 240);
  }
  return kept.preview;
}

/** @param {HermesEvent} event */
function otherFields(event) {
  return Object.entries(event)
    .filter(
      ([name, value]) => !ENVELOPE.has(name) && name !== "name" && value !== null && value !== "",
    )
    .map(([name, value]) => `${name}=${typeof value === "object" ? JSON.stringify(value) : value}`)
    .join("  ");
}

/**
 * Everything in it as one text, for searching. Made once for each.
 * @param {BufferedEvent} kept
 */
export function textOf(kept) {
  kept.text ??= JSON.stringify(kept.event).toLowerCase();
  return kept.text;
}

/** @param {{ kept: BufferedEvent, current: boolean, onPick: () => void }} props */
export function EventRow({ kept, current, onPick }) {
  const { event } = kept;
  const durable = event.seq !== undefined;
  const colour = COLOURS[event.src ?? event.type] ?? "text";
  return html`
    <button
      type="button"
      class="event-row"
      tabindex="-1"
      aria-current=${current ? "true" : undefined}
      title=${durable ? t("Stored in the log") : t("Not stored")}
      onClick=${onPick}
    >
      <time>${timeOf(event)}</time>
      <span class="event-topic" style=${{ color: `var(--${colour})` }}>
        ${durable ? html`<b>${event.type}</b>` : event.type}
      </span>
      <span class="event-session">${event.session_id?.slice(-6) ?? ""}</span>
      <span class="event-preview">${previewOf(kept)}</span>
    </button>
  `;
}

/**
 * The time of day, to the millisecond.
 * @param {{ ts: number }} event
 */
function timeOf({ ts }) {
  if (!ts) return "";
  return `${clock(ts)}.${String(Math.floor(ts * 1000) % 1000).padStart(3, "0")}`;
}

/** @param {{ kept: BufferedEvent | null, onClose: () => void }} props */
export function EventDetails({ kept, onClose }) {
  if (!kept) {
    return html`
      <${Empty} icon="live" title=${t("No event selected")}>${t("Click an event, or use J and K.")}<//>
    `;
  }
  const { event } = kept;
  return html`
    <div class="event-details">
      <div class="row">
        <h2 class="event-name">${event.type}</h2>
        <span class="spring" />
        <${Button} kind="quiet" icon="close" label=${t("Close the details")} onClick=${onClose} />
      </div>
      <dl class="facts">
        <dt>${t("When")}</dt>
        <dd>${event.ts ? absolute(event.ts) : t("unknown")}</dd>
        <dt>${t("From")}</dt>
        <dd>${event.src ?? ""}</dd>
        <dt>${t("Stored")}</dt>
        <dd>${event.seq === undefined ? t("no") : t("yes, row {row} of the log", { row: event.seq })}</dd>
        ${event.session_id && html`<dt>${t("Session")}</dt><dd><a href=${placeOf(event)}>${event.session_id}</a></dd>`}
      </dl>
      <${Code} key=${kept.number} language="json" name=${t("envelope")} text=${JSON.stringify(event, null, 2)} open />
    </div>
  `;
}

/**
 * Where the timeline of its session has it.
 * @param {HermesEvent} event
 */
function placeOf({ session_id: session, seq }) {
  return linkTo("sessions", session) + (seq === undefined ? "" : `?at=${seq}`);
}
