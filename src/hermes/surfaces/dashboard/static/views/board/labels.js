// The words and colours of a board: columns, endings of runs, what happened to a card.
/** @import { BoardColumns, CardHistoryEntry, CardStatus } from "../../types/page.d.ts" */
import { t } from "../../app/translation.js";

/** @type {[CardStatus, string][]} */
export const COLUMNS = [
  ["triage", t("Triage")],
  ["todo", t("To do")],
  ["ready", t("Ready")],
  ["running", t("Running")],
  ["blocked", t("Blocked")],
  ["review", t("Review")],
  ["done", t("Done")],
  ["archived", t("Archived")],
];

/** @type {Record<string, string>} */
export const TITLES = Object.fromEntries(COLUMNS);

/** @type {Record<string, string>} */
export const STATUS_KIND = {
  running: "accent",
  blocked: "bad",
  review: "warn",
  triage: "warn",
  done: "good",
};

/** @type {Record<string, string>} */
export const OUTCOME_KIND = {
  running: "accent",
  completed: "good",
  review: "good",
  changes: "good",
  blocked: "warn",
  stopped: "",
  unclosed: "bad",
  quota: "bad",
  crashed: "bad",
  timed_out: "bad",
  budget: "bad",
  failed: "bad",
};

/** @type {Record<string, string>} */
export const OUTCOMES = {
  running: t("running"),
  completed: t("completed"),
  review: t("review"),
  changes: t("changes"),
  blocked: t("blocked"),
  stopped: t("stopped"),
  quota: t("quota"),
  crashed: t("crashed"),
  budget: t("budget"),
  failed: t("failed"),
  timed_out: t("timed out"),
  unclosed: t("not closed"),
};

/**
 * The titles of the cards that the page knows, by id.
 * @param {BoardColumns | null} board
 * @returns {Map<string, string>}
 */
export function titlesOf(board) {
  return new Map(board?.columns.flatMap(({ cards }) => cards.map((card) => [card.id, card.title])));
}

/** The note of a run that asked a person, as the log has it. */
const ASKING = "waits for your answer"; // not translated

/**
 * What the worker of a run said last.
 * @param {string} note
 */
export function noted(note) {
  return note === ASKING ? t("waits for your answer") : note;
}

/**
 * Why a card waits, without the words of a shell.
 * @param {{ why: string, is_held?: boolean }} card
 * @param {Map<string, string>} titles
 */
export function whyOf(card, titles) {
  if (card.is_held) return t("held: move it to Ready when it should start");
  return readable(card.why, titles);
}

/**
 * A text of the server with the titles of the cards that it names.
 * @param {string} words
 * @param {Map<string, string>} titles
 */
export function readable(words, titles) {
  const text = words.replace(/\bt_[0-9a-f]+\b/g, (id) =>
    titles.has(id) ? `“${titles.get(id)}”` : id,
  );
  const need = /^needs_input: (.*)$/s.exec(text)?.[1];
  return need === undefined ? text : t("needs input: {need}", { need });
}

/**
 * What an event of the history says, in words.
 * @param {CardHistoryEntry} entry
 */
export function happened(entry) {
  const { topic } = entry;
  const data = /** @type {Record<string, string>} */ (entry.data);
  const { reason } = data;
  switch (topic.replace("kanban.", "")) {
    case "card.created":
      return t("made, in {column}", { column: inWords(data.status ?? "todo") });
    case "card.edited":
      return t("changed {fields}", { fields: namesOf(data.fields) });
    case "card.moved":
      return movedIn(inWords(data.before), inWords(data.after), reason);
    case "card.linked":
      return entry.data.linked === false
        ? t("no longer waits for {card}", { card: data.parent })
        : t("waits for {card}", { card: data.parent });
    case "card.commented":
      return t("commented: {text}", { text: data.text });
    case "card.attached":
      return t("attached {file}", { file: data.name });
    case "run.started":
      return data.session
        ? t("{agent} began to work", { agent: data.agent ?? "hermes" })
        : t("claimed for a run");
    case "run.noted":
      return data.note;
    case "run.ended":
      return endedWith(OUTCOMES[data.outcome] ?? data.outcome, reason);
    default:
      return topic;
  }
}

/** @param {unknown} fields */
function namesOf(fields) {
  return Object.keys(fields ?? {})
    .map((name) => name.replaceAll("_", " "))
    .join(", ");
}

/**
 * @param {string} before
 * @param {string} after
 * @param {string | undefined} reason
 */
function movedIn(before, after, reason) {
  return reason
    ? t("moved from {before} to {after}: {reason}", { before, after, reason })
    : t("moved from {before} to {after}", { before, after });
}

/**
 * @param {string} outcome
 * @param {string | undefined} reason
 */
function endedWith(outcome, reason) {
  return reason
    ? t("the run ended: {outcome}: {reason}", { outcome, reason })
    : t("the run ended: {outcome}", { outcome });
}

/** @param {string} status */
function inWords(status) {
  return TITLES[status] ?? status;
}
