// The doctor: what is in order on this machine, what is not, and what to do.
import { api } from "../../app/api.js";
import { Button, Icon, Loading, Problem, Tag } from "../../app/parts/basics.js";
import { plural } from "../../app/parts/format.js";
import { html } from "../../app/ui.js";
import { useLoaded } from "../loading.js";

const LOOKS = { ok: ["good", "check"], warn: ["warn", "warn"], fail: ["bad", "close"] };

export function Doctor() {
  const { value, error, busy, again } = useLoaded(() => api.get("/api/doctor"), []);
  const wrong = value?.findings.filter((one) => one.status !== "ok").length ?? 0;
  return html`<div class="stack">
    <div class="row"><p role="status" class="grow">${value && !busy && (wrong ? html`<${Tag} kind="warn">${plural(wrong, "finding")}<//>` : html`<${Tag} kind="good">all in order<//>`)}</p><${Button} icon="retry" busy=${busy} onClick=${again}>Look again<//></div>
    ${error && html`<${Problem} error=${error} retry=${again} />`}${!value && busy && html`<${Loading} label="Looking at everything" />`}
    ${value && html`<ul class="plain lined card findings" aria-busy=${busy}>${value.findings.map((one, index) => html`<li key=${index} class=${`finding ${(LOOKS[one.status] ?? LOOKS.warn)[0]}`}><${Icon} name=${(LOOKS[one.status] ?? LOOKS.warn)[1]} label=${one.status} /><div><strong>${one.check}</strong><p>${one.message}</p>${one.to_do && html`<p class="muted">${one.to_do}</p>`}</div></li>`)}</ul>`}
  </div>`;
}
