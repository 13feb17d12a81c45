// The transcript of a session, computed from its events by a pure function: the same events always give the same
// transcript, however they were cut into batches and how often the connection was lost in between.
/**
 * @import {
 *   Envelope, EventOf, HermesEvent, Item, LiveReply, OpenQuestion, ToolItem, Transcript, Usage,
 *   UserItem, WaitingRow,
 * } from "../../types/page.d.ts"
 */

import { inFull } from "../../app/parts/format.js";
import { LongText } from "../../app/parts/long_text.js";
import { t } from "../../app/translation.js";

/** @typedef {(state: Transcript, event: HermesEvent) => void} Handler */

/**
 * The state before the first event.
 * @param {string} session
 * @returns {Transcript}
 */
export function fresh(session) {
  return {
    session,
    epoch: 0,
    first: 1, // seq of the first row that is known; those before it can be read
    head: 0, // seq of the last row
    items: [], // what is shown, in order; an item that changes is a new object
    live: null, // what is being written: {text, reasoning: LongText, tool, turn}
    turn: "", // the turn that runs
    since: 0, // when it began
    stepSince: 0, // when it began its current step: the last result or answer
    stopping: false,
    title: "",
    cwd: "",
    surface: "",
    kind: "root",
    parent: "",
    model: "",
    cost: 0,
    unpriced: 0, // calls whose price is not known
    context: 0, // tokens of the last request and its reply
    redoable: 0, // seq of an undo that can be taken back
    ready: false, // the replay is over
    deleted: false,
  };
}

/**
 * The state after some events. Neither the state nor the events are changed.
 * @param {Transcript} state
 * @param {HermesEvent[]} events
 */
export function reduce(state, events) {
  const next = { ...state };
  if (!events.every((event) => WRITING.has(event.type))) next.items = [...state.items];
  for (const event of events) apply(next, event);
  return next;
}

/**
 * Whether an event is a piece of what is being written: of a reply, or of a running call's output.
 * @param {HermesEvent} event
 */
export function isPiece(event) {
  return WRITING.has(event.type) || event.type === "agent.tool.progress";
}

/**
 * @param {Transcript} state
 * @param {HermesEvent} event
 */
function apply(state, event) {
  if (event.type === "feed.epoch_changed")
    return void Object.assign(state, fresh(state.session), { epoch: event.epoch });
  const isOfChild = event.session_id !== undefined && event.session_id !== state.session;
  if (isOfChild) return undefined;
  if (event.seq !== undefined) {
    if (event.epoch === state.epoch && event.seq <= state.head) return undefined;
    [state.epoch, state.head] = [event.epoch, event.seq];
  }
  const handle = /** @type {Handler | undefined} */ (HANDLERS[event.type]);
  return handle?.(state, event);
}

// Events that change no item: most are of this kind, so the list stays the same object.
const WRITING = new Set(["agent.message.delta", "agent.reasoning.delta", "agent.tool.generating"]);
const OUTPUT_CHARS = 64 * 1024; // characters of a running call's output that are kept, as the server does
/** @type {never[]} */
const NONE = []; // one shared object, so that items can be compared by identity

/**
 * How a session that works for another one is doing, and how it ended.
 * @type {Record<string, string>}
 */
export const CHILD_STATES = {
  working: t("working"),
  "asks you": t("asks you"),
  "cut off": t("cut off"),
  done: t("done"),
  interrupted: t("interrupted"),
  failed: t("failed"),
  crashed: t("crashed"),
  refused: t("refused"),
  budget: t("budget"),
  "not begun": t("not begun"),
};

/** @type {Record<string, string>} */
const VERDICTS = {
  done: t("Goal reached"),
  continue: t("Goal not reached yet"),
  wait: t("Goal waits"),
  needs_you: t("The goal needs you"),
};
/** @type {Record<string, (count: number) => string>} */
const VERDICTS_AFTER = {
  done: (count) =>
    t("Goal reached after {count} turn", "Goal reached after {count} turns", { count }),
  continue: (count) =>
    t("Goal not reached yet after {count} turn", "Goal not reached yet after {count} turns", {
      count,
    }),
  wait: (count) => t("Goal waits after {count} turn", "Goal waits after {count} turns", { count }),
  needs_you: (count) =>
    t("The goal needs you after {count} turn", "The goal needs you after {count} turns", { count }),
};

