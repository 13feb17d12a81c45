// One step of a session, whole: what was said or done, why, and what it cost.
import { Tag } from "../../app/parts/basics.js";
import { Ansi } from "../../app/parts/ansi.js";
import { Code } from "../../app/parts/code.js";
import { Copy } from "../../app/parts/copy.js";
import { Diff } from "../../app/parts/diff.js";
import { absolute, duration, money, plural } from "../../app/parts/format.js";
import { Markdown } from "../../app/parts/markdown.js";
import { html, useState } from "../../app/ui.js";
import { Marked } from "./marked.js";
import { KINDS } from "./story.js";

const LONGEST = 20_000; // characters of a result that are drawn
const ENDS = { done: "good", interrupted: "warn", budget: "warn" };

/** `pattern` marks what was searched for. */
export function Details({ step, pattern }) {
  const { event } = step;
  const Body = BODIES[event.type] ?? Rest;
  return html`<section class=${`card details kind-${step.kind}`} aria-label="Details">
    <header><span class="details-kind"><i aria-hidden="true" />${KINDS[step.kind].label}</span><h2>${step.title}</h2>
      <p class="muted">${absolute(step.ts)} · row ${step.seq}</p></header>
    <${Body} event=${event} step=${step} pattern=${pattern} />
    ${step.usage && html`<${Spent} event=${event} usage=${step.usage} />`}
    <${Json} key=${step.seq} event=${event} />
  </section>`;
}

const BODIES = {
  "agent.message.user": Said,
  "agent.message.assistant": Answer,
  "agent.tool.started": Begun,
  "agent.tool.finished": Result,
  "agent.approval.requested": Request,
  "agent.turn.ended": End,
  "session.compacted": ({ event }) => html`<p>${event.before?.toLocaleString("en")} tokens became about ${event.after?.toLocaleString("en")}. The model reads this instead; the log keeps everything:</p><${Markdown} text=${event.summary} />`,
  "session.prompted": Prompt,
  "agent.learning.proposed": ({ event }) => html`<p>${event.title}</p>${event.why && html`<p class="muted">${event.why}</p>`}${event.diff && html`<${Diff} text=${event.diff} />`}<p><a href="#/learning">Decide about it</a></p>`,
};

function Said({ event, pattern }) {
  return html`${pattern ? html`<p class="pre"><${Marked} text=${event.text} pattern=${pattern} /></p>` : html`<${Markdown} text=${event.text} />`}
    ${event.images?.length > 0 && html`<p class="muted">${plural(event.images.length, "picture")} came with it.</p>`}`;
}

function Answer({ event, pattern }) {
  return html`${event.reasoning && html`<details class="fold"><summary>Thinking</summary><p class="pre muted">${event.reasoning}</p></details>`}
    ${event.text && (pattern ? html`<p class="pre"><${Marked} text=${event.text} pattern=${pattern} /></p>` : html`<${Markdown} text=${event.text} />`)}
    ${(event.tool_calls ?? []).map((call) => html`<${Code} key=${call.id} name=${`asks for ${call.name}`} language="json" text=${pretty(call.arguments)} />`)}
    ${event.finish && !["stop", "tool_calls"].includes(event.finish) && html`<p><${Tag} kind="warn">${event.finish}<//></p>`}`;
}

function Begun({ event }) {
  const command = parsed(event.arguments)?.command;
  return html`${command && html`<${Code} name="command" language="bash" text=${command} />`}<${Code} name="arguments" language="json" text=${pretty(event.arguments)} />`;
}

function Result({ event, step, pattern }) {
  const text = event.text ?? "";
  const shown = text.slice(0, LONGEST);
  const took = step.from && step.ts - step.from.ts;
  return html`<p>${event.ok === false ? html`<${Tag} kind="bad">failed<//>` : html`<${Tag} kind="good">done<//>`}${took > 0 && html` <span class="muted">after ${duration(took)}</span>`}</p>
    ${step.from && html`<details class="fold"><summary>What was asked</summary><${Code} name="arguments" language="json" text=${pretty(step.from.event.arguments)} /></details>`}
    <figure class="output"><figcaption><span>result</span><${Copy} text=${text} label="Copy the result" /></figcaption>
      <pre tabindex="0" aria-label="Result">${pattern ? html`<${Marked} text=${shown} pattern=${pattern} />` : html`<${Ansi} text=${shown} />`}</pre></figure>
    ${shown.length < text.length && html`<p class="muted">${(text.length - shown.length).toLocaleString("en")} more characters; the export has all of it.</p>`}`;
}

function Request({ event }) {
  return html`<${Code} name=${`${event.name} wants to`} language="bash" text=${event.summary} />
    <dl class="facts">${event.reason && html`<dt>Why it asks</dt><dd>${event.reason}</dd>`}<dt>How far it reaches</dt><dd>${event.reach}</dd>${event.shape && html`<dt>What an answer covers</dt><dd>${event.shape}</dd>`}</dl>`;
}

function End({ event }) {
  return html`<p><${Tag} kind=${ENDS[event.reason] ?? "bad"}>${event.reason}<//></p>${event.detail && html`<p>${event.detail}</p>`}
    ${event.usage && html`<p class="muted">The whole turn:</p><${Spent} event=${event} usage=${event.usage} />`}`;
}

function Prompt({ event }) {
  return html`<p>${plural(event.tools?.length ?? 0, "tool")}: ${(event.tools ?? []).map((tool) => tool.name).join(", ")}</p>
    ${(event.system ?? []).map((text, index) => html`<details key=${index} class="fold"><summary>Part ${index + 1} of the instructions</summary><p class="pre">${text}</p></details>`)}`;
}

function Rest({ step }) {
  return step.text ? html`<p class="pre">${step.text}</p>` : null;
}

function Spent({ event, usage }) {
  const number = (value) => (value ?? 0).toLocaleString("en");
  return html`<dl class="facts">
    ${event.model && html`<dt>Model</dt><dd>${[event.provider, event.model].filter(Boolean).join(":")}</dd>`}
    <dt>Read</dt><dd>${number(usage.input_tokens)} tokens${usage.cache_read_tokens ? `, ${number(usage.cache_read_tokens)} of them from the cache` : ""}</dd>
    <dt>Written</dt><dd>${number(usage.output_tokens)} tokens${usage.reasoning_tokens ? `, ${number(usage.reasoning_tokens)} of them thinking` : ""}</dd>
    <dt>Cost</dt><dd>${money(usage.cost_usd)}</dd>
  </dl>`;
}

/** The row as it is in the log; drawn when it is opened. */
function Json({ event }) {
  const [open, setOpen] = useState(false);
  return html`<details class="fold" onToggle=${(toggled) => setOpen(toggled.target.open)}><summary>The row as JSON</summary>${open && html`<${Code} language="json" name=${event.type} text=${JSON.stringify(event, null, 2)} />`}</details>`;
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function pretty(text) {
  const found = parsed(text);
  return found === null ? text ?? "" : JSON.stringify(found, null, 2);
}
