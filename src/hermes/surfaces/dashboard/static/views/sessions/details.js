// One step of a session, whole: what was said or done, why, and what it cost.
/** @import { Child, EventOf, HermesEvent, Step, Usage } from "../../types/page.d.ts" */

import { Ansi } from "../../app/parts/ansi.js";
import { Tag } from "../../app/parts/basics.js";
import { Code } from "../../app/parts/code.js";
import { Copy } from "../../app/parts/copy.js";
import { Diff } from "../../app/parts/diff.js";
import { absolute, duration, inFull, money, plural } from "../../app/parts/format.js";
import { Markdown } from "../../app/parts/markdown.js";
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
    <section class=${`card details kind-${step.kind}`} aria-label="Details">
      <header>
        <span class="details-kind"><i aria-hidden="true" />${KINDS[step.kind].label}</span>
        <h2>${step.title}</h2>
        <p class="muted">${absolute(step.ts)} · row ${step.seq}</p>
      </header>
      <${Body} event=${event} step=${step} pattern=${pattern} />
      ${step.usage && html`<${UsageDetails} event=${event} usage=${step.usage} />`}
      <${Row} key=${step.seq} event=${event} />
    </section>
  `;
}

/** @param {{ event: EventOf<"agent.message.user">, pattern: RegExp | null }} props */
function UserDetails({ event, pattern }) {
  return html`
    <${MessageText} text=${event.text} pattern=${pattern} />
    ${event.images?.length > 0 && html`<p class="muted">${plural(event.images.length, "picture")} attached.</p>`}
  `;
}

/** @param {{ event: EventOf<"agent.message.assistant">, pattern: RegExp | null }} props */
function ReplyDetails({ event, pattern }) {
  const { reasoning, text, tool_calls: calls = [], finish } = event;
  return html`
    ${reasoning && html`<${Fold} label="Thinking"><p class="pre muted">${reasoning}</p><//>`}
    ${text && html`<${MessageText} text=${text} pattern=${pattern} />`}
    ${calls.map((call) => html`<${Json} key=${call.id} name=${`calls ${call.name}`} text=${call.arguments} />`)}
    ${finish && !FINE.includes(finish) && html`<p><${Tag} kind="warn">${finish}<//></p>`}
  `;
}

/** @param {{ event: EventOf<"agent.tool.started"> }} props */
function ToolStartDetails({ event }) {
  const command = parsed(event.arguments)?.command;
  return html`
    ${command && html`<${Code} name="command" language="bash" text=${command} />`}
    <${Json} name="arguments" text=${event.arguments} />
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
  return html`
    <p>
      ${event.ok === false ? html`<${Tag} kind="bad">failed<//>` : html`<${Tag} kind="good">done<//>`}
      ${took > 0 && html` <span class="muted">after ${duration(took)}</span>`}
    </p>
    ${
      step.from &&
      html`
      <${Fold} label="Call"><${Json} name="arguments" text=${argumentsOf(step.from.event)} /><//>
    `
    }
    <figure class="output">
      <figcaption><span>result</span><${Copy} text=${text} label="Copy the result" /></figcaption>
      <pre tabindex="0" aria-label="Result">
        ${pattern ? html`<${Marked} text=${shown} pattern=${pattern} />` : html`<${Ansi} text=${shown} />`}
      </pre>
    </figure>
    ${hidden > 0 && html`<p class="muted">${inFull(hidden)} more characters are in the export.</p>`}
  `;
}

/** @param {{ event: EventOf<"agent.approval.requested"> }} props */
function Request({ event }) {
  return html`
    <${Code} name=${`${event.name} wants to`} language="bash" text=${event.summary} />
    <dl class="facts">
      ${event.reason && html`<dt>Reason</dt><dd>${event.reason}</dd>`}
      <dt>Reach</dt>
      <dd>${event.reach}</dd>
      ${event.shape && html`<dt>An answer covers</dt><dd>${event.shape}</dd>`}
    </dl>
  `;
}

/** @param {{ event: EventOf<"agent.turn.ended"> }} props */
function TurnEndDetails({ event }) {
  return html`
    <p><${Tag} kind=${ENDS[event.reason] ?? "bad"}>${event.reason}<//></p>
    ${event.detail && html`<p>${event.detail}</p>`}
    ${event.usage && html`<p class="muted">The whole turn:</p><${UsageDetails} event=${event} usage=${event.usage} />`}
  `;
}

/** @param {{ event: EventOf<"session.compacted"> }} props */
function Compaction({ event }) {
  return html`
    <p>
      ${event.before?.toLocaleString("en")} tokens became about ${event.after?.toLocaleString("en")}.
      The model now reads this summary; the log keeps every message:
    </p>
    <${Markdown} text=${event.summary} />
  `;
}

/** @param {{ event: EventOf<"session.prompted"> }} props */
function Prompt({ event }) {
  const { tools = [], system = [] } = event;
  return html`
    <p>${plural(tools.length, "tool")}: ${tools.map((tool) => tool.name).join(", ")}</p>
    ${system.map(
      (text, index) => html`
      <${Fold} key=${index} label=${`Part ${index + 1} of the instructions`}><p class="pre">${text}</p><//>
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
    <p><a href="#/learning">Review it</a></p>
  `;
}

/** @param {{ step: Step }} props */
function StepText({ step }) {
  return step.text ? html`<p class="pre">${step.text}</p>` : null;
}

/** @param {{ event: { provider?: string, model?: string }, usage: Usage }} props */
function UsageDetails({ event, usage }) {
  /**
   * @param {number} number
   * @param {number} part
   * @param {string} of
   */
  const tokens = (number, part, of) =>
    `${inFull(number ?? 0)} tokens${part ? `, ${inFull(part)} of them ${of}` : ""}`;
  return html`
    <dl class="facts">
      ${event.model && html`<dt>Model</dt><dd>${[event.provider, event.model].filter(Boolean).join(":")}</dd>`}
      <dt>Input</dt>
      <dd>${tokens(usage.input_tokens, usage.cache_read_tokens, "from the cache")}</dd>
      <dt>Output</dt>
      <dd>${tokens(usage.output_tokens, usage.reasoning_tokens, "for thinking")}</dd>
      <dt>Cost</dt>
      <dd>${money(usage.cost_usd)}</dd>
    </dl>
  `;
}

/**
 * The row as it is in the log; drawn when it is opened.
 * @param {{ event: HermesEvent }} props
 */
function Row({ event }) {
  const [open, setOpen] = useState(false);
  return html`
    <${Fold} label="The row as JSON" onToggle=${(toggled) => setOpen(isOpen(toggled))}>
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
