// The policy: what would happen with a command, the user's rules, answers that are remembered, and the sandbox.
/** @import { PolicyRules, Rule } from "../../types/page.d.ts" */
import { api, may } from "../../app/api.js";
import { Button, Tag } from "../../app/parts/basics.js";
import { confirm } from "../../app/parts/dialog.js";
import { tryTo } from "../../app/parts/toast.js";
import { t, withElements } from "../../app/translation.js";
import { html } from "../../app/ui.js";
import { useLoaded, whenLoaded } from "../loading.js";
import { Check, sentence } from "./policy_check.js";

/** @type {["forbid" | "ask" | "allow" | "network", string][]} */
const LISTS = [
  ["forbid", t("Never allowed")],
  ["ask", t("Always ask")],
  ["allow", t("Allowed")],
  ["network", t("Allowed hosts")],
];

async function readPolicy() {
  const { rules, ...rest } = await api.get("/api/policy");
  return { ...rest, rules: /** @type {PolicyRules} */ (rules) };
}

export function Policy() {
  const policy = useLoaded(readPolicy, []);
  return html`
    <div class="stack">
      <${Check} />
      ${whenLoaded(
        policy,
        (value) => html`
          <${Sandbox} sandbox=${value.sandbox} why=${value.why} />
          <${Remembered} shapes=${value.rules.remembered} again=${policy.again} />
          <${Rules} rules=${value.rules} problem=${value.problem} file=${value.file} />
        `,
      )}
    </div>
  `;
}

/** @param {{ sandbox: string, why: string }} props */
function Sandbox({ sandbox, why }) {
  const isConfined = sandbox !== "none";
  const words = isConfined
    ? t(
        "Commands can write only to allowed folders, and have no network access unless they request it.",
      )
    : `${t("Commands are not confined, so Hermes asks about every effect.")} ${why}`;
  return html`
    <section class="card">
      <h2>${t("Sandbox")}</h2>
      <p><${Tag} kind=${isConfined ? "good" : "bad"}>${sandbox}<//> ${words}</p>
    </section>
  `;
}

/** @param {{ shapes: string[], again: () => void }} props */
function Remembered({ shapes, again }) {
  /** @param {string} shape */
  const forget = async (shape) => {
    const text = t("Hermes will ask again about: {command}", { command: shape });
    const action = t("Forget this answer");
    if (!(await confirm({ title: t("Forget this answer?"), text, action }))) return;
    if (await tryTo(() => api.post("/api/policy/forget", { shape }))) again();
  };
  /** @param {string} shape */
  const row = (shape) => html`
    <li key=${shape} class="row">
      <code class="grow">${shape}</code>
      ${
        may("admin") &&
        html`
        <${Button} kind="quiet" icon="trash" label=${t("Forget {command}", { command: shape })}
          onClick=${() => forget(shape)} />
      `
      }
    </li>
  `;
  return html`
    <section class="card stack tight">
      <h2>${t("Remembered answers")}</h2>
      ${
        shapes.length
          ? html`<ul class="plain lined">${shapes.map(row)}</ul>`
          : html`<p class="muted">${t("None. What you always allow is listed here.")}</p>`
      }
    </section>
  `;
}

/** @param {{ rules: PolicyRules, problem: string, file: string }} props */
function Rules({ rules, problem, file }) {
  const lists = LISTS.filter(([name]) => rules[name].length);
  return html`
    <section class="card stack tight">
      <h2>${t("Your rules")}</h2>
      ${
        problem &&
        html`
        <p class="field-error" role="alert">
          ${sentence(problem)}${" "}
          ${t("Until you correct it, no rule allows anything and Hermes asks about every effect.")}
        </p>
      `
      }
      ${
        lists.length
          ? lists.map(
              ([name, label]) =>
                html`<${RuleList} key=${name} label=${label} rules=${rules[name]} />`,
            )
          : html`<p class="muted">${t("None: the built-in policy decides.")}</p>`
      }
      <p class="muted small">
        ${withElements(t("Your rules are in {file}, separate from the settings."), {
          file: html`<code>${file}</code>`,
        })}${" "}
        ${t("Only you edit that file; this page can't loosen them.")}
      </p>
    </section>
  `;
}

/** @param {{ label: string, rules: Rule[] }} props */
function RuleList({ label, rules }) {
  return html`
    <div>
      <h3>${label} <span class="muted">(${t("{count} rule", "{count} rules", { count: rules.length })})</span></h3>
      <ul class="plain lined">
        ${rules.map((rule, index) => html`<li key=${index}><code>${described(rule)}</code></li>`)}
      </ul>
    </div>
  `;
}

/** @param {Rule} rule */
function described(rule) {
  if (!rule.program) return rule.path || rule.tool || rule.host;
  const reach = rule.reach && rule.reach !== "workspace" ? ` (${rule.reach})` : "";
  return [rule.program, ...(rule.arguments ?? [])].join(" ") + reach;
}
