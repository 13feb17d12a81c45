// The doctor: what is in order on this machine, what is not, and what to do.
/** @import { FindingRow } from "../../types/page.d.ts" */
import { api } from "../../app/api.js";
import { Button, Icon, Loading, Problem, Tag } from "../../app/parts/basics.js";
import { plural } from "../../app/parts/format.js";
import { html } from "../../app/ui.js";
import { useLoaded } from "../loading.js";

/** @type {Record<string, [string, string]>} */
const LOOKS = { ok: ["good", "check"], warn: ["warn", "warn"], fail: ["bad", "close"] };

async function readFindings() {
  return /** @type {{ findings: FindingRow[] }} */ (await api.get("/api/doctor"));
}

export function Doctor() {
  const { value, error, busy, again } = useLoaded(readFindings, []);
  return html`
    <div class="stack">
      <div class="row">
        <p role="status" class="grow">${value && !busy && html`<${CheckSummary} findings=${value.findings} />`}</p>
        <${Button} icon="retry" busy=${busy} onClick=${again}>Check again<//>
      </div>
      ${error && html`<${Problem} error=${error} retry=${again} />`}
      ${!value && busy && html`<${Loading} label="Checking" />`}
      ${
        value &&
        html`
        <ul class="plain lined card findings" aria-busy=${busy}>
          ${value.findings.map((one, index) => html`<${Finding} key=${index} one=${one} />`)}
        </ul>
      `
      }
    </div>
  `;
}

/** @param {{ findings: FindingRow[] }} props */
function CheckSummary({ findings }) {
  const wrong = findings.filter((one) => one.status !== "ok").length;
  if (wrong) return html`<${Tag} kind="warn">${plural(wrong, "finding")}<//>`;
  return html`<${Tag} kind="good">all checks passed<//>`;
}

/** @param {{ one: FindingRow }} props */
function Finding({ one }) {
  const [kind, icon] = LOOKS[one.status] ?? LOOKS.warn;
  return html`
    <li class=${`finding ${kind}`}>
      <${Icon} name=${icon} label=${one.status} />
      <div>
        <strong>${one.check}</strong>
        <p>${one.message}</p>
        ${one.to_do && html`<p class="muted">${one.to_do}</p>`}
      </div>
    </li>
  `;
}