/** @type {{ [T in HermesEvent["type"]]?: (state: Transcript, event: EventOf<T>) => void }} */
const HANDLERS = {
  "feed.hello": (state, event) => {
    state.epoch ||= event.epoch;
  },
  "feed.truncated": (state, event) => {
    const rows = event.last - event.first + 1;
    note(
      state,
      { ...event, seq: event.first },
      "warn",
      "warn",
      t("{count} row is missing here.", "{count} rows are missing here.", { count: rows }),
    );
    state.head = Math.max(state.head, event.last);
  },
  "feed.partial": (state, event) => {
    state.ready = true;
    const { text, reasoning, turn_id: turn } = event;
    const live = { text: new LongText(text), reasoning: new LongText(reasoning), tool: "", turn };
    state.live = text || reasoning ? live : null;
    state.items = state.items.map((item) => {
      if (item.kind !== "tool" || item.ended) return item;
      const output = event.tools?.[item.call] ?? "";
      return item.output === output ? item : { ...item, output };
    });
  },
  "feed.deleted": (state) => {
    state.deleted = true;
    state.turn = "";
  },
  "session.created": (state, event) => {
    const { cwd = "", surface = "", kind = "root", parent = "" } = event;
    Object.assign(state, { cwd, surface, kind, parent });
    if (kind === "branch")
      note(state, event, "info", "branch", t("This is a branch of another session."), "", parent);
  },
  "session.titled": (state, event) => {
    state.title = event.title;
  },
  "session.compacted": (state, event) => {
    addCost(state, event.usage);
    const { before = 0, after = 0 } = event;
    state.context = after || state.context;
    const sizes = t("about {before} tokens became {after}", {
      before: inFull(before),
      after: inFull(after),
    });
    const text = event.turn_id
      ? t("The conversation got too long for the model, so its middle was summarized: {sizes}.", {
          sizes,
        })
      : t("The conversation was shortened for the model, so its middle was summarized: {sizes}.", {
          sizes,
        });
    note(state, event, "info", "info", text, event.summary);
  },
  "session.compaction_failed": (state, event) => {
    const why = event.detail.trim().replace(/\.$/, "");
    note(
      state,
      event,
      "warn",
      "warn",
      t(
        "The conversation could not be shortened: {why}. Nothing was removed; Hermes will try again later.",
        { why },
      ),
    );
  },
  "session.trimmed": (state, event) => {
    note(state, event, "info", "info", trimmedText(event.call_ids.length, Boolean(event.turn_id)));
  },
  "session.imported": (state, event) => {
    note(
      state,
      event,
      "info",
      "download",
      t(
        "Everything above was imported ({count} row).",
        "Everything above was imported ({count} rows).",
        { count: event.rows },
      ),
    );
  },
  "session.recovered": (state, event) => {
    note(
      state,
      event,
      "warn",
      "warn",
      t(
        "The database was damaged and has been rebuilt: {count} row kept, {lost} known to be lost.",
        "The database was damaged and has been rebuilt: {count} rows kept, {lost} known to be lost.",
        { count: event.kept, lost: event.lost },
      ),
      event.file,
    );
  },
  "session.undone": (state, event) => {
    const taken = new Set(event.turns);
    change(state, (item) => taken.has(item.turn) && !item.undone, { undone: event.seq });
    state.redoable = event.seq;
    const turns = taken.size || 1;
    const text = [t("Undid {count} turn.", "Undid {count} turns.", { count: turns })];
    const count = event.restored;
    if (count) text.push(t("{count} file restored.", "{count} files restored.", { count }));
    note(state, event, "info", "undo", text.join(" "));
  },
  "session.redone": (state, event) => {
    change(state, (item) => item.undone === event.undone, { undone: 0 });
    state.redoable = 0;
    note(state, event, "info", "redo", t("Restored what the last undo removed."));
  },
  "agent.message.user": (state, event) => {
    state.redoable = 0;
    const { text, images = NONE, recordings = NONE, delivery = "queue", seq, ts } = event;
    const origin = event.via === "goal" ? "hermes" : (event.origin ?? "user");
    push(state, {
      kind: "user",
      key: `r${seq}`,
      seq,
      ts,
      text,
      images,
      recordings,
      delivery,
      origin,
      taken: false,
      turn: "",
    });
  },
  "agent.turn.started": (state, event) => {
    Object.assign(state, {
      turn: event.turn_id ?? `seq ${event.seq}`,
      since: event.ts,
      stepSince: event.ts,
      live: null,
      stopping: false,
    });
    placeInputs(state, event.inputs);
  },
  // A turn that began at the same moment may have read it all the same; then it is shown again.
  "agent.message.withdrawn": (state, event) =>
    change(state, (item) => item.kind === "user" && item.seq === event.message && !item.taken, {
      withdrawn: true,
    }),
  "agent.turn.steered": (state, event) => placeInputs(state, event.inputs),
  "agent.turn.ended": (state, event) => {
    const { reason, detail = "", usage = null, seq, ts } = event;
    const begun = indexAfterLastEnd(state, seq); // each end closes the calls before it
    for (let at = begun; at < state.items.length; at++) {
      const item = state.items[at];
      if (item.kind !== "tool" || item.ended) continue;
      // A call that was waiting when its process died has not begun: an answer lets it continue.
      const waits = reason === "crashed" && item.status === "waiting" && item.planned;
      replace(state, at, waits ? { orphan: true } : { status: "unknown", ended: ts });
    }
    push(state, {
      kind: "end",
      key: `r${seq}`,
      seq,
      ts,
      reason,
      detail,
      usage,
      seconds: state.since ? ts - state.since : 0,
      turn: event.turn_id ?? "",
      acted: state.items.slice(begun).some((item) => item.kind === "tool"),
    });
    Object.assign(state, { turn: "", since: 0, live: null, stopping: false });
  },
  "agent.interrupt.requested": (state) => {
    state.stopping = Boolean(state.turn);
  },
  "agent.message.delta": (state, event) => appendDelta(state, event, "text"),
  "agent.reasoning.delta": (state, event) => appendDelta(state, event, "reasoning"),
  "agent.tool.generating": (state, event) => {
    state.live = { ...(state.live ?? emptyReply(event.turn_id)), tool: event.name };
  },
  "agent.message.assistant": (state, event) => {
    const {
      text = "",
      reasoning = "",
      finish = "stop",
      model = "",
      provider = "",
      usage = null,
      seq,
      ts,
      turn_id: turn = "",
    } = event;
    state.live = null;
    const answers = provider === "codex" ? `codex ${model}`.trim() : model; // an engine that is not ours is named
    state.model = answers || state.model;
    addCost(state, usage);
    state.context = (usage?.input_tokens ?? 0) + (usage?.output_tokens ?? 0) || state.context;
    if (text || reasoning || !event.tool_calls?.length)
      push(state, {
        kind: "assistant",
        key: `r${seq}`,
        seq,
        ts,
        text,
        reasoning,
        finish,
        model: answers,
        provider,
        usage,
        turn,
      });
    for (const call of event.tool_calls ?? [])
      push(state, { ...toolItem(event, call.id, call.name, call.arguments), planned: true });
  },
  "agent.tool.started": (state, event) => {
    const at = findCall(state, event.call_id);
    if (at < 0)
      push(state, {
        ...toolItem(event, event.call_id, event.name, event.arguments),
        status: "running",
        started: event.ts,
      });
    else
      replace(state, at, {
        status: "running",
        started: event.ts,
        name: event.name,
        arguments: event.arguments,
      });
  },
  "agent.tool.progress": (state, event) => {
    const at = findCall(state, event.call_id);
    const call = state.items[at];
    if (call?.kind !== "tool" || call.ended) return;
    const output = call.output + event.text;
    replace(state, at, {
      output: output.length > 2 * OUTPUT_CHARS ? output.slice(-OUTPUT_CHARS) : output,
    });
  },
  "agent.tool.finished": (state, event) => {
    let at = findCall(state, event.call_id);
    if (at < 0) at = push(state, toolItem(event, event.call_id, event.name, ""));
    const { text = "", ok = true, images = NONE, seq, ts } = event;
    replace(state, at, {
      status: ok ? "done" : "failed",
      text,
      images,
      result: seq,
      ended: ts,
      output: "",
    });
    state.stepSince = ts;
  },
  "agent.approval.requested": (state, event) =>
    ask(state, event, { approval: { ...event, answer: "" } }),
  "agent.approval.answered": (state, event) => {
    const at = findCall(state, event.call_id);
    const call = state.items[at];
    if (call?.kind !== "tool" || !call.approval || call.approval.answer) return; // the first answer counts
    const allowed = event.answer !== "deny";
    replace(state, at, {
      status: allowed ? "running" : "planned",
      approval: {
        ...call.approval,
        answer: event.answer,
        by: event.by,
        reason: event.reason ?? "",
      },
      started: event.ts,
    });
  },
  "agent.question.asked": (state, event) =>
    ask(state, event, { question: { ...event, answered: false } }),
  "agent.question.answered": (state, event) => {
    const at = findCall(state, event.call_id);
    const call = state.items[at];
    if (call?.kind !== "tool" || !call.question || call.question.answered) return;
    replace(state, at, {
      status: "running",
      question: { ...call.question, answered: true, reply: event.text, by: event.by },
    });
  },
  "agent.login.expired": (state, event) => {
    const { detail, command } = event;
    note(state, event, "warn", "warn", t("{detail} Sign in again: {command}", { detail, command }));
  },
  "agent.model.retried": (state, event) => {
    state.live = null;
    const { reason, model } = event;
    const text = model
      ? t("The model did not answer ({reason}). Trying again with {model}.", { reason, model })
      : t("The model did not answer ({reason}). Trying again.", { reason });
    note(state, event, "warn", "retry", text, event.detail);
  },
  "agent.picture.reduced": (state, event) => note(state, event, "warn", "warn", event.detail),
  "agent.picture.withheld": (state, event) => note(state, event, "warn", "warn", event.detail),
  "agent.turn.checked": (state, event) =>
    note(
      state,
      event,
      event.ok ? "info" : "warn",
      event.ok ? "info" : "warn",
      event.detail,
      event.checks
        .map((/** @type {{output?: string}} */ one) => one.output ?? "")
        .join("\n")
        .trim(),
    ),
  "agent.goal.set": (state, event) =>
    note(
      state,
      event,
      "accent",
      "info",
      t("Goal: {goal}", { goal: event.text }),
      event.verify ?? "",
    ),
  "agent.goal.judged": (state, event) => {
    const { verdict, turns = 0, reason = "", check } = event;
    const tone = verdict === "needs_you" ? "warn" : verdict === "done" ? "accent" : "info";
    const icon = verdict === "needs_you" ? "warn" : "info";
    const words = turns ? VERDICTS_AFTER[verdict]?.(turns) : VERDICTS[verdict];
    const text = reason
      ? t("{verdict}: {reason}", { verdict: words ?? verdict, reason })
      : `${words}.`;
    note(state, event, tone, icon, text, check?.output ?? "");
  },
  "agent.goal.woken": (state, event) => note(state, event, "info", "info", event.reason ?? ""),
  "agent.goal.paused": (state, event) =>
    note(
      state,
      event,
      "warn",
      "warn",
      t("Goal paused. {reason}", { reason: event.reason ?? "" }).trim(),
    ),
  "agent.goal.resumed": (state, event) =>
    note(state, event, "info", "info", t("Going on with the goal.")),
  "agent.goal.cleared": (state, event) => note(state, event, "info", "info", t("Goal dropped.")),
  "agent.child.ended": (state, event) => {
    const tone = event.reason === "done" ? "info" : "warn";
    note(
      state,
      event,
      tone,
      "branch",
      childEnded(event),
      event.text || event.detail || "",
      event.child,
    );
  },
  "agent.reply.rejected": (state, event) => {
    state.live = null;
    note(
      state,
      event,
      "warn",
      "warn",
      t("A reply could not be used ({reason}).", { reason: event.reason.replaceAll("_", " ") }),
      event.detail,
    );
  },
  "agent.auxiliary.called": (state, event) => addCost(state, event.usage),
  "agent.learning.proposed": (state, event) => {
    note(
      state,
      event,
      "accent",
      "learning",
      t("Hermes proposes to learn: {title}", { title: event.title }),
      event.diff,
      "",
      "learning",
    );
  },
  "agent.learning.changed": (state, event) => {
    const text = t("Learned: {title}", { title: event.title });
    note(state, event, "accent", "learning", text, "", "", "learning");
  },
  "agent.learning.reviewed": (state, event) => {
    if (event.failure)
      note(
        state,
        event,
        "warn",
        "learning",
        t("The review failed. Nothing was changed."),
        event.failure,
      );
    else if (event.summary)
      note(state, event, "accent", "learning", event.summary, "", "", "learning");
  },
};

