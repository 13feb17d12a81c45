// The policy: what would happen with a command, the user's rules, answers that are remembered, and the sandbox.
import { api, may } from "../../app/api.js";
import { Button, Icon, Tag } from "../../app/parts/basics.js";
import { confirm } from "../../app/parts/dialog.js";
import { plural } from "../../app/parts/format.js";
import { trying } from "../../app/parts/toast.js";
import { html, useState } from "../../app/ui.js";
import { Loaded, useLoaded } from "../loading.js";

const VERDICTS = { allow: ["good", "check", "It would run without a question"], ask: ["warn", "question", "You would be asked"], forbid: ["bad", "lock", "It would never be done"] };
const LISTS = [["forbid", "Never done"], ["ask", "Always asked about"], ["allow", "Allowed"], ["network", "Hosts that may be reached"]];
const MODES = [["ask", "ask: the default"], ["auto-edit", "auto-edit: files may be changed"], ["full", "full: no questions"]];
const REACHES = [["workspace", "the working directory"], ["network", "also the network"], ["machine", "everything you can"]];

export function Policy() {
  const policy = useLoaded(() => api.get("/api/policy"), []);
  return html`<div class="stack"><${Check} /><${Loaded} of=${policy}>${(value) => html`<${Shown} value=${value} again=${policy.again} />`}<//></div>`;
}

function Check() {
  const [asked, setAsked] = useState({ command: "", cwd: "", mode: "ask", reach: "workspace" });
  const [found, setFound] = useState({ busy: false, answer: null, error: null });
  const change = (name) => (event) => setAsked({ ...asked, [name]: event.target.value });
  const judge = async (event) => {
    event.preventDefault();
    setFound({ busy: true, answer: null, error: null });
    try {
      setFound({ busy: false, error: null, answer: { ...(await api.post("/api/policy/check", asked)), command: asked.command } });
    } catch (error) {
      setFound({ busy: false, answer: null, error });
    }
  };
  return html`<section class="card stack"><header><h2>What would happen?</h2><p class="muted">Judges a command as if the model wanted to run it. Nothing is run.</p></header>
    <form class="stack tight" onSubmit=${judge}>
      <label class="field"><span>Command</span><textarea class="input mono" rows="2" required spellcheck="false" autocapitalize="off" placeholder="rm -rf build" value=${asked.command} onInput=${change("command")}
        onKeyDown=${(event) => event.key === "Enter" && !event.shiftKey && judge(event)} /></label>
      <div class="field-row"><label class="field"><span>In the folder</span><input class="input mono" placeholder="where the dashboard was started" value=${asked.cwd} onInput=${change("cwd")} /></label>
        <${Choice} label="Mode" options=${MODES} value=${asked.mode} onChange=${change("mode")} /><${Choice} label="It asks to reach" options=${REACHES} value=${asked.reach} onChange=${change("reach")} />
        <button type="submit" class="button primary" disabled=${found.busy || !asked.command.trim()}>Judge it</button></div>
    </form>
    <div role="status">${found.answer && html`<${Verdict} ...${found.answer} />`}${found.error && html`<p class="field-error">${found.error.message} ${found.error.hint}</p>`}</div>
  </section>`;
}

function Choice({ label, options, value, onChange }) {
  return html`<label class="field"><span>${label}</span><select class="input" value=${value} onChange=${onChange}>${options.map(([name, text]) => html`<option key=${name} value=${name} selected=${name === value}>${text}</option>`)}</select></label>`;
}

function Verdict({ verdict, reason, reach, command }) {
  const [kind, icon, words] = VERDICTS[verdict];
  return html`<div class=${`verdict ${kind}`} data-verdict=${verdict}><${Icon} name=${icon} /><div><strong>${words}.</strong>${reason && html`<p>${sentence(reason)}</p>`}<p class="muted small"><code>${command}</code> · reaches ${reach}</p></div></div>`;
}

function Shown({ value, again }) {
  const { rules } = value;
  const forget = async (shape) => {
    const sure = await confirm({ title: "Forget this answer?", text: `The next time, you are asked again about: ${shape}`, action: "Forget it" });
    if (sure && (await trying(() => api.post("/api/policy/forget", { shape })))) again();
  };
  const isEmpty = LISTS.every(([name]) => !rules[name].length);
  return html`
    <section class="card"><h2>Sandbox</h2><p><${Tag} kind=${value.sandbox === "none" ? "bad" : "good"}>${value.sandbox}<//> ${value.sandbox === "none" ? `Commands are not confined, so every effect is asked about. ${value.why}` : "Commands write only where they may, and have no network unless they ask for it."}</p></section>
    <section class="card stack tight"><h2>Remembered answers</h2>
      ${rules.remembered.length ? html`<ul class="plain lined">${rules.remembered.map((shape) => html`<li key=${shape} class="row"><code class="grow">${shape}</code>${may("admin") && html`<${Button} kind="quiet" icon="trash" label=${`Forget ${shape}`} onClick=${() => forget(shape)} />`}</li>`)}</ul>` : html`<p class="muted">None. When you answer “always”, it is kept here.</p>`}</section>
    <section class="card stack tight"><h2>Your rules</h2>
      ${value.problem && html`<p class="field-error" role="alert">${sentence(value.problem)} Until that is corrected, no rule allows anything and every effect is asked about.</p>`}
      ${isEmpty ? html`<p class="muted">None: the built-in policy decides.</p>` : LISTS.filter(([name]) => rules[name].length).map(([name, label]) => html`<div key=${name}><h3>${label} <span class="muted">(${plural(rules[name].length, "rule")})</span></h3><ul class="plain lined">${rules[name].map((rule, index) => html`<li key=${index}><code>${described(rule)}</code></li>`)}</ul></div>`)}
      <p class="muted small">They are in <code>${value.file}</code>, apart from the settings. Only you write there; nothing on this page can loosen them.</p></section>`;
}

function described(rule) {
  const reach = rule.reach && rule.reach !== "workspace" ? ` (${rule.reach})` : "";
  return rule.program ? [rule.program, ...(rule.arguments ?? [])].join(" ") + reach : rule.path || rule.tool || rule.host;
}

function sentence(text) {
  const words = text[0].toUpperCase() + text.slice(1);
  return /[.!?]$/.test(words) ? words : `${words}.`;
}
