// The rows of a session as steps: a title and text for each, and the cost so far.
/** @import { EventOf, HermesEvent, Step, Turn } from "../../types/page.d.ts" */

import { inFull } from "../../app/parts/format.js";
import { t } from "../../app/translation.js";

/** @typedef {[kind: string, title: string, text?: string]} Told */

/** Lanes of the strip, from the top. */
export const LANES = [t("Messages"), t("Tools"), t("Approvals"), t("Notes")];

/**
 * Kinds of steps: what a person calls them, and their lane.
 * @type {Record<string, { label: string, lane: number }>}
 */
export const KINDS = {
  user: { label: t("You"), lane: 0 },
  reply: { label: "Hermes", lane: 0 },
  tool: { label: t("Tool"), lane: 1 },
  ask: { label: t("Approval"), lane: 2 },
  room: { label: t("Context"), lane: 3 },
  learn: { label: t("Learning"), lane: 3 },
  note: { label: t("Note"), lane: 3 },
  fault: { label: t("Problem"), lane: 3 },
};

/** @type {Record<string, string>} */
const ENDS = {
  done: t("The turn ended"),
  interrupted: t("The turn was stopped"),
  failed: t("The turn failed"),
  crashed: t("Hermes stopped during this turn"),
  refused: t("The model refused"),
  budget: t("A spending cap ended the turn"),
};
/** @type {Record<string, string>} */
const ANSWERS = {
  once: t("Allowed once"),
  session: t("Allowed for this session"),
  always: t("Always allowed"),
  deny: t("Denied"),
};

/** @type {Record<string, string>} */
const VERDICTS = {
  done: t("Goal: done"),
  continue: t("Goal: continue"),
  wait: t("Goal: wait"),
  needs_you: t("Goal: needs you"),
};

/**
 * How each type of row is told: [kind, title, text].
 * @type {{ [T in HermesEvent["type"]]?: (e: EventOf<T>) => Told }}
 */
