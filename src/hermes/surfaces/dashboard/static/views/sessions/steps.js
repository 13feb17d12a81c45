// The rows of a session as steps: a title and text for each, and the cost so far.
/** @import { EventOf, HermesEvent, Step, Turn } from "../../types/page.d.ts" */

import { plural } from "../../app/parts/format.js";

/** @typedef {[kind: string, title: string, text?: string]} Told */

/** Lanes of the strip, from the top. */
export const LANES = ["Messages", "Tools", "Approvals", "Notes"];

/**
 * Kinds of steps: what a person calls them, and their lane.
 * @type {Record<string, { label: string, lane: number }>}
 */
export const KINDS = {
  user: { label: "You", lane: 0 },
  reply: { label: "Hermes", lane: 0 },
  tool: { label: "Tool", lane: 1 },
  ask: { label: "Approval", lane: 2 },
  room: { label: "Context", lane: 3 },
  learn: { label: "Learning", lane: 3 },
  note: { label: "Note", lane: 3 },
  fault: { label: "Problem", lane: 3 },
};

/** @type {Record<string, string>} */
const ENDS = {
  done: "The turn ended",
  interrupted: "The turn was stopped",
  failed: "The turn failed",
  crashed: "Hermes stopped during this turn",
  refused: "The model refused",
  budget: "A spending cap ended the turn",
};
/** @type {Record<string, string>} */
const ANSWERS = {
  once: "Allowed once",
  session: "Allowed for this session",
  always: "Always allowed",
  deny: "Denied",
};

/**
 * How each type of row is told: [kind, title, text].
 * @type {{ [T in HermesEvent["type"]]?: (e: EventOf<T>) => Told }}
 */
const TOLD = {
  "session.created": (e) => [
    "note",
    "Session started",
    joined(e.surface && `in ${e.surface}`, e.cwd),
  ],
  "session.titled": (e) => [
    "note",
    e.title ? `Titled “${e.title}”` : "The title was removed",
    `by ${e.by}`,
  ],
  "session.prompted": (e) => ["note", "System prompt set", `${e.tools?.length ?? 0} tools`],
  "session.imported": (e) => ["note", "Imported", `${e.rows} rows`],
  "session.recovered": (e) => [
    "fault",
    "Recovered from a damaged file",
    `${e.kept} rows kept, ${e.lost} lost`,
  ],
  "session.compacted": (e) => [
    "room",
    "The conversation was summarized",
    `about ${count(e.before)} → ${count(e.after)} tokens`,
  ],
  "session.trimmed": (e) => [
    "room",
    "Old results replaced by pointers",
    `${count(e.freed)} characters freed`,
  ],
  "session.compaction_failed": (e) => ["fault", "Compression failed", e.detail],
  "session.undone": (e) => [
    "note",
    `Undid ${plural(e.turns?.length || 1, "turn")}`,
    `${plural(e.restored ?? 0, "file")} restored`,
  ],
  "session.redone": () => ["note", "Redid the undone turns", ""],
  "agent.message.user": (e) => [
    "user",
    e.origin === "hermes" || e.via === "goal"
      ? "Note from Hermes"
      : e.delivery === "steer"
        ? "You, during the turn"
        : "You",
    e.text,
  ],
  "agent.message.assistant": (e) => ["reply", "Hermes", e.text || callNames(e.tool_calls)],
  "agent.turn.started": () => ["note", "Turn started", ""],
  "agent.turn.steered": () => ["note", "Your message reached the running turn", ""],
  "agent.turn.ended": (e) => [
    e.reason === "done" ? "note" : "fault",
    ENDS[e.reason] ?? `The turn ended: ${e.reason}`,
    e.detail,
  ],
  "agent.tool.started": (e) => ["tool", `${e.name} started`, preview(e.arguments)],
  "agent.tool.finished": (e) =>
    e.ok === false ? ["fault", `${e.name} failed`, e.text] : ["tool", `${e.name} finished`, e.text],
  "agent.approval.requested": (e) => ["ask", "Approval requested", e.summary],
  "agent.approval.answered": (e) => ["ask", ANSWERS[e.answer] ?? e.answer, e.by && `by ${e.by}`],
  "agent.question.asked": (e) => ["ask", "A question", e.text],
  "agent.question.answered": (e) => [
    "ask",
    e.text == null ? "Nobody answered" : "Answered",
    e.text ?? "",
  ],
  "agent.interrupt.requested": (e) => ["user", "Stop requested", e.by && `by ${e.by}`],
  "agent.login.expired": (e) => [
    "fault",
    "A sign-in no longer works",
    `${e.detail} Sign in again: ${e.command}`,
  ],
  "agent.model.retried": (e) => ["fault", "Retrying the model", e.detail || e.reason],
  "agent.reply.rejected": (e) => ["fault", "A reply could not be used", e.detail || e.reason],
  "agent.turn.checked": (e) => [
    e.ok ? "note" : "fault",
    e.ok ? "Checked by the project's rules" : "A check found something",
    e.detail,
  ],
  "agent.goal.set": (e) => ["user", e.is_draft ? "Goal drafted" : "Goal set", e.text],
  "agent.goal.subgoals_changed": (e) => ["user", "Subgoals", (e.subgoals ?? []).join("; ")],
  "agent.goal.judged": (e) => [
    e.verdict === "needs_you" ? "ask" : "note",
    `Goal: ${e.verdict.replace("_", " ")}`,
    e.reason,
  ],
  "agent.goal.woken": (e) => ["note", "The goal's wait is over", e.reason],
  "agent.goal.paused": (e) => [e.by === "hermes" ? "fault" : "user", "Goal paused", e.reason],
  "agent.goal.resumed": (e) => ["user", "Goal resumed", e.by && `by ${e.by}`],
  "agent.goal.cleared": (e) => ["user", "Goal dropped", e.by && `by ${e.by}`],
  "agent.child.attached": (e) => ["note", "Works in the background", e.child],
  "agent.child.ended": (e) => [
    e.reason === "done" ? "note" : "fault",
    `Background work ended: ${e.reason}`,
    e.text || e.detail,
  ],
  "agent.picture.described": (e) => ["note", "A picture was described", e.text],
  "agent.picture.reduced": (e) => ["fault", "A picture was made smaller", e.detail],
  "agent.picture.withheld": (e) => ["fault", "A picture was left out", e.detail],
  "agent.auxiliary.called": (e) => ["note", `Auxiliary call: ${e.task}`, e.failure || e.model],
  "agent.learning.changed": (e) => ["learn", "Learned", e.title],
  "agent.learning.proposed": (e) => ["learn", "Proposed a change", e.title],
  "agent.learning.reviewed": (e) => ["learn", "Review", e.failure || e.summary],
};

