// The list of jobs: when each runs next, how it ended last, and what can be done about it.
/** @import { WaitingWork } from "../../types/api.d.ts" */
/** @import { JobRow, JobRun, Ref } from "../../types/page.d.ts" */
import { api, may } from "../../app/api.js";
import { useKeys } from "../../app/keys.js";
import { Empty, Icon, Tag, Time } from "../../app/parts/basics.js";
import { navigate, pathTo } from "../../app/router.js";
import { t, withElements } from "../../app/translation.js";
import { html, useElement } from "../../app/ui.js";
import { useLoaded, whenLoaded } from "../loading.js";
import { Actions, keysOf } from "./actions.js";
import { KINDS, localTime, placeOf, STATES } from "./labels.js";
import { useRefresh } from "./refresh.js";

// Schedules are in English.
const EXAMPLES = [
  "every weekday at 9", // not translated
  "every 2 hours",
  "on the last friday of each month at 16:00", // not translated
  "0 8 1 * *",
];

const PROGRAMS = {
  gateway: html`<code>hermes gateway run</code>`,
  daemon: html`<code>hermes cron daemon</code>`,
};

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
  const group = t("Schedules");
  useKeys([
    {
      keys: "n",
      label: t("New job"),
      group,
      icon: "plus",
      run: () => may("admin") && navigate("/schedules/new"),
    },
    { keys: "j", label: t("Next job"), group, run: move(1) },
    { keys: "k", label: t("Previous job"), group, run: move(-1) },
    ...keysOf(focused, found.again, found.again),
  ]);
  return html`<div class="page schedules"><header class="page-head"><h1>${t("Schedules")}</h1>
      ${
        may("admin") &&
        html`<a class="button primary" href="#/schedules/new" title="n"><${Icon}
        name="plus" />${t("New job")}</a>`
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
    <strong>${t("No scheduler is running.")}</strong>${" "}
    ${withElements(t("Due jobs wait or are missed. Start {gateway} or {daemon} and leave it running."), PROGRAMS)}${" "}
    ${t("Jobs that you run from here still run.")}</p></div>`
  );
}

/** @param {{ watched: boolean }} props */
function None({ watched }) {
  return html`<${Empty} icon="schedules" title=${t("No jobs yet")}><p>
      ${t("A job is a task that Hermes runs at set times, even when nobody is there:")}${" "}
      ${t("a summary every morning, a disk check every hour.")}${" "}
      ${t("Describe the times in words:")}</p>
    <ul class="plain examples">${EXAMPLES.map((text) => html`<li key=${text}><code>${text}</code></li>`)}</ul>
    ${
      may("admin") &&
      html`<p><a class="button primary" href="#/schedules/new"><${Icon}
      name="plus" />${t("Create the first job")}</a></p>`
    }
    ${
      !watched &&
      html`<p class="small">
        ${withElements(t("Due jobs are run by {gateway}, or by {daemon}. Neither is running now."), PROGRAMS)}</p>`
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
          html`<div><dt>${job.next * 1000 < Date.now() ? t("Was due") : t("Next")}</dt><dd>
          <${Time} at=${job.next} />
          <span class="muted"> ${localTime(job.next, job.zone)}</span></dd></div>`
        }
        ${job.waiting && html`<${Waiting} waiting=${job.waiting} />`}
        <div><dt>${t("Last")}</dt><dd><${LastRun} run=${job.last} /></dd></div>
        <div><dt>${t("Result")}</dt><dd>${placeOf(job.deliver)}</dd></div>
        ${
          job.budget &&
          html`<div><dt>${t("Limit")}</dt><dd>${t("{amount} per run", { amount: job.budget })}</dd></div>`
        }
      </dl>
    </div>
    <${Actions} job=${job} again=${again} gone=${again} />
  </li>`;
}

/**
 * The machine that a due job waits for, and what to do.
 * @param {{ waiting: WaitingWork }} props
 */
export function Waiting({ waiting }) {
  const since = html`<${Time} at=${waiting.since} />`;
  const seen = html`<${Time} at=${waiting.seen} />`;
  const state = waiting.is_draining
    ? t("That host is draining.")
    : waiting.seen > 0
      ? withElements(t("It was last seen {time}."), { time: seen })
      : t("It was never seen.");
  const commands = {
    worker: html`<code>hermes worker</code>`,
    edit: html`<code>hermes cron edit ${waiting.id} --cwd DIR</code>`,
  };
  return html`<div class="job-waiting" role="status"><dt>${t("Waits for")}</dt><dd>
    ${withElements(t("{host}, since {time}."), { host: waiting.place, time: since })}${" "}
    ${state}${" "}
    ${withElements(t("Start {worker} there, or move the job: {edit}"), commands)}
  </dd></div>`;
}

/**
 * Whether a job runs now, later, or not at all, and why.
 * @param {{ job: JobRow }} props
 */
export function JobState({ job }) {
  const words = {
    active: t("on"),
    paused: job.paused === "by you" ? t("paused") : t("paused: {reason}", { reason: job.paused }),
    ended: t("ended"),
  };
  const kinds = { active: "good", paused: "warn", ended: "" };
  return html`<${Tag} kind=${kinds[job.state]}>${words[job.state]}<//>
    ${job.running && html`<${Tag} kind="accent"><span class="spinner" aria-hidden="true" />${t("running")}<//>`}`;
}

/** @param {{ run: JobRun | null }} props */
function LastRun({ run }) {
  if (!run) return html`<span class="muted">${t("has not run yet")}</span>`;
  const state = STATES[run.state] ?? run.state;
  return html`<${Tag} kind=${KINDS[run.state]}>${state}<//> <span class="muted"><${Time} at=${run.ended} />${
    run.reason && `: ${run.reason}`
  }</span>`;
}