const TOLD = {
  "session.created": (e) => [
    "note",
    t("Session started"),
    joined(e.surface && t("in {surface}", { surface: e.surface }), e.cwd),
  ],
  "session.titled": (e) => [
    "note",
    e.title ? t("Titled “{title}”", { title: e.title }) : t("The title was removed"),
    by(e.by),
  ],
  "session.prompted": (e) => [
    "note",
    t("System prompt set"),
    t("{count} tool", "{count} tools", { count: e.tools?.length ?? 0 }),
  ],
  "session.imported": (e) => [
    "note",
    t("Imported"),
    t("{count} row", "{count} rows", { count: e.rows }),
  ],
  "session.recovered": (e) => [
    "fault",
    t("Recovered from a damaged file"),
    t("{count} row kept, {lost} lost", "{count} rows kept, {lost} lost", {
      count: e.kept,
      lost: e.lost,
    }),
  ],
  "session.compacted": (e) => [
    "room",
    t("The conversation was summarized"),
    t("from {before} to about {after} tokens", {
      before: inFull(e.before ?? 0),
      after: inFull(e.after ?? 0),
    }),
  ],
  "session.trimmed": (e) => [
    "room",
    t("Old results replaced by pointers"),
    t("{number} character freed", "{number} characters freed", {
      count: e.freed ?? 0,
      number: inFull(e.freed ?? 0),
    }),
  ],
  "session.compaction_failed": (e) => ["fault", t("Compression failed"), e.detail],
  "session.undone": (e) => [
    "note",
    t("Undid {count} turn", "Undid {count} turns", { count: e.turns?.length || 1 }),
    t("{count} file restored", "{count} files restored", { count: e.restored ?? 0 }),
  ],
  "session.redone": () => ["note", t("Redid the undone turns"), ""],
  "agent.message.user": (e) => [
    "user",
    e.origin === "hermes" || e.via === "goal"
      ? t("Note from Hermes")
      : e.delivery === "steer"
        ? t("You, during the turn")
        : t("You"),
    e.text,
  ],
  "agent.message.assistant": (e) => ["reply", "Hermes", e.text || callNames(e.tool_calls)],
  "agent.turn.started": () => ["note", t("Turn started"), ""],
  "agent.turn.steered": () => ["note", t("Your message reached the running turn"), ""],
  "agent.turn.ended": (e) => [
    e.reason === "done" ? "note" : "fault",
    ENDS[e.reason] ?? t("The turn ended: {reason}", { reason: e.reason }),
    e.detail,
  ],
  "agent.tool.started": (e) => [
    "tool",
    t("{tool} started", { tool: e.name }),
    preview(e.arguments),
  ],
  "agent.tool.finished": (e) =>
    e.ok === false
      ? ["fault", t("{tool} failed", { tool: e.name }), e.text]
      : ["tool", t("{tool} finished", { tool: e.name }), e.text],
  "agent.approval.requested": (e) => ["ask", t("Approval requested"), e.summary],
  "agent.approval.answered": (e) => ["ask", ANSWERS[e.answer] ?? e.answer, by(e.by)],
  "agent.question.asked": (e) => ["ask", t("A question"), e.text],
  "agent.question.answered": (e) => [
    "ask",
    e.text == null ? t("Nobody answered") : t("Answered"),
    e.text ?? "",
  ],
  "agent.interrupt.requested": (e) => ["user", t("Stop requested"), by(e.by)],
  "agent.login.expired": (e) => [
    "fault",
    t("A sign-in no longer works"),
    t("{detail} Sign in again: {command}", { detail: e.detail, command: e.command }),
  ],
  "agent.model.retried": (e) => ["fault", t("Retrying the model"), e.detail || e.reason],
  "agent.reply.rejected": (e) => ["fault", t("A reply could not be used"), e.detail || e.reason],
  "agent.turn.checked": (e) => [
    e.ok ? "note" : "fault",
    e.ok ? t("Checked by the project's rules") : t("A check found something"),
    e.detail,
  ],
  "agent.goal.set": (e) => ["user", e.is_draft ? t("Goal drafted") : t("Goal set"), e.text],
  "agent.goal.subgoals_changed": (e) => ["user", t("Subgoals"), (e.subgoals ?? []).join("; ")],
  "agent.goal.judged": (e) => [
    e.verdict === "needs_you" ? "ask" : "note",
    VERDICTS[e.verdict] ?? e.verdict,
    e.reason,
  ],
  "agent.goal.woken": (e) => ["note", t("The goal's wait is over"), e.reason],
  "agent.goal.paused": (e) => [e.by === "hermes" ? "fault" : "user", t("Goal paused"), e.reason],
  "agent.goal.resumed": (e) => ["user", t("Goal resumed"), by(e.by)],
  "agent.goal.cleared": (e) => ["user", t("Goal dropped"), by(e.by)],
  "agent.child.attached": (e) => ["note", t("Works in the background"), e.child],
  "agent.child.ended": (e) => [
    e.reason === "done" ? "note" : "fault",
    t("Background work ended: {reason}", { reason: e.reason }),
    e.text || e.detail,
  ],
  "agent.picture.described": (e) => ["note", t("A picture was described"), e.text],
  "agent.picture.reduced": (e) => ["fault", t("A picture was made smaller"), e.detail],
  "agent.picture.withheld": (e) => ["fault", t("A picture was left out"), e.detail],
  "agent.auxiliary.called": (e) => [
    "note",
    t("Auxiliary call: {task}", { task: e.task }),
    e.failure || e.model,
  ],
  "agent.learning.changed": (e) => ["learn", t("Learned"), e.title],
  "agent.learning.proposed": (e) => ["learn", t("Proposed a change"), e.title],
  "agent.learning.reviewed": (e) => ["learn", t("Review"), e.failure || e.summary],
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
  return calls?.length
    ? t("calls {tools}", { tools: calls.map((call) => call.name).join(", ") })
    : "";
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
/** @param {string | undefined} name */
const by = (name) => (name ? t("by {name}", { name }) : "");
