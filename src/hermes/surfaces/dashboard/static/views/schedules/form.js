// The form to create or edit a job: schedule, task, delivery and limits.
/** @import { Failure, FieldEvent, JobRow, Ref, RequestBody } from "../../types/page.d.ts" */
import { api, asFailure } from "../../app/api.js";
import { useKeys } from "../../app/keys.js";
import { Icon } from "../../app/parts/basics.js";
import { toast } from "../../app/parts/toast.js";
import { navigate, pathTo } from "../../app/router.js";
import { t } from "../../app/translation.js";
import { html, useEffect, useElement, useState } from "../../app/ui.js";
import { useLoaded, whenLoaded } from "../loading.js";
import { CATCH_UP } from "./labels.js";
import { Meaning, useSchedulePreview } from "./preview.js";

/** @typedef {"name" | "schedule" | "zone" | "prompt" | "deliver" | "budget" | "timeout" | "jitter"} MainField */

/** @typedef {"times" | "catch_up" | "tools" | "model" | "cwd"} MoreField */

/** @typedef {Record<MainField | MoreField, string>} Form */

/** @typedef {{ job: JobRow | null, zone: string, folder: string, back: string }} FieldsProps */

const NEW = {
  schedule: "",
  prompt: "",
  name: "",
  zone: "",
  deliver: "none",
  catch_up: "",
  jitter: "",
  timeout: "",
  budget: "",
  tools: "",
  model: "",
  cwd: "",
  times: "",
};
const KINDS = [
  ["none", t("Nowhere: it stays in the session"), ""],
  ["file", t("To a file"), "~/report.md"],
  ["session", t("To a session"), t("the id of the session")],
  ["chat", t("To a gateway chat"), "telegram:123456"],
];

/**
 * `id` is that of the job to change; empty for a new one.
 * @param {{ id: string }} props
 */
