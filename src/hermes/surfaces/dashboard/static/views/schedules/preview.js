// What a schedule means: its next instants while it is typed, or how far it was understood.
/** @import { ScheduleMeaning } from "../../types/page.d.ts" */
import { api } from "../../app/api.js";
import { Icon, Time } from "../../app/parts/basics.js";
import { t } from "../../app/translation.js";
import { html, useEffect, useState } from "../../app/ui.js";
import { localTime } from "./labels.js";

const PAUSE_MS = 200; // milliseconds without a key before it is looked at

/**
 * {zone, next, problem, hint} of what was typed last; null while nothing was, or it is not known yet.
 * @param {string} schedule
 * @param {string} zone
 */
export function useSchedulePreview(schedule, zone) {
  const [meaning, setMeaning] = useState(/** @type {ScheduleMeaning | null} */ (null));
  useEffect(() => {
    let wanted = true;
    if (!schedule.trim()) return setMeaning(null);
    const look = () =>
      api.post("/api/schedules/preview", { schedule, zone }).then(
        (answer) => wanted && setMeaning(answer),
        (error) =>
          wanted && setMeaning({ zone, next: [], problem: error.message, hint: error.hint }),
      );
    const timer = setTimeout(look, PAUSE_MS);
    return () => {
      wanted = false;
      clearTimeout(timer);
    };
  }, [schedule, zone]);
  return meaning;
}

/**
 * Instants in a list.
 * @param {{ next: number[], zone: string }} props
 */
export function UpcomingRuns({ next, zone }) {
  return html`<ol class="plain coming">${next.map(
    (at) => html`<li key=${at}><span>${localTime(at, zone)}</span>
    <span class="muted small"><${Time} at=${at} /></span></li>`,
  )}</ol><p class="muted small">${t("Times are in {zone}", { zone })}</p>`;
}

/** @param {{ meaning: ScheduleMeaning | null }} props */
export function Meaning({ meaning }) {
  return html`<div class="meaning" role="status" aria-label=${t("What the schedule means")}>
    ${!meaning && html`<p class="muted small">${t("Type when it should run. The next times appear here.")}</p>`}
    ${
      meaning?.problem &&
      html`<p class="field-error"><${Icon} name="info" size=${16} /> ${meaning.problem}</p>
      <p class="muted small">${meaning.hint}</p>`
    }
    ${
      meaning &&
      !meaning.problem &&
      html`<h3 class="section-title">${t("Next runs")}</h3>
      <${UpcomingRuns} next=${meaning.next} zone=${meaning.zone} />`
    }
  </div>`;
}
