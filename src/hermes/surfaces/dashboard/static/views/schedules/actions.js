// The actions of a job, in the list and on its page: run, pause, delete.
/** @import { Binding, JobRow } from "../../types/page.d.ts" */
import { api, may } from "../../app/api.js";
import { Button, Icon } from "../../app/parts/basics.js";
import { confirm } from "../../app/parts/dialog.js";
import { tryTo } from "../../app/parts/toast.js";
import { navigate, pathTo } from "../../app/router.js";
import { t } from "../../app/translation.js";
import { html } from "../../app/ui.js";

/**
 * The path of a job, or of something below it.
 * @template {[] | ["run" | "pause" | "resume"]} P
 * @param {JobRow} job
 * @param {P} parts
 * @returns {P extends [] ? `/api/schedules/${string}` : `/api/schedules/${string}/${P[0]}`}
 */
function addressOf(job, ...parts) {
  const path = ["/api/schedules", encodeURIComponent(job.id), ...parts].join("/");
  return /** @type {ReturnType<typeof addressOf<P>>} */ (path);
}

/**
 * @param {JobRow} job
 * @param {() => void} again
 */
export async function runNow(job, again) {
  if (job.running || !may("approve")) return;
  await tryTo(() => api.post(addressOf(job, "run")), t("Started {name}.", { name: job.name }));
  again();
}

/**
 * Pauses a job, or lets it run again.
 * @param {JobRow} job
 * @param {() => void} again
 */
export async function toggle(job, again) {
  if (!may("approve")) return;
  const isActive = job.state === "active";
  const action = isActive ? "pause" : "resume";
  const { name } = job;
  const done = isActive ? t("Paused {name}.", { name }) : t("Resumed {name}.", { name });
  await tryTo(() => api.post(addressOf(job, action)), done);
  again();
}

/**
 * Asks, then removes. Resolves to whether it is gone.
 * @param {JobRow} job
 */
export async function remove(job) {
  if (!may("admin")) return false;
  const sure = await confirm({
    title: t("Delete “{name}”?", { name: job.name }),
    text: t(
      "It will not run again. The sessions of its runs stay, and a run in progress continues.",
    ),
    action: t("Delete job"),
    danger: true,
  });
  const done = t("Deleted {name}.", { name: job.name });
  return Boolean(sure && (await tryTo(() => api.delete(addressOf(job)), done)));
}

/**
 * The keys of a job. `pick` gives it, or nothing when none is meant.
 * @param {() => JobRow | undefined} pick
 * @param {() => void} again
 * @param {() => void} gone
 * @returns {Binding[]}
 */
export function keysOf(pick, again, gone) {
  const group = t("Schedules");
  /** @param {(job: JobRow) => unknown} work */
  const withJob = (work) => () => {
    const job = pick();
    return job ? void work(job) : false;
  };
  return [
    {
      keys: "Alt+r",
      label: t("Run the job now"),
      group,
      icon: "bolt",
      run: withJob((job) => runNow(job, again)),
    },
    {
      keys: "Alt+p",
      label: t("Pause or resume the job"),
      group,
      icon: "pause",
      run: withJob((job) => toggle(job, again)),
    },
    {
      keys: "e",
      label: t("Edit the job"),
      group,
      icon: "edit",
      run: withJob((job) => may("admin") && navigate(pathTo("schedules", job.id, "edit"))),
    },
    {
      keys: "Delete",
      label: t("Delete the job"),
      group,
      icon: "trash",
      run: withJob(async (job) => (await remove(job)) && gone()),
    },
  ];
}

/**
 * The buttons of a job; with `words`, they say what they do.
 * @param {{ job: JobRow, again: () => void, gone: () => void, words?: boolean }} props
 */
export function Actions({ job, again, gone, words = false }) {
  /**
   * @param {string} icon
   * @param {string} text
   * @param {string} key
   * @param {() => unknown} onClick
   * @param {boolean} [disabled]
   */
  const act = (icon, text, key, onClick, disabled = false) =>
    words
      ? html`<${Button} icon=${icon} disabled=${disabled} title=${key} onClick=${onClick}>${text}<//>`
      : html`<${Button} kind="quiet" icon=${icon} label=${`${text}: ${job.name}`} disabled=${disabled}
        title=${`${text} (${key})`} onClick=${onClick} />`;
  const edit = `#${pathTo("schedules", job.id, "edit")}`;
  return html`<div class="job-actions">
    ${
      may("approve") &&
      html`${act("bolt", t("Run now"), "Alt R", () => runNow(job, again), job.running)}
      ${job.state === "active" && act("pause", t("Pause"), "Alt P", () => toggle(job, again))}
      ${job.state === "paused" && act("play", t("Resume"), "Alt P", () => toggle(job, again))}`
    }
    ${
      may("admin") &&
      html`<a class=${`button ${words ? "" : "quiet bare"}`} href=${edit} title=${t("Edit (e)")}
        aria-label=${words ? undefined : `${t("Edit")}: ${job.name}`}><${Icon} name="edit" />${words && t("Edit")}</a>
      ${act("trash", t("Delete"), "Del", async () => (await remove(job)) && gone())}`
    }
  </div>`;
}
