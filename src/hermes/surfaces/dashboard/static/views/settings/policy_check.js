// Asks the policy what it would do with a command. Nothing is run.
/** @import { Answer, Failure, FieldEvent, RequestBody } from "../../types/page.d.ts" */
import { api, asFailure } from "../../app/api.js";
import { Icon } from "../../app/parts/basics.js";
import { t } from "../../app/translation.js";
import { html, useState } from "../../app/ui.js";
import { Options } from "../inputs.js";

/** @typedef {Required<RequestBody<"POST", "/api/policy/check">>} Asked */

/** @typedef {Answer<"POST", "/api/policy/check"> & { command: string }} Judged */

/** @type {Record<string, [string, string, string]>} */
const VERDICTS = {
  allow: ["good", "check", t("It would run without asking.")],
  ask: ["warn", "question", t("You would be asked.")],
  forbid: ["bad", "lock", t("It would be refused.")],
};
const MODES = [
  ["ask", t("ask: the default")],
  ["auto-edit", t("auto-edit: files may be changed")],
  ["plan", t("plan: only reading")],
  ["full", t("full: no questions")],
];
const REACHES = [
  ["workspace", t("the working directory")],
  ["network", t("also the network")],
  ["machine", t("everything you can reach")],
];

export function Check() {
  const [asked, setAsked] = useState(
    /** @type {Asked} */ ({ command: "", cwd: "", mode: "ask", reach: "workspace" }),
  );
  const [found, setFound] = useState({
    busy: false,
    answer: /** @type {Judged | null} */ (null),
    error: /** @type {Failure | null} */ (null),
  });
  /** @param {keyof Asked} name */
  const change = (name) => (/** @type {FieldEvent} */ event) =>
    setAsked({ ...asked, [name]: event.target.value });
  /** @param {Event} event */
  const judge = async (event) => {
    event.preventDefault();
    setFound({ busy: true, answer: null, error: null });
    try {
      const judged = await api.post("/api/policy/check", asked);
      setFound({ busy: false, error: null, answer: { ...judged, command: asked.command } });
    } catch (error) {
      setFound({ busy: false, answer: null, error: asFailure(error) });
    }
  };
  return html`
    <section class="card stack">
      <header>
        <h2>${t("What would happen?")}</h2>
        <p class="muted">${t("Checks a command as if the model wanted to run it. Nothing is run.")}</p>
      </header>
      <form class="stack tight" onSubmit=${judge}>
        <${Command} value=${asked.command} onInput=${change("command")} judge=${judge} />
        <div class="field-row">
          <${Folder} value=${asked.cwd} onInput=${change("cwd")} />
          <${Choice} label=${t("Mode")} choices=${MODES} value=${asked.mode} onChange=${change("mode")} />
          <${Choice} label=${t("Requested reach")} choices=${REACHES} value=${asked.reach}
            onChange=${change("reach")} />
          <button type="submit" class="button primary" disabled=${found.busy || !asked.command.trim()}>
            ${t("Check it")}
          </button>
        </div>
      </form>
      <div role="status">
        ${found.answer && html`<${Verdict} ...${found.answer} />`}
        ${found.error && html`<p class="field-error">${found.error.message} ${found.error.hint}</p>`}
      </div>
    </section>
  `;
}

/**
 * @param {{ value: string, onInput: (event: FieldEvent) => void, judge: (event: Event) => void }} props
 */
function Command({ value, onInput, judge }) {
  return html`
    <label class="field">
      <span>${t("Command")}</span>
      <textarea
        class="input mono"
        rows="2"
        required
        spellcheck=${false}
        autocapitalize="off"
        placeholder="rm -rf build"
        value=${value}
        onInput=${onInput}
        onKeyDown=${(event) => event.key === "Enter" && !event.shiftKey && judge(event)}
      />
    </label>
  `;
}

/** @param {{ value: string, onInput: (event: FieldEvent) => void }} props */
function Folder({ value, onInput }) {
  return html`
    <label class="field">
      <span>${t("Folder")}</span>
      <input class="input mono" placeholder=${t("the folder the dashboard was started in")}
        value=${value} onInput=${onInput} />
    </label>
  `;
}

/**
 * @param {{ label: string, choices: string[][], value: string, onChange: (event: FieldEvent) => void }} props
 */
function Choice({ label, choices, value, onChange }) {
  return html`
    <label class="field">
      <span>${label}</span>
      <select class="input" value=${value} onChange=${onChange}>
        <${Options} choices=${choices} value=${value} />
      </select>
    </label>
  `;
}

/** @param {Judged} props */
function Verdict({ verdict, reason, reach, command }) {
  const [kind, icon, words] = VERDICTS[verdict];
  return html`
    <div class=${`verdict ${kind}`} data-verdict=${verdict}>
      <${Icon} name=${icon} />
      <div>
        <strong>${words}</strong>
        ${reason && html`<p>${sentence(reason)}</p>`}
        <p class="muted small"><code>${command}</code> · ${t("reaches {reach}", { reach })}</p>
      </div>
    </div>
  `;
}

/**
 * A reason as a sentence.
 * @param {string} text
 */
export function sentence(text) {
  const words = text[0].toUpperCase() + text.slice(1);
  return /[.!?]$/.test(words) ? words : `${words}.`;
}
