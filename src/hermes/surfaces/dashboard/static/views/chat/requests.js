// Requests for approval, with exactly what will run, and questions of the model.
/** @import { ApprovalRequest, QuestionAsked } from "../../types/page.d.ts" */
import { may, sessionPath } from "../../app/api.js";
import { approvalHash } from "../../app/approval_hash.js";
import { argumentsOf } from "../../app/parts/call_arguments.js";
import { confirm } from "../../app/parts/dialog.js";
import { revealHidden, revealHiddenJson } from "../../app/parts/reveal.js";
import { shownSummary } from "../../app/parts/summary_words.js";
import { CallInput, diffOf, summaryOf } from "../../app/parts/tool_card.js";
import { ago, Button, Code, Diff, Icon, Keys, Markdown } from "../../app/parts.js";
import { shownReason, shownScope, t } from "../../app/translation.js";
import { Fragment, html, useRef, useState } from "../../app/ui.js";
import { answerQuestion, give } from "./answers.js";
import { useApprovalKeys } from "./approval_keys.js";

/** @type {Record<string, string>} */
const REACH = {
  workspace: t("It stays inside the workspace."),
  network: t("It may use the network."),
  machine: t("It runs outside the sandbox: it can reach your files and the network."),
};
/**
 * @typedef {object} AnswerButton
 * @property {Answer} answer
 * @property {string} label
 * @property {string} key
 * @property {string} [kind]
 * @property {string} [icon]
 * @property {boolean} [memorable]
 * @property {string} [scope]
 */

/** @type {AnswerButton[]} */
const ANSWERS = [
  { answer: "once", label: t("Allow once"), key: "y", kind: "primary", icon: "check" },
  { answer: "session", label: t("For this session"), key: "s", memorable: true },
  { answer: "always", label: t("Always"), key: "a", memorable: true, scope: "admin" },
  { answer: "deny", label: t("Deny"), key: "n", kind: "danger", icon: "close" },
];

/** @typedef {"once" | "session" | "always" | "deny"} Answer */

/**
 * @typedef {object} ApprovalProps
 * @property {ApprovalRequest} request
 * @property {string} session
 * @property {string} cwd
 * @property {string} [from]
 * @property {boolean} [orphan]
 */

/**
 * @typedef {object} QuestionProps
 * @property {QuestionAsked} question
 * @property {string} session
 * @property {boolean} [first]
 * @property {string} [from]
 * @property {boolean} [orphan]
 */

/** @param {string} reason */
function denial(reason) {
  return { answer: "deny", ...(reason && { reason }) };
}

/**
 * @param {Answer} answer
 * @param {ApprovalRequest} request
 */
async function permission(answer, request) {
  const rule = answer === "always" && request.scope ? { rule: request.scope } : {};
  return { answer, shown: await approvalHash(request), ...rule };
}

/**
 * Shows the rule that `always` makes, and asks whether to make it.
 * @param {ApprovalRequest} request
 */
function confirmRule(request) {
  const what = revealHidden(shownScope(request.scope) || t("exactly this call, and no other"));
  return confirm({
    title: t("Make this rule?"),
    text: [
      t("In every session from now on, Hermes does this without asking: {what}.", { what }),
      t("It still asks about anything riskier. /permissions takes the rule back."),
    ].join(" "),
    action: t("Make the rule"),
  });
}

/**
 * A request for approval. `cwd` is the folder it runs in.
 * @param {ApprovalProps} props
 */
