// The doctor: what is in order on this machine, what is not, and what to do.
/** @import { FindingRow } from "../../types/page.d.ts" */
import { api } from "../../app/api.js";
import { Button, Icon, Loading, Problem, Tag } from "../../app/parts/basics.js";
import { t } from "../../app/translation.js";
import { html } from "../../app/ui.js";
import { useLoaded } from "../loading.js";

/** @type {Record<string, [string, string]>} */
const LOOKS = { ok: ["good", "check"], warn: ["warn", "warn"], fail: ["bad", "close"] };

/** @type {Record<string, string>} */
const NAMES = { ok: t("in order"), warn: t("warning"), fail: t("failed") };

async function readFindings() {
  return /** @type {{ findings: FindingRow[] }} */ (await api.get("/api/doctor"));
}

export function Doctor() {
  const { value, error, busy, again } = useLoaded(readFindings, []);
  return html`
    <div class="stack">
      <div class="row">
        <p role="status" class="grow">${value && !busy && html`<${CheckSummary} findings=${value.findings} />`}</p>
        <${Button} icon="retry" busy=${busy} onClick=${again}>${t("Check again")}<//>
      </div>
      ${error && html`<${Problem} error=${error} retry=${again} />`}
      ${!value && busy && html`<${Loading} label=${t("Checking")} />`}
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
  if (wrong)
    return html`<${Tag} kind="warn">${t("{count} finding", "{count} findings", { count: wrong })}<//>`;
  return html`<${Tag} kind="good">${t("all checks passed")}<//>`;
}

/** @param {{ one: FindingRow }} props */
function Finding({ one }) {
  const [kind, icon] = LOOKS[one.status] ?? LOOKS.warn;
  return html`
    <li class=${`finding ${kind}`}>
      <${Icon} name=${icon} label=${NAMES[one.status] ?? one.status} />
      <div>
        <strong>${one.check}</strong>
        <p>${one.message}</p>
        ${one.to_do && html`<p class="muted">${one.to_do}</p>`}
      </div>
    </li>
  `;
}
