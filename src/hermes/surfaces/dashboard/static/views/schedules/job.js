// One job: its task and schedule, its next runs, and its history.
/** @import { Child, JobRow, JobRun } from "../../types/page.d.ts" */
import { api } from "../../app/api.js";
import { useKeys } from "../../app/keys.js";
import { Empty, Icon, Tag, Time } from "../../app/parts/basics.js";
import { absolute } from "../../app/parts/format.js";
import { navigate, pathTo } from "../../app/router.js";
import { t, withElements } from "../../app/translation.js";
import { html } from "../../app/ui.js";
import { useLoaded, whenLoaded } from "../loading.js";
import { Actions, keysOf } from "./actions.js";
import {
  CATCH_UP,
  deliveryOf,
  durationOf,
  KINDS,
  localTime,
  OUTCOMES,
  placeOf,
  STATES,
} from "./labels.js";
import { JobState, Waiting, Watch } from "./list.js";
import { UpcomingRuns } from "./preview.js";
import { useRefresh } from "./refresh.js";

/** @type {Record<string, string>} */
const MADE_BY = { user: t("you"), import: t("an import") };
/** @type {Record<string, string>} */
const CAUSES = { hand: t("started by hand"), "catch-up": t("late run"), schedule: "" };

/** @param {{ id: string }} props */
export function Job({ id }) {
  const found = useLoaded(
    () => api.get(`/api/schedules/${encodeURIComponent(id)}`, { limit: 200 }),
    [id],
  );
  useRefresh(found.again);
  const gone = () => navigate("/schedules", { replace: true });
  useKeys([
    ...keysOf(() => found.value?.job, found.again, gone),
    {
      keys: "Escape",
      label: t("Back to the jobs"),
      group: t("Schedules"),
      icon: "left",
      run: () => navigate("/schedules"),
    },
  ]);
  return html`<div class="page schedules">
    <nav aria-label=${t("Back")}><a class="back" href="#/schedules"><${Icon} name="left" size=${18} />
      ${t("Schedules")}</a></nav>
    ${whenLoaded(
      found,
      ({ job, next, history, watched }) => html`
      <header class="page-head"><h1>${job.name}</h1><${JobState} job=${job} /></header>
      <${Actions} job=${job} again=${found.again} gone=${gone} words />
      <${Watch} watched=${watched} jobs=${[job]} />
      <div class="job-columns">
        <section class="card stack tight" aria-labelledby="job-what"><h2 id="job-what">${t("What it does")}</h2>
          <p class="pre job-prompt">${job.prompt}</p><${JobFacts} job=${job} /></section>
        <section class="card stack tight" aria-labelledby="job-next"><h2 id="job-next">${t("When")}</h2>
          <p class="job-when">${job.schedule}</p>
          ${job.waiting && html`<dl class="job-facts"><${Waiting} waiting=${job.waiting} /></dl>`}
          ${
            next.length
              ? html`<${UpcomingRuns} next=${next} zone=${job.zone} />`
              : html`<p class="muted">${NEVER[job.state]}</p>`
          }
        </section>
      </div>
      <${PastRuns} history=${history} job=${job} />`,
    )}
  </div>`;
}

/** @type {Record<string, string>} */
const NEVER = {
  active: t("The next run is unknown."),
  paused: t("Paused. Nothing is planned until you resume it."),
  ended: t("Ended. Edit its schedule to let it run again."),
};

/** @param {{ job: JobRow }} props */
function JobFacts({ job }) {
  const by =
    MADE_BY[job.by] ??
    html`<a href=${`#${pathTo("sessions", job.by)}`}>${t("Hermes in a session")}</a>`;
  /** @type {([string, Child] | false)[]} */
  const facts = [
    [t("Result"), placeOf(job.deliver)],
    [t("Limits"), [job.budget, job.timeout].filter(Boolean).join(", ")],
    [t("Missed runs"), CATCH_UP[job.catch_up]],
    job.jitter !== "" && [t("Start delay"), t("up to {delay}", { delay: job.jitter })],
    job.times > 0 && [
      t("Ends"),
      t("after {count} more run", "after {count} more runs", { count: job.times }),
    ],
    [t("Tools"), job.tools || t("the default ones")],
    [t("Model"), job.model || t("the default one")],
    [t("Folder"), job.cwd || t("your home folder")],
    job.place !== "" && [t("Machine"), job.place],
    [t("Created by"), by],
  ];
  return html`<dl class="facts">${facts
    .filter((fact) => fact !== false)
    .map(
      ([name, value]) => html`<dt key=${name}>${name}</dt>
    <dd>${value}</dd>`,
    )}</dl>`;
}

const HEADS = [t("Planned for"), t("Outcome"), t("Details"), t("Session")];

/**
 * A table also where it is laid out as cards, which is why its roles are spelled out.
 * @param {{ history: JobRun[], job: JobRow }} props
 */
function PastRuns({ history, job }) {
  if (!history.length) {
    return html`<${Empty} icon="clock" title=${t("Nothing has run yet")}>
      ${t("Every planned run appears here, with its outcome and the reason.")}<//>`;
  }
  return html`<section class="stack tight" aria-labelledby="job-past"><h2 id="job-past">${t("Runs")}</h2>
    <div class="card past-box"><table class="past" role="table" aria-labelledby="job-past">
      <thead role="rowgroup"><tr role="row">${HEADS.map(
        (text) => html`<th key=${text} scope="col"
        role="columnheader">${text}</th>`,
      )}</tr></thead>
      <tbody role="rowgroup">${history.map((run) => html`<${Run} key=${run.due} run=${run} job=${job} />`)}</tbody>
    </table></div></section>`;
}

/** @param {{ run: JobRun, job: JobRow }} props */
function Run({ run, job }) {
  const when = localTime(run.due, job.zone);
  const words = [CAUSES[run.cause], run.reason, deliveryOf(run)].filter(Boolean).join("; ");
  const state = STATES[run.state] ?? run.state;
  const times = run.repeats > 1 ? ` ×${run.repeats}` : "";
  const began = { time: html`<${Time} at=${run.began} />` };
  const spent = run.state === "running" ? withElements(t("since {time}"), began) : durationOf(run);
  return html`<tr role="row" data-state=${run.state}><td role="cell" title=${absolute(run.due)}>${when}</td>
    <td role="cell"><${Tag} kind=${KINDS[run.state]} title=${OUTCOMES[run.state]}>${state}${times}<//>
      ${spent && html` <span class="muted small">${spent}</span>`}</td>
    <td role="cell" class="why">${words}</td>
    <td role="cell">${
      run.session &&
      html`<a href=${`#${pathTo("sessions", run.session)}`}>${t("Open")}<span
      class="unseen"> (${when})</span></a>`
    }</td></tr>`;
}
