// One step of a session, whole: what was said or done, why, and what it cost.
/** @import { Child, EventOf, HermesEvent, Step, Usage } from "../../types/page.d.ts" */

import { Ansi } from "../../app/parts/ansi.js";
import { Tag } from "../../app/parts/basics.js";
import { Code } from "../../app/parts/code.js";
import { Copy } from "../../app/parts/copy.js";
import { Diff } from "../../app/parts/diff.js";
import { absolute, duration, inFull, money } from "../../app/parts/format.js";
import { Markdown } from "../../app/parts/markdown.js";
import { shownReason, t } from "../../app/translation.js";
import { html, isOpen, useState } from "../../app/ui.js";
import { Marked } from "./highlighted_words.js";
import { KINDS } from "./steps.js";

const LONGEST_CHARS = 20_000; // characters of a result that are drawn
/** @type {Record<string, string>} */
const ENDS = { done: "good", interrupted: "warn", budget: "warn" };
const FINE = ["stop", "tool_calls"]; // ends of a reply that need no words
/** @type {Record<string, Function>} */
const BODIES = {
  "agent.message.user": UserDetails,
  "agent.message.assistant": ReplyDetails,
  "agent.tool.started": ToolStartDetails,
  "agent.tool.finished": Result,
  "agent.approval.requested": Request,
  "agent.turn.ended": TurnEndDetails,
  "session.compacted": Compaction,
  "session.prompted": Prompt,
  "agent.learning.proposed": Proposal,
};

/**
 * `pattern` marks what was searched for.
 * @param {{ step: Step, pattern: RegExp | null }} props
 */
export function Details({ step, pattern }) {
  const { event } = step;
  const Body = BODIES[event.type] ?? StepText;
  return html`
    <section class=${`card details kind-${step.kind}`} aria-label=${t("Details")}>
      <header>
        <span class="details-kind"><i aria-hidden="true" />${KINDS[step.kind].label}</span>
        <h2>${step.title}</h2>
        <p class="muted">${t("{time} · row {row}", { time: absolute(step.ts), row: step.seq })}</p>
      </header>
      <${Body} event=${event} step=${step} pattern=${pattern} />
      ${step.usage && html`<${UsageDetails} event=${event} usage=${step.usage} />`}
      <${Row} key=${step.seq} event=${event} />
    </section>
  `;
}

/** @param {{ event: EventOf<"agent.message.user">, pattern: RegExp | null }} props */
function UserDetails({ event, pattern }) {
  const count = event.images?.length ?? 0;
  const pictures = t("{count} picture attached.", "{count} pictures attached.", { count });
  return html`
    <${MessageText} text=${event.text} pattern=${pattern} />
    ${count > 0 && html`<p class="muted">${pictures}</p>`}
  `;
}

