// What a turn cost, and why: its calls to the model, what each read and wrote.
/** @import { AssistantItem, Transcript } from "../../types/page.d.ts" */
import { Dialog } from "../../app/parts/dialog.js";
import { count, inFull, money, plural } from "../../app/parts/format.js";
import { html } from "../../app/ui.js";

/** @param {{ state: Transcript, turn: string, onClose: () => void }} props */
export function TurnCost({ state, turn, onClose }) {
  const calls = /** @type {AssistantItem[]} */ (
    state.items.filter((item) => item.kind === "assistant" && item.turn === turn && item.usage)
  );
  return html`<${Dialog} title="Cost of this turn" class="wide" onClose=${onClose}>
    ${
      calls.length
        ? html`<${Why} calls=${calls} /><${Calls} calls=${calls} />`
        : html`<p class="muted">The provider reported no usage for this turn.</p>`
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
    <p><strong>${cost ? money(cost) : "Cost unknown"}</strong> for ${plural(calls.length, "model call")}${
      cost > 0 && unknown > 0 ? `; the price of ${plural(unknown, "call")} is not known` : ""
    }.</p>
    <p class="muted">Each call reads the whole conversation again: ${count(read)} tokens in all, of which${" "}
      ${Math.round((cached / Math.max(read, 1)) * 100)}% came from the provider's cache, which costs less.${" "}
      The model wrote${" "}
      ${count(written)} tokens${thinking ? `, ${count(thinking)} of them while thinking` : ""}.</p>
  `;
}

/** @param {{ calls: AssistantItem[] }} props */
function Calls({ calls }) {
  const heads = ["Call", "Model", "Read", "From cache", "Written", "Cost"];
  return html`<div class="scroll-x" tabindex="0" role="region" aria-label="Calls of this turn"><table class="numbers">
    <thead><tr>${heads.map((head) => html`<th key=${head} scope="col">${head}</th>`)}</tr></thead>
    <tbody>${calls.map(
      ({ key, model, usage }, index) => html`<tr key=${key}>
        <th scope="row">${index + 1}</th><td>${model}</td>
        <td>${inFull(usage?.input_tokens ?? 0)}</td>
        <td>${inFull(usage?.cache_read_tokens ?? 0)}</td>
        <td>${inFull(usage?.output_tokens ?? 0)}</td>
        <td>${usage?.cost_usd == null ? "unknown" : money(usage.cost_usd)}</td></tr>`,
    )}</tbody></table></div>`;
}

/**
 * @param {AssistantItem[]} calls
 * @param {"input_tokens" | "output_tokens" | "cache_read_tokens" | "reasoning_tokens" | "cost_usd"} name
 */
function sum(calls, name) {
  return calls.reduce((so, one) => so + (one.usage?.[name] ?? 0), 0);
}