/**
 * The note about results, or pictures, that the model no longer sees: automatic during a turn, otherwise requested.
 * @param {number} count
 * @param {boolean} isAutomatic
 */
function trimmedText(count, isAutomatic) {
  if (!count)
    return isAutomatic
      ? t("The conversation got too long for the model, so it no longer sees old pictures.")
      : t("The conversation was shortened for the model, so it no longer sees old pictures.");
  return isAutomatic
    ? t(
        "The conversation got too long for the model, so it no longer sees {count} old result.",
        "The conversation got too long for the model, so it no longer sees {count} old results.",
        { count },
      )
    : t(
        "The conversation was shortened for the model, so it no longer sees {count} old result.",
        "The conversation was shortened for the model, so it no longer sees {count} old results.",
        { count },
      );
}

/** @param {{ reason?: string | null, title?: string | null }} event */
function childEnded({ reason, title }) {
  if (reason === "done")
    return title
      ? t("Background work is done ({title}).", { title })
      : t("Background work is done.");
  const why = CHILD_STATES[reason ?? ""] ?? reason ?? t("unknown");
  return title
    ? t("Background work ended: {why} ({title}).", { why, title })
    : t("Background work ended: {why}.", { why });
}

/**
 * @param {Envelope} event
 * @param {string} call
 * @param {string} name
 * @param {string} text
 * @returns {ToolItem}
 */