/** @param {{ event: EventOf<"agent.message.assistant">, pattern: RegExp | null }} props */
function ReplyDetails({ event, pattern }) {
  const { reasoning, text, tool_calls: calls = [], finish } = event;
  return html`
    ${reasoning && html`<${Fold} label=${t("Thinking")}><p class="pre muted">${reasoning}</p><//>`}
    ${text && html`<${MessageText} text=${text} pattern=${pattern} />`}
    ${calls.map(
      (call) => html`<${Json} key=${call.id} name=${t("calls {tools}", { tools: call.name })}
        text=${call.arguments} />`,
    )}
    ${finish && !FINE.includes(finish) && html`<p><${Tag} kind="warn">${finish}<//></p>`}
  `;
}

/** @param {{ event: EventOf<"agent.tool.started"> }} props */
function ToolStartDetails({ event }) {
  const command = parsed(event.arguments)?.command;
  return html`
    ${command && html`<${Code} name=${t("command")} language="bash" text=${command} />`}
    <${Json} name=${t("arguments")} text=${event.arguments} />
  `;
}

/**
 * @param {{ event: EventOf<"agent.tool.finished">, step: Step, pattern: RegExp | null }} props
 */
function Result({ event, step, pattern }) {
  const text = event.text ?? "";
  const shown = text.slice(0, LONGEST_CHARS);
  const hidden = text.length - shown.length;
  const took = step.from ? step.ts - step.from.ts : 0;
  const more = t(
    "{number} more character is in the export.",
    "{number} more characters are in the export.",
    { count: hidden, number: inFull(hidden) },
  );
  return html`
    <p>
      ${event.ok === false ? html`<${Tag} kind="bad">${t("failed")}<//>` : html`<${Tag} kind="good">${t("done")}<//>`}
      ${took > 0 && html` <span class="muted">${t("after {time}", { time: duration(took) })}</span>`}
    </p>
    ${
      step.from &&
      html`
      <${Fold} label=${t("Call")}><${Json} name=${t("arguments")} text=${argumentsOf(step.from.event)} /><//>
    `
    }
    <figure class="output">
      <figcaption><span>${t("result")}</span><${Copy} text=${text} label=${t("Copy the result")} /></figcaption>
      <pre tabindex="0" aria-label=${t("Result")}>
        ${pattern ? html`<${Marked} text=${shown} pattern=${pattern} />` : html`<${Ansi} text=${shown} />`}
      </pre>
    </figure>
    ${hidden > 0 && html`<p class="muted">${more}</p>`}
  `;
}

/** @param {{ event: EventOf<"agent.approval.requested"> }} props */
function Request({ event }) {
  return html`
    <${Code} name=${t("{tool} wants to", { tool: event.name })} language="bash" text=${event.summary} />
    <dl class="facts">
      ${event.reason && html`<dt>${t("Reason")}</dt><dd>${shownReason(event.reason)}</dd>`}
      <dt>${t("Reach")}</dt>
      <dd>${event.reach}</dd>
      ${event.shape && html`<dt>${t("An answer covers")}</dt><dd>${event.shape}</dd>`}
    </dl>
  `;
}

/** @param {{ event: EventOf<"agent.turn.ended"> }} props */
function TurnEndDetails({ event }) {
  return html`
    <p><${Tag} kind=${ENDS[event.reason] ?? "bad"}>${event.reason}<//></p>
    ${event.detail && html`<p>${event.detail}</p>`}
    ${event.usage && html`<p class="muted">${t("The whole turn:")}</p>`}
    ${event.usage && html`<${UsageDetails} event=${event} usage=${event.usage} />`}
  `;
}

/** @param {{ event: EventOf<"session.compacted"> }} props */
function Compaction({ event }) {
  return html`
    <p>
      ${t("{before} tokens became about {after}.", { before: inFull(event.before), after: inFull(event.after) })}${" "}
      ${t("The model now reads this summary; the log keeps every message:")}
    </p>
    <${Markdown} text=${event.summary} />
  `;
}

/** @param {{ event: EventOf<"session.prompted"> }} props */
function Prompt({ event }) {
  const { tools = [], system = [] } = event;
  const names = tools.map((tool) => tool.name).join(", ");
  return html`
    <p>${t("{count} tool: {names}", "{count} tools: {names}", { count: tools.length, names })}</p>
    ${system.map(
      (text, index) => html`
      <${Fold} key=${index} label=${t("Part {number} of the instructions", { number: index + 1 })}>
        <p class="pre">${text}</p>
      <//>
    `,
    )}
  `;
}

/** @param {{ event: EventOf<"agent.learning.proposed"> }} props */
function Proposal({ event }) {
  return html`
    <p>${event.title}</p>
    ${event.why && html`<p class="muted">${event.why}</p>`}
    ${event.diff && html`<${Diff} text=${event.diff} />`}
    <p><a href="#/learning">${t("Review it")}</a></p>
  `;
}

/** @param {{ step: Step }} props */
function StepText({ step }) {
  return step.text ? html`<p class="pre">${step.text}</p>` : null;
}

/** @param {{ event: { provider?: string, model?: string }, usage: Usage }} props */
function UsageDetails({ event, usage }) {
  return html`
    <dl class="facts">
      ${event.model && html`<dt>${t("Model")}</dt><dd>${[event.provider, event.model].filter(Boolean).join(":")}</dd>`}
      <dt>${t("Input")}</dt>
      <dd>${inputTokens(usage)}</dd>
      <dt>${t("Output")}</dt>
      <dd>${outputTokens(usage)}</dd>
      <dt>${t("Cost")}</dt>
      <dd>${money(usage.cost_usd)}</dd>
    </dl>
  `;
}

/** @param {Usage} usage */
function inputTokens({ input_tokens: count = 0, cache_read_tokens: cached }) {
  const number = inFull(count);
  if (!cached) return t("{number} token", "{number} tokens", { count, number });
  return t(
    "{number} token, {cached} of them from the cache",
    "{number} tokens, {cached} of them from the cache",
    { count, number, cached: inFull(cached) },
  );
}

/** @param {Usage} usage */
function outputTokens({ output_tokens: count = 0, reasoning_tokens: thinking }) {
  const number = inFull(count);
  if (!thinking) return t("{number} token", "{number} tokens", { count, number });
  return t(
    "{number} token, {thinking} of them for thinking",
    "{number} tokens, {thinking} of them for thinking",
    { count, number, thinking: inFull(thinking) },
  );
}

/**
 * The row as it is in the log; drawn when it is opened.
 * @param {{ event: HermesEvent }} props
 */
function Row({ event }) {
  const [open, setOpen] = useState(false);
  return html`
    <${Fold} label=${t("The row as JSON")} onToggle=${(toggled) => setOpen(isOpen(toggled))}>
      ${open && html`<${Code} language="json" name=${event.type} text=${JSON.stringify(event, null, 2)} />`}
    <//>
  `;
}

/**
 * What was said; as plain text while words are marked in it.
 * @param {{ text: string, pattern: RegExp | null }} props
 */
function MessageText({ text, pattern }) {
  if (!pattern) return html`<${Markdown} text=${text} />`;
  return html`<p class="pre"><${Marked} text=${text} pattern=${pattern} /></p>`;
}

/**
 * Arguments of a call, laid out when they are JSON.
 * @param {{ name: string, text: string }} props
 */
function Json({ name, text }) {
  const found = parsed(text);
  const laidOut = found === null ? (text ?? "") : JSON.stringify(found, null, 2);
  return html`<${Code} name=${name} language="json" text=${laidOut} />`;
}

/** @param {{ label: string, children?: Child, onToggle?: Function }} props */
function Fold({ label, children, ...rest }) {
  return html`<details class="fold" ...${rest}><summary>${label}</summary>${children}</details>`;
}

/** @param {string} text */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** @param {HermesEvent} event */
function argumentsOf(event) {
  return event.type === "agent.tool.started" ? event.arguments : "";
}