export function Approval({ request, session, cwd, from = "", orphan = false }) {
  const [state, setState] = useState("");
  const [why, setWhy] = useState("");
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const allowed = may("approve");
  const offered = ANSWERS.filter(
    (one) => (!one.memorable || request.memorable !== false) && may(one.scope),
  );
  /** @param {Answer} word */
  const answer = async (word) => {
    if (state || !allowed) return;
    if (word === "always" && !(await confirmRule(request))) return;
    const body = word === "deny" ? denial(why.trim()) : permission(word, request);
    await give(sessionPath(session, "approvals", request.call_id), body, setState);
  };
  const isOnly = useApprovalKeys(allowed && !state, { box, offered, answer });
  const target = summaryOf(request.name, revealHiddenJson(request.arguments ?? "{}"));
  return html`<div class=${`asking ${isOnly ? "" : "one-of-several"}`} role="group" ref=${box} tabindex="-1"
    aria-label=${t("Hermes wants to use {name}", { name: request.name })}>
    <p class="asking-title asking-what"><${Icon} name="bell" size=${18} /><span><strong>
      ${t("Hermes wants to use {name}", { name: request.name })}</strong>
      ${from && html` (<span class="muted">${from}</span>)`}</span>
      ${target && html`<code class="asking-target" title=${target}>${target}</code>`}</p>
    <${WhatHappens} request=${request} />
    ${orphan && html`<${Orphan} />`}
    <dl class="facts">
      ${request.reason && html`<dt>${t("Why you are asked")}</dt><dd>${revealHidden(shownReason(request.reason))}</dd>`}
      <dt>${t("Reach")}</dt><dd class=${request.reach === "machine" ? "asking-far" : ""}>
        ${REACH[request.reach ?? "workspace"] ?? request.reach}</dd>
      ${cwd && html`<dt>${t("Folder")}</dt><dd class="mono">${cwd}</dd>`}
      ${
        request.memorable !== false &&
        html`<dt>${t("“For this session” covers")}</dt>
          <dd>${revealHidden(shownScope(request.scope) || t("only this exact call"))}</dd>`
      }
      ${
        request.shape &&
        request.memorable !== false &&
        html`<dt>${t("“Always” covers")}</dt>
          <dd class=${request.scope ? "" : "mono"}>${revealHidden(shownScope(request.scope) || request.shape)}</dd>`
      }
      ${
        request.similar >= 5 &&
        request.memorable !== false &&
        html`<dt>${t("Tip")}</dt><dd>${t(
          "You have allowed this kind {count} time. “Always” makes it a rule.",
          "You have allowed this kind {count} times. “Always” makes it a rule.",
          { count: request.similar },
        )}</dd>`
      }
      ${request.expires > 0 && !orphan && html`<dt>${t("Denied automatically")}</dt><dd>${ago(request.expires)}</dd>`}
    </dl>
    ${
      allowed
        ? html`<div class="asking-row">
        ${offered.map(
          (one) => html`<${Button} key=${one.answer} kind=${one.kind ?? ""} icon=${one.icon}
          busy=${state === "sending"} disabled=${Boolean(state)} onClick=${() => answer(one.answer)}>
            ${one.label}<${Keys} of=${`Alt+${one.key}`} /><//>`,
        )}
      </div>
      <input class="input asking-why" aria-label=${t("Tell the model why not (optional)")}
        placeholder=${t("If you deny this, tell the model why (optional)")} value=${why} disabled=${Boolean(state)}
          onInput=${(event) => setWhy(event.target.value)}
        onKeyDown=${(event) => event.key === "Enter" && why.trim() && answer("deny")} />`
        : html`<p class="muted">${t("This browser is not allowed to answer approval requests.")}</p>`
    }
  </div>`;
}

/** Explains why an answer still counts although no process is waiting for it. */
function Orphan() {
  return html`<p class="asking-note"><${Icon} name="info" size=${15} /><span>
    ${t("Hermes stopped before you answered. When you answer, it continues from here.")}</span></p>`;
}

/**
 * Exactly what will run: the policy's words, and the change to a file as a diff.
 * @param {{ request: ApprovalRequest }} props
 */
function WhatHappens({ request }) {
  const { name } = request;
  const [summary, text] = [
    revealHidden(request.summary ?? ""),
    revealHiddenJson(request.arguments ?? "{}"),
  ];
  const diff = diffOf(name, text);
  const shown = shownSummary(name, summary);
  const [words, change] = hasDiff(name, summary) ? splitDiff(shown) : [shown, ""];
  if (change)
    return html`<${Fragment}>${words && html`<p class="asking-words">${words}</p>`}<${Diff} text=${change}
    label=${t("What will change")} path=${argumentsOf(text)?.path ?? ""} /><//>`;
  if (diff) return html`<${CallInput} name=${name} text=${text} />`;
  return shown
    ? html`<${Code} text=${shown} language=${/terminal|exec_command/.test(name) ? "bash" : ""}
    name=${t("exact call")} />`
    : html`<${CallInput} name=${name} text=${text} />`;
}

/**
 * Whether the policy wrote a diff into a summary. A command, or the content of a new file, may look like one, and is
 * shown as it is.
 * @param {string} name of the tool
 * @param {string} summary
 */
export function hasDiff(name, summary) {
  if (name === "write_file") return /^.*\nreplaced, /.test(summary);
  return name === "edit_file" || name === "apply_patch";
}

/**
 * A text and the diff at its end, if there is one.
 * @param {string} text
 */