function toolItem(event, call, name, text) {
  const { seq, ts, turn_id: turn = "" } = event;
  return {
    kind: "tool",
    key: `c${seq} ${call}`,
    seq,
    ts,
    call,
    name,
    arguments: text,
    status: "planned",
    output: "",
    text: "",
    images: NONE,
    result: 0,
    started: 0,
    ended: 0,
    approval: null,
    question: null,
    turn,
    planned: false,
    orphan: false,
  };
}

/**
 * @param {Transcript} state
 * @param {Envelope} event
 * @param {string} tone
 * @param {string} icon
 * @param {string} text
 * @param {string} [detail]
 * @param {string} [link]
 * @param {string} [place]
 */
function note(state, event, tone, icon, text, detail = "", link = "", place = "") {
  push(state, {
    kind: "note",
    key: `r${event.seq}`,
    seq: event.seq,
    ts: event.ts,
    tone,
    icon,
    text,
    detail,
    link,
    place,
    turn: event.turn_id ?? "",
  });
}

/**
 * @param {Transcript} state
 * @param {Envelope & { call_id: string, name?: string, arguments?: string }} event
 * @param {Partial<ToolItem>} more
 */
function ask(state, event, more) {
  let at = findCall(state, event.call_id);
  if (at < 0)
    at = push(
      state,
      toolItem(event, event.call_id, event.name ?? "ask_user", event.arguments ?? ""),
    );
  replace(state, at, { status: "waiting", orphan: false, ...more });
}

