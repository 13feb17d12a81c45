// The list of jobs: when each runs next, how it ended last, and what can be done about it.
/** @import { JobRow, JobRun, Ref } from "../../types/page.d.ts" */
import { api, may } from "../../app/api.js";
import { useKeys } from "../../app/keys.js";
import { Empty, Icon, Tag, Time } from "../../app/parts/basics.js";
import { navigate, pathTo } from "../../app/router.js";
import { html, useElement } from "../../app/ui.js";
import { useLoaded, whenLoaded } from "../loading.js";
import { Actions, keysOf } from "./actions.js";
import { KINDS, localTime, placeOf } from "./labels.js";
import { useRefresh } from "./refresh.js";

const EXAMPLES = [
  "every weekday at 9",
  "every 2 hours",
  "on the last friday of each month at 16:00",
  "0 8 1 * *",
];

export function JobList() {
  const found = useLoaded(() => api.get("/api/schedules"), []);
  useRefresh(found.again);
  const list = /** @type {Ref<HTMLElement>} */ (useElement());
  const focused = () => {
    const id = document.activeElement?.closest("[data-job]")?.getAttribute("data-job");
    return found.value?.jobs.find((job) => job.id === id);
  };
  /** @param {number} step */
  const move = (step) => () => {
    const links = /** @type {HTMLElement[]} */ ([
      ...(list.current?.querySelectorAll(".job-name") ?? []),
    ]);
    const at = links.findIndex((link) =>
      link.closest("[data-job]")?.contains(document.activeElement),
    );
    const to =
      at < 0
        ? step > 0
          ? 0
          : links.length - 1
        : Math.min(Math.max(at + step, 0), links.length - 1);
    links[to]?.focus();
  };
  const group = "Schedules";
  useKeys([
    {
      keys: "n",
      label: "New job",
      group,
      icon: "plus",
      run: () => may("admin") && navigate("/schedules/new"),
    },
    { keys: "j", label: "Next job", group, run: move(1) },
    { keys: "k", label: "Previous job", group, run: move(-1) },
    ...keysOf(focused, found.again, found.again),
  ]);
  return html`<div class="page schedules"><header class="page-head"><h1>Schedules</h1>
      ${
        may("admin") &&
        html`<a class="button primary" href="#/schedules/new" title="n"><${Icon}
        name="plus" />New job</a>`
      }
    </header>
    ${whenLoaded(found, ({ jobs, watched }) =>
      jobs.length
        ? html`<${Watch} watched=${watched} jobs=${jobs} /><ul class="plain job-list" ref=${list}>
          ${jobs.map((job) => html`<${Row} key=${job.id} job=${job} again=${found.again} />`)}</ul>`
        : html`<${None} watched=${watched} />`,
    )}
  </div>`;
}

/**
 * Warns if no process runs due jobs.
 * @param {{ watched: boolean, jobs: JobRow[] }} props
 */
export function Watch({ watched, jobs }) {
  const waits = jobs.some((job) => job.state === "active");
  return (
    !watched &&
    waits &&
    html`<div class="card unwatched" role="status"><${Icon} name="warn" /><p>
    <strong>No scheduler is running.</strong> Due jobs wait or are missed. Start
    ${" "}<code>hermes gateway run</code> or <code>hermes cron daemon</code> and leave it running.
    Jobs that you run from here still run.</p></div>`
  );
}

/** @param {{ watched: boolean }} props */
function None({ watched }) {
  return html`<${Empty} icon="schedules" title="No jobs yet"><p>A job is a task that Hermes runs at set times, even
      when nobody is there: a summary every morning, a disk check every hour. Describe the times in words:</p>
    <ul class="plain examples">${EXAMPLES.map((text) => html`<li key=${text}><code>${text}</code></li>`)}</ul>
    ${
      may("admin") &&
      html`<p><a class="button primary" href="#/schedules/new"><${Icon}
      name="plus" />Create the first job</a></p>`
    }
    ${
      !watched &&
      html`<p class="small">Due jobs are run by <code>hermes gateway run</code>, or by${" "}
      <code>hermes cron daemon</code>. Neither is running now.</p>`
    }<//>`;
}

/** @param {{ job: JobRow, again: () => void }} props */
function Row({ job, again }) {
  return html`<li class="card job" data-job=${job.id}>
    <div class="job-main">
      <div class="row wrap"><a class="job-name" href=${`#${pathTo("schedules", job.id)}`}>${job.name}</a>
        <${JobState} job=${job} /></div>
      <p class="job-when">${job.schedule} <span class="muted small">${job.zone}</span></p>
      <dl class="job-facts">
        ${
          job.next &&
          html`<div><dt>${job.next * 1000 < Date.now() ? "Was due" : "Next"}</dt><dd>
          <${Time} at=${job.next} />
          <span class="muted"> ${localTime(job.next, job.zone)}</span></dd></div>`
        }
        <div><dt>Last</dt><dd><${LastRun} run=${job.last} /></dd></div>
        <div><dt>Result</dt><dd>${placeOf(job.deliver)}</dd></div>
        ${job.budget && html`<div><dt>Limit</dt><dd>${job.budget} per run</dd></div>`}
      </dl>
    </div>
    <${Actions} job=${job} again=${again} gone=${again} />
  </li>`;
}

/**
 * Whether a job runs now, later, or not at all, and why.
 * @param {{ job: JobRow }} props
 */
export function JobState({ job }) {
  const words = {
    active: "on",
    paused: job.paused === "by you" ? "paused" : `paused: ${job.paused}`,
    ended: "ended",
  };
  const kinds = { active: "good", paused: "warn", ended: "" };
  return html`<${Tag} kind=${kinds[job.state]}>${words[job.state]}<//>
    ${job.running && html`<${Tag} kind="accent"><span class="spinner" aria-hidden="true" />running<//>`}`;
}

/** @param {{ run: JobRun | null }} props */
function LastRun({ run }) {
  if (!run) return html`<span class="muted">has not run yet</span>`;
  return html`<${Tag} kind=${KINDS[run.state]}>${run.state}<//> <span class="muted"><${Time} at=${run.ended} />${
    run.reason && `: ${run.reason}`
  }</span>`;
}
