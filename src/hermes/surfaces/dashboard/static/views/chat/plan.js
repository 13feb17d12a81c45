// The model's plan, pinned above the composer: the last list that it gave to the `todo` tool.
/** @import { Item, Transcript } from "../../types/page.d.ts" */

import { Icon } from "../../app/parts/basics.js";
import { argumentsOf } from "../../app/parts/call_arguments.js";
import { t } from "../../app/translation.js";
import { html, isOpen, kept, useMemo } from "../../app/ui.js";

/** @typedef {{ text: string, status: "pending" | "in_progress" | "done" }} PlanStep */

/** @type {Record<string, [string, string]>} */
const MARKS = {
  done: ["check", t("done")],
  in_progress: ["right", t("in progress")],
  pending: ["", t("to do")],
};

/**
 * The steps of the last list; none when there is no list.
 * @param {Item[]} items
 * @returns {PlanStep[]}
 */
export function planOf(items) {
  const call = items.findLast(
    (item) =>
      item.kind === "tool" && item.name === "todo" && item.status === "done" && !item.undone,
  );
  const steps = call?.kind === "tool" ? argumentsOf(call.arguments)?.items : null;
  return Array.isArray(steps) ? steps.filter((step) => typeof step?.text === "string") : [];
}

/**
 * Shown while something of it is left to do, or a turn runs.
 * @param {{ state: Transcript }} props
 */
export function PinnedPlan({ state }) {
  const steps = useMemo(() => planOf(state.items), [state.items]);
  const done = steps.filter((step) => step.status === "done").length;
  if (!steps.length || (done === steps.length && !state.turn)) return null;
  const now =
    steps.find((step) => step.status === "in_progress") ??
    steps.find((step) => step.status !== "done");
  const remember = (/** @type {Event} */ event) => kept.set("plan", isOpen(event) ? "open" : null);
  return html`<details class="plan" open=${kept.get("plan") === "open"} onToggle=${remember}>
    <summary><${Icon} name="list" size=${16} /><strong>${t("Plan")}</strong>
      <span class="plan-now" dir="auto">${now?.text ?? t("All done")}</span>
      <span class="muted">${t("{done} of {count}", { done, count: steps.length })}</span></summary>
    <ol>${steps.map((step, index) => {
      const [icon, words] = MARKS[step.status] ?? MARKS.pending;
      return html`<li key=${index} class=${step.status} dir="auto"><span class="plan-mark">
        ${icon && html`<${Icon} name=${icon} size=${14} />`}</span>
        <span class="unseen">${words}: </span><span>${step.text}</span></li>`;
    })}</ol></details>`;
}