/**
 * @param {Transcript} state
 * @param {Envelope & { text: string }} event
 * @param {"text" | "reasoning"} field
 */
function appendDelta(state, event, field) {
  const live = state.live ?? emptyReply(event.turn_id);
  state.live = { ...live, [field]: live[field].add(event.text) };
}

/**
 * A reply of which nothing is written yet.
 * @param {string | undefined} turn
 * @returns {LiveReply}
 */
function emptyReply(turn) {
  return { text: new LongText(), reasoning: new LongText(), tool: "", turn };
}

/**
 * A message is placed where the model reads it, not where it was typed.
 * @param {Transcript} state
 * @param {number[]} [inputs]
 */
function placeInputs(state, inputs = []) {
  if (!inputs.length) return;
  const wanted = new Set(inputs);
  const heard = [];
  const others = [];
  for (const item of state.items.splice(indexAfterLastEnd(state, Math.min(...inputs)))) {
    if (item.kind === "user" && wanted.has(item.seq))
      heard.push({ ...item, taken: true, withdrawn: false, turn: state.turn });
    else others.push(item);
  }
  state.items.push(...others, ...heard);
}

/**
 * Where the items behind the last end of a turn before a row begin. Ends never move, so all later rows are there.
 * @param {Transcript} state
 * @param {number} seq
 */
