// What can be done with a job from the list and from its page: running, pausing, removing it.
import { api, may } from "../../app/api.js";
import { Button, Icon } from "../../app/parts/basics.js";
import { confirm } from "../../app/parts/dialog.js";
import { trying } from "../../app/parts/toast.js";
import { navigate, pathTo } from "../../app/router.js";
import { html } from "../../app/ui.js";

export function addressOf(job, ...rest) {
  return ["/api/schedules", encodeURIComponent(job.id), ...rest].join("/");
}

export async function runNow(job, again) {
  if (job.running || !may("approve")) return;
  await trying(() => api.post(addressOf(job, "run")), `${job.name} runs now.`);
  again();
}

/** Pauses a job, or lets it run again. */
export async function toggle(job, again) {
  if (!may("approve")) return;
  const [action, words] =
    job.state === "active" ? ["pause", "is paused"] : ["resume", "runs again"];
  await trying(() => api.post(addressOf(job, action)), `${job.name} ${words}.`);
  again();
}

/** Asks, then removes. Resolves to whether it is gone. */
export async function remove(job) {
  if (!may("admin")) return false;
  const sure = await confirm({
    title: `Delete “${job.name}”?`,
    text: "It does not run any more. The sessions of its runs stay, and so does a run that is under way.",
    action: "Delete it",
    danger: true,
  });
  return Boolean(
    sure && (await trying(() => api.delete(addressOf(job)), `${job.name} is deleted.`)),
  );
}

/** The keys of a job. `pick` gives it, or nothing when none is meant. */
export function keysOf(pick, again, gone) {
  const group = "Schedules";
  const withJob = (work) => () => {
    const job = pick();
    return job ? void work(job) : false;
  };
  return [
    {
      keys: "Alt+r",
      label: "Run the job now",
      group,
      icon: "bolt",
      run: withJob((job) => runNow(job, again)),
    },
    {
      keys: "Alt+p",
      label: "Pause or resume the job",
      group,
      icon: "pause",
      run: withJob((job) => toggle(job, again)),
    },
    {
      keys: "e",
      label: "Change the job",
      group,
      icon: "edit",
      run: withJob((job) => may("admin") && navigate(pathTo("schedules", job.id, "edit"))),
    },
    {
      keys: "Delete",
      label: "Delete the job",
      group,
      icon: "trash",
      run: withJob(async (job) => (await remove(job)) && gone()),
    },
  ];
}

/** The buttons of a job; with `words`, they say what they do. */
export function Actions({ job, again, gone, words = false }) {
  const act = (icon, text, key, onClick, disabled = false) =>
    words
      ? html`<${Button} icon=${icon} disabled=${disabled} title=${key} onClick=${onClick}>${text}<//>`
      : html`<${Button} kind="quiet" icon=${icon} label=${`${text}: ${job.name}`} disabled=${disabled}
        title=${`${text} (${key})`} onClick=${onClick} />`;
  const edit = `#${pathTo("schedules", job.id, "edit")}`;
  return html`<div class="job-actions">
    ${
      may("approve") &&
      html`${act("bolt", "Run now", "Alt R", () => runNow(job, again), job.running)}
      ${job.state === "active" && act("pause", "Pause", "Alt P", () => toggle(job, again))}
      ${job.state === "paused" && act("play", "Resume", "Alt P", () => toggle(job, again))}`
    }
    ${
      may("admin") &&
      html`<a class=${`button ${words ? "" : "quiet bare"}`} href=${edit} title="Change (e)"
        aria-label=${words ? undefined : `Change: ${job.name}`}><${Icon} name="edit" />${words && "Change"}</a>
      ${act("trash", "Delete", "Del", async () => (await remove(job)) && gone())}`
    }
  </div>`;
}