export function splitDiff(text) {
  const at = /^@@ -/m.test(text) ? text.search(/^(diff --git |--- |@@ -)/m) : -1;
  return at < 0 ? [text, ""] : [text.slice(0, at).trim(), text.slice(at)];
}

/**
 * A plan to accept, change or send back.
 * @param {QuestionProps} props
 */
function Plan({ question, session, from = "", orphan = false }) {
  const [plan, setPlan] = useState(question.plan);
  const [isEdited, setIsEdited] = useState(false);
  const [words, setWords] = useState("");
  const [state, setState] = useState("");
  const allowed = may("chat");
  const path = sessionPath(session, "questions", question.call_id);
  /** @param {string} text */
  const answer = (text) => {
    const changed = plan.trim() && plan !== question.plan ? { plan } : {};
    return !state && give(path, { text, ...changed }, setState);
  };
  const sendBack = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (words.trim()) give(path, { text: words }, setState);
  };
  return html`<form class="asking" aria-label=${t("A plan for you to accept")} onSubmit=${sendBack}>
    <p class="asking-title"><${Icon} name="list" size=${18} /><span>${t("Hermes has a plan")}
      ${from && html` <span class="muted">(${from})</span>`}</span></p>
    ${orphan && html`<${Orphan} />`}
    ${
      isEdited
        ? html`<textarea class="input plan-text" aria-label=${t("The plan")}
          rows=${Math.min(30, plan.split("\n").length + 2)}
        value=${plan} disabled=${Boolean(state)} onInput=${(event) => setPlan(event.target.value)}></textarea>`
        : html`<${Markdown} text=${plan} />`
    }
    ${
      allowed &&
      html`<div class="asking-row">
      ${question.options.map(
        (one, place) => html`<${Button} key=${one} kind=${place ? "" : "primary"}
        disabled=${Boolean(state) || (place > 0 && !may("approve"))}
        onClick=${() => answer(one)}>${question.labels?.[place] ?? one}<//>`,
      )}
      <${Button} icon="edit" disabled=${Boolean(state)} onClick=${() => setIsEdited(!isEdited)}>
        ${isEdited ? t("Show the plan") : t("Edit the plan")}<//></div>
      <div class="row"><input class="input" aria-label=${t("What should be different")}
        placeholder=${t("Or say what should be different")} value=${words} disabled=${Boolean(state)}
        onInput=${(event) => setWords(event.target.value)} />
      <button type="submit" class="button" disabled=${Boolean(state) || !words.trim()}>${t("Send back")}</button></div>`
    }
  </form>`;
}

/**
 * A question of the model, or its plan. `first`: what is written as a message answers this one.
 * @param {QuestionProps} props
 */
export function Question(props) {
  return props.question.plan
    ? html`<${Plan} ...${props} />`
    : html`<${PlainQuestion} ...${props} />`;
}

/** @param {QuestionProps} props */
function PlainQuestion({ question, session, first = false, from = "", orphan = false }) {
  const [text, setText] = useState("");
  const [state, setState] = useState("");
  const allowed = may("chat");
  /** @param {string} words */
  const answer = (words) =>
    !state && words.trim() && answerQuestion({ session, call: question.call_id }, words, setState);
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    answer(text);
  };
  const [words, diff] = splitDiff(question.text);
  return html`<form class="asking" aria-label=${t("A question for you")}
    onSubmit=${submit}>
    <p class="asking-title"><${Icon} name="question" size=${18} /><span class="asking-words">
      ${words}${from && html` <span class="muted">(${from})</span>`}</span></p>
    ${diff && html`<${Diff} text=${diff} label=${t("What would change")} />`}
    ${orphan && html`<${Orphan} />`}
    ${
      question.options?.length > 0 &&
      html`<div class="asking-row">
      ${question.options.map(
        (one, place) => html`<${Button} key=${one} disabled=${Boolean(state) || !allowed}
        onClick=${() => answer(one)}>${question.labels?.[place] ?? one}<//>`,
      )}</div>`
    }
    ${
      allowed &&
      first &&
      html`<p class="asking-note">
      ${question.options?.length ? t("Choose one, or write your answer below.") : t("Write your answer below.")}</p>`
    }
    ${
      allowed &&
      !first &&
      html`<div class="row"><input class="input" aria-label=${t("Your answer")}
      placeholder=${question.options?.length ? t("Or type your own answer") : t("Your answer")} value=${text}
        disabled=${Boolean(state)} onInput=${(event) => setText(event.target.value)} />
      <button type="submit" class="button primary" disabled=${Boolean(state) || !text.trim()}>
        ${t("Answer")}</button></div>`
    }
  </form>`;
}