function indexAfterLastEnd(state, seq) {
  return state.items.findLastIndex((item) => item.kind === "end" && item.seq < seq) + 1;
}

/**
 * @param {Transcript} state
 * @param {Usage | null} usage
 */
function addCost(state, usage) {
  if (!usage) return;
  state.cost += usage.cost_usd ?? 0;
  if (usage.cost_usd === null || usage.cost_usd === undefined) state.unpriced += 1;
}

/**
 * @param {Transcript} state
 * @param {string} call
 */
function findCall(state, call) {
  return state.items.findLastIndex((item) => item.kind === "tool" && item.call === call);
}

/**
 * @param {Transcript} state
 * @param {Item} item
 */
function push(state, item) {
  state.items.push(item);
  return state.items.length - 1;
}

/**
 * @param {Transcript} state
 * @param {number} at
 * @param {Partial<ToolItem>} more
 */
function replace(state, at, more) {
  state.items[at] = /** @type {Item} */ ({ ...state.items[at], ...more });
}

/**
 * @param {Transcript} state
 * @param {(item: Item) => boolean} fits
 * @param {{ undone?: number, withdrawn?: boolean }} more
 */
function change(state, fits, more) {
  state.items.forEach((item, at) => {
    if (fits(item)) replace(state, at, more);
  });
}

/**
 * How many of the last turns a branch must leave out to end before a message.
 * @param {Transcript} state
 * @param {UserItem} item
 */
export function turnsSince(state, item) {
  if (!item.taken || item.turn === state.turn) return 0; // running and queued turns are not copied anyway
  const ended = state.items
    .filter((one) => one.kind === "end" && !one.undone)
    .map((one) => one.turn);
  return ended.length - ended.indexOf(item.turn);
}

/**
 * The question that a message answers: the first that waits, of this session or of one that works for it.
 * @param {Transcript} state
 * @param {WaitingRow[]} elsewhere
 * @returns {OpenQuestion | null}
 */
export function openQuestion(state, elsewhere) {
  for (const { call, question } of openRequests(state)) {
    if (question && !question.answered)
      return { session: state.session, call, text: question.text };
  }
  const other = elsewhere.find(
    (one) => one.kind === "question" && one.root_session_id === state.session,
  );
  return other?.kind === "question"
    ? { session: other.session_id, call: other.call_id, text: other.text }
    : null;
}

/**
 * The calls that wait for a person here.
 * @param {Transcript} state
 */
export function openRequests(state) {
  return state.items.filter(isTool).filter((item) => item.status === "waiting" && !item.undone);
}

/**
 * @param {Item} item
 * @returns {item is ToolItem}
 */
function isTool(item) {
  return item.kind === "tool";
}

/**
 * How a session began, if that is known: its name until it has a title.
 * @param {Transcript} state
 */
export function beginningOf({ first, items }) {
  const said = first === 1 ? items.find((item) => item.kind === "user")?.text : "";
  return (said ?? "").split("\n")[0].slice(0, 80);
}