const SAYS_MOST = ["command", "path", "query", "url", "task", "code", "name"]; // of a tool's arguments

/** Builds the steps row by row, so that a session that still runs only adds to what is there. */
export class StepLog {
  /** @type {Step[]} */
  steps = [];
  /** @type {Turn[]} */
  turns = [];
  cost = 0;
  tokens = 0;
  unpriced = 0;
  /** @type {Record<string, number>} */
  numbers = {}; // of steps, by kind
  /** @type {Map<string, Step>} */
  #calls = new Map();

  /**
   * Adds a durable row.
   * @param {HermesEvent} event
   */
  add(event) {
    const tell = /** @type {(event: HermesEvent) => Told} */ (TOLD[event.type] ?? plainStep);
    const [kind, title, text] = tell(event);
    // The usage of a whole turn is the sum of what was counted before.
    const isCounted = event.type !== "agent.turn.ended" && "usage" in event;
    const usage = isCounted ? event.usage : null;
    this.cost += usage?.cost_usd ?? 0;
    this.tokens += (usage?.input_tokens ?? 0) + (usage?.output_tokens ?? 0);
    if (usage && usage.cost_usd == null) this.unpriced += 1;
    const step = {
      index: this.steps.length,
      seq: event.seq,
      ts: event.ts,
      kind,
      title,
      text: text || "",
      event,
      usage,
      turn: this.turns.length,
      cost: this.cost,
      tokens: this.tokens,
      from: null,
    };
    this.#bounds(event, step);
    this.steps.push(step);
    this.numbers[kind] = (this.numbers[kind] ?? 0) + 1;
  }

  /**
   * @param {HermesEvent} event
   * @param {Step} step
   */
  #bounds(event, step) {
    if (event.type === "agent.turn.started") {
      this.turns.push({ id: event.turn_id, from: step.index, to: null, reason: "" });
      step.turn = this.turns.length;
    } else if (event.type === "agent.turn.ended") {
      const turn = this.turns.findLast((one) => one.id === event.turn_id);
      if (turn) Object.assign(turn, { to: step.index, reason: event.reason });
    } else if (event.type === "agent.tool.started") {
      this.#calls.set(event.call_id, step);
    } else if (event.type === "agent.tool.finished") {
      step.from = this.#calls.get(event.call_id) ?? null;
    }
  }
}

/**
 * @param {HermesEvent} event
 * @returns {Told}
 */
function plainStep(event) {
  return ["note", event.type, ""];
}

/** @param {{ name: string }[]} calls */
function callNames(calls) {
  return calls?.length ? `calls ${calls.map((call) => call.name).join(", ")}` : "";
}

/**
 * The one argument that says most, else all of them.
 * @param {string} text
 */
export function preview(text) {
  try {
    const given = JSON.parse(text);
    const known = SAYS_MOST.find((name) => typeof given[name] === "string");
    if (known) return given[known];
    return text === "{}" ? "" : text;
  } catch {
    return text;
  }
}

/** @param {...string} parts */
const joined = (...parts) => parts.filter(Boolean).join(" · ");
/** @param {number | undefined} number */
const count = (number) => (number ?? 0).toLocaleString("en");
