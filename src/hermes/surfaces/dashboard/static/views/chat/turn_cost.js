// What a turn cost, and why: its calls to the model, what each read and wrote.
/** @import { AssistantItem, Transcript } from "../../types/page.d.ts" */

import { Dialog } from "../../app/parts/dialog.js";
import { count, inFull, money } from "../../app/parts/format.js";
import { t, withElements } from "../../app/translation.js";
import { html } from "../../app/ui.js";

/** @param {{ state: Transcript, turn: string, onClose: () => void }} props */
export function TurnCost({ state, turn, onClose }) {
  const calls = /** @type {AssistantItem[]} */ (
    state.items.filter((item) => item.kind === "assistant" && item.turn === turn && item.usage)
  );
  return html`<${Dialog} title=${t("Cost of this turn")} class="wide" onClose=${onClose}>
    ${
      calls.length
        ? html`<${Why} calls=${calls} /><${Calls} calls=${calls} />`
        : html`<p class="muted">${t("The provider reported no usage for this turn.")}</p>`
    }
  <//>`;
}

/** @param {{ calls: AssistantItem[] }} props */
function Why({ calls }) {
  const read = sum(calls, "input_tokens");
  const cached = sum(calls, "cache_read_tokens");
  const written = sum(calls, "output_tokens");
  const thinking = sum(calls, "reasoning_tokens");
  const unknown = calls.filter((one) => one.usage?.cost_usd == null).length;
  const cost = sum(calls, "cost_usd");
  return html`
    <p>${withElements(
      t("{cost} for {count} model call.", "{cost} for {count} model calls.", {
        count: calls.length,
      }),
      { cost: html`<strong>${cost ? money(cost) : t("Cost unknown")}</strong>` },
    )}${" "}
      ${
        cost > 0 &&
        unknown > 0 &&
        t("The price of {count} call is not known.", "The price of {count} calls is not known.", {
          count: unknown,
        })
      }</p>
    <p class="muted">
      ${t("Each call reads the whole conversation again: {count} tokens in all.", { count: count(read) })}${" "}
      ${t("{share}% of them came from the provider's cache, which costs less.", {
        share: Math.round((cached / Math.max(read, 1)) * 100),
      })}${" "}
      ${
        thinking
          ? t("The model wrote {count} tokens, {thinking} of them while thinking.", {
              count: count(written),
              thinking: count(thinking),
            })
          : t("The model wrote {count} tokens.", { count: count(written) })
      }</p>
  `;
}

/** @param {{ calls: AssistantItem[] }} props */
function Calls({ calls }) {
  const heads = [t("Call"), t("Model"), t("Read"), t("From cache"), t("Written"), t("Cost")];
  return html`<div class="scroll-x" tabindex="0" role="region" aria-label=${t("Calls of this turn")}>
    <table class="numbers">
    <thead><tr>${heads.map((head) => html`<th key=${head} scope="col">${head}</th>`)}</tr></thead>
    <tbody>${calls.map(
      ({ key, model, usage }, index) => html`<tr key=${key}>
        <th scope="row">${index + 1}</th><td>${model}</td>
        <td>${inFull(usage?.input_tokens ?? 0)}</td>
        <td>${inFull(usage?.cache_read_tokens ?? 0)}</td>
        <td>${inFull(usage?.output_tokens ?? 0)}</td>
        <td>${usage?.cost_usd == null ? t("unknown") : money(usage.cost_usd)}</td></tr>`,
    )}</tbody></table></div>`;
}

/**
 * @param {AssistantItem[]} calls
 * @param {"input_tokens" | "output_tokens" | "cache_read_tokens" | "reasoning_tokens" | "cost_usd"} name
 */
function sum(calls, name) {
  return calls.reduce((so, one) => so + (one.usage?.[name] ?? 0), 0);
}