export function JobForm({ id }) {
  const back = id ? pathTo("schedules", id) : "/schedules";
  const found = useLoaded(async () => {
    const [list, view] = await Promise.all([
      api.get("/api/schedules"),
      id ? api.get(`/api/schedules/${encodeURIComponent(id)}`, { limit: 1 }) : null,
    ]);
    return { job: view?.job ?? null, zone: list.zone, folder: list.folder };
  }, [id]);
  return html`<div class="page schedules narrow">
    <nav aria-label=${t("Back")}><a class="back" href=${`#${back}`}><${Icon} name="left" size=${18} />
      ${id ? t("The job") : t("Schedules")}</a></nav>
    <header class="page-head"><h1>${id ? t("Edit the job") : t("New job")}</h1></header>
    ${whenLoaded(found, (given) => html`<${Fields} key=${id} ...${given} back=${back} />`)}
  </div>`;
}

/** @param {FieldsProps} props */
function Fields({ job, zone, folder, back }) {
  const [was] = useState(() => (job ? picked(job) : { ...NEW, cwd: folder }));
  const [now, setNow] = useState(was);
  const [error, setError] = useState(/** @type {Failure | null} */ (null));
  const [busy, setBusy] = useState(false);
  const form = /** @type {Ref<HTMLFormElement>} */ (useElement());
  const first = /** @type {Ref<HTMLElement>} */ (useElement());
  useEffect(() => first.current.focus(), []);
  const meaning = useSchedulePreview(now.schedule, now.zone);
  /** @param {keyof Form} name */
  const set = (name) => (/** @type {FieldEvent} */ event) =>
    setNow((before) => ({ ...before, [name]: event.target.value }));
  const setDeliver = (/** @type {string} */ deliver) =>
    setNow((before) => ({ ...before, deliver }));
  /** @param {Event} event */
  const save = async (event) => {
    event.preventDefault();
    if (busy) return;
    const wanted = changes(job ? was : NEW, now, zone);
    if (!Object.keys(wanted).length) return navigate(back);
    setBusy(true);
    try {
      const made = await (job
        ? api.patch(`/api/schedules/${job.id}`, wanted)
        : api.post("/api/schedules", wanted));
      const { name } = made;
      toast(job ? t("Saved {name}.", { name }) : t("Created {name}.", { name }), "good");
      navigate(pathTo("schedules", made.id), { replace: true });
    } catch (wrong) {
      setError(asFailure(wrong));
      setBusy(false);
    }
  };
  useKeys([
    {
      keys: "Mod+Enter",
      label: t("Save the job"),
      group: t("Schedules"),
      typing: true,
      run: () => form.current.requestSubmit(),
    },
  ]);
  /**
   * @param {keyof Form} name
   * @param {string} label
   * @param {object} [more]
   */
  const field = (name, label, more = {}) => html`<label class="field"><span>${label}</span>
    <input class="input" name=${name} value=${now[name]} onInput=${set(name)} autocomplete="off" ...${more} /></label>`;
  return html`<form class="stack job-form" ref=${form} onSubmit=${save}>
    <div class="card stack">
      <div class="job-columns">
        <div class="stack">
          ${field("schedule", t("When"), {
            required: true,
            placeholder: "every weekday at 9", // not translated: schedules are in English
            ref: first,
            "aria-invalid": meaning?.problem ? "true" : undefined,
            "aria-describedby": "meaning",
          })}
          ${field("zone", t("Time zone"), { placeholder: zone, list: "zones" })}<${Zones} />
        </div>
        <div id="meaning"><${Meaning} meaning=${meaning} /></div>
      </div>
      <label class="field"><span>${t("What to do")}</span><textarea class="input" name="prompt" rows="4" required
        value=${now.prompt} onInput=${set("prompt")}
        placeholder=${t("Summarize what is new in this folder.")}></textarea></label>
      <p class="muted small">
        ${t("The job runs with nobody to ask, so include everything it needs to know.")}${" "}
        ${t("Calls that would need your approval are not run.")}</p>
      ${field("name", t("Name"), { placeholder: t("the first words of the task"), maxlength: 60 })}
      <${Deliver} value=${now.deliver} onChange=${setDeliver} />
      ${field("budget", t("Limit per run"), { placeholder: t("such as $0.50 or 200k tokens") })}
    </div>
    <details class="card fold" open=${isSpecial(job)}><summary>${t("More")}</summary><div class="more-fields">
      ${field("timeout", t("Timeout"), { placeholder: t("such as 10m; empty: as in the settings") })}
      ${field("jitter", t("Random start delay, up to"), { placeholder: t("such as 5m") })}
      ${field("times", t("End after this many runs"), {
        inputmode: "numeric",
        pattern: "[0-9]*",
        placeholder: t("never"),
      })}
      <label class="field"><span>${t("Missed runs")}</span><select class="input" name="catch_up" value=${now.catch_up}
        onChange=${set("catch_up")}>${!job && html`<option value="">${t("as in the settings")}</option>`}
        ${Object.entries(CATCH_UP).map(
          ([value, text]) => html`<option key=${value} value=${value}
          selected=${value === now.catch_up}>${text}</option>`,
        )}</select></label>
      ${field("tools", t("Only these toolsets"), {
        placeholder: t("such as files, web; empty: the default ones"),
      })}
      ${field("model", t("Model"), { placeholder: t("the default model") })}
      ${field("cwd", t("Working folder"), { placeholder: folder })}
    </div></details>
    ${error && html`<p class="field-error" role="alert">${error.message} ${error.hint}</p>`}
    <div class="row end"><a class="button quiet" href=${`#${back}`}>${t("Cancel")}</a>
      <button type="submit" class="button primary" disabled=${busy} aria-busy=${busy ? "true" : undefined}>
        ${job ? t("Save") : t("Create the job")}</button></div>
  </form>`;
}

/**
 * Where the result goes: a kind of place, and which one.
 * @param {{ value: string, onChange: (deliver: string) => void }} props
 */
function Deliver({ value, onChange }) {
  const [kind, setKind] = useState(() => kindOf(value));
  const [place, setPlace] = useState(() => placeIn(value));
  /**
   * @param {string} nextKind
   * @param {string} nextPlace
   */
  const tell = (nextKind, nextPlace) => {
    setKind(nextKind);
    setPlace(nextPlace);
    onChange(
      nextKind === "none"
        ? "none"
        : nextKind === "chat"
          ? nextPlace.trim()
          : `${nextKind}:${nextPlace.trim()}`,
    );
  };
  const example = KINDS.find(([name]) => name === kind)?.[2];
  return html`<fieldset class="deliver"><legend>${t("Where the result goes")}</legend>
    <select class="input" aria-label=${t("Destination type")} value=${kind}
      onChange=${(event) => tell(event.target.value, "")}>
      ${KINDS.map(([name, text]) => html`<option key=${name} value=${name} selected=${name === kind}>${text}</option>`)}
    </select>
    ${
      kind !== "none" &&
      html`<input class="input" aria-label=${t("Destination")} required placeholder=${example} value=${place}
      onInput=${(event) => tell(kind, event.target.value)} />`
    }</fieldset>`;
}

function Zones() {
  const names = Intl.supportedValuesOf?.("timeZone") ?? [];
  return html`<datalist id="zones">${names.map((name) => html`<option key=${name} value=${name} />`)}</datalist>`;
}

/** @param {string} deliver */
function kindOf(deliver) {
  if (deliver === "none") return "none";
  const [kind] = deliver.split(":", 1);
  return kind === "file" || kind === "session" ? kind : "chat";
}

/** @param {string} deliver */
function placeIn(deliver) {
  const kind = kindOf(deliver);
  return kind === "none" ? "" : kind === "chat" ? deliver : deliver.slice(kind.length + 1);
}

/**
 * The fields of a job as they are typed.
 * @param {JobRow} job
 * @returns {Form}
 */
function picked(job) {
  const { schedule, prompt, name, zone, deliver, catch_up, jitter } = job;
  const { timeout, budget, tools, model, cwd } = job;
  const times = job.times ? String(job.times) : "";
  return {
    schedule,
    prompt,
    name,
    zone,
    deliver,
    catch_up,
    jitter,
    timeout,
    budget,
    tools,
    model,
    cwd,
    times,
  };
}

/** @param {JobRow | null} job */
function isSpecial(job) {
  return Boolean(job && (job.jitter || job.times || job.tools || job.model));
}

/**
 * What was changed, in the form the server takes. What may not be empty is left as it is.
 * @param {Form} was
 * @param {Form} now
 * @param {string} zone
 */
function changes(was, now, zone) {
  const names = /** @type {(keyof Form)[]} */ (Object.keys(now));
  const changed = names.filter((name) => now[name] !== was[name]);
  /** @type {Partial<Form>} */
  const wanted = Object.fromEntries(changed.map((name) => [name, now[name]]));
  if (wanted.zone !== undefined) wanted.zone = wanted.zone.trim() || zone;
  if (wanted.jitter !== undefined) wanted.jitter = wanted.jitter.trim() || "0";
  for (const name of /** @type {const} */ (["name", "timeout", "cwd", "catch_up"])) {
    if (!wanted[name]?.trim()) delete wanted[name];
  }
  const { times, ...texts } = wanted;
  const number = times === undefined ? {} : { times: Number(times) || 0 };
  return /** @type {RequestBody<"POST", "/api/schedules">} */ ({ ...texts, ...number });
}
