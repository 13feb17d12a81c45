// The words and colours of a board: columns, endings of runs, what happened to a card.
/** @import { BoardColumns, CardHistoryEntry, CardStatus } from "../../types/page.d.ts" */

/** @type {[CardStatus, string][]} */
export const COLUMNS = [
  ["triage", "Triage"],
  ["todo", "To do"],
  ["ready", "Ready"],
  ["running", "Running"],
  ["blocked", "Blocked"],
  ["review", "Review"],
  ["done", "Done"],
  ["archived", "Archived"],
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
export const OUTCOMES = { timed_out: "timed out", unclosed: "not closed" };

/**
 * The titles of the cards that the page knows, by id.
 * @param {BoardColumns | null} board
 * @returns {Map<string, string>}
 */
export function titlesOf(board) {
  return new Map(board?.columns.flatMap(({ cards }) => cards.map((card) => [card.id, card.title])));
}

/** Why a running card waits that asked a person, as the server says it. */
export const ASKING = "waits for your answer";

/**
 * Why a card waits, with the titles of the cards it waits for, and without the words of a shell.
 * @param {string} why
 * @param {Map<string, string>} titles
 */
export function readable(why, titles) {
  if (why.startsWith("held;")) return "held: move it to Ready when it should start";
  return why
    .replace(/^needs_input: /, "needs input: ")
    .replace(/\bt_[0-9a-f]+\b/g, (id) => (titles.has(id) ? `“${titles.get(id)}”` : id));
}

/**
 * What an event of the history says, in words.
 * @param {CardHistoryEntry} entry
 */
export function happened(entry) {
  const { topic } = entry;
  const data = /** @type {Record<string, string>} */ (entry.data);
  const because = data.reason ? `: ${data.reason}` : "";
  switch (topic.replace("kanban.", "")) {
    case "card.created":
      return `made, in ${inWords(data.status ?? "todo")}`;
    case "card.edited":
      return `changed ${Object.keys(data.fields ?? {})
        .map((name) => name.replaceAll("_", " "))
        .join(", ")}`;
    case "card.moved":
      return `moved from ${inWords(data.before)} to ${inWords(data.after)}${because}`;
    case "card.linked":
      return entry.data.linked === false
        ? `no longer waits for ${data.parent}`
        : `waits for ${data.parent}`;
    case "card.commented":
      return `commented: ${data.text}`;
    case "card.attached":
      return `attached ${data.name}`;
    case "run.started":
      return data.session ? `${data.agent ?? "hermes"} began to work` : "claimed for a run";
    case "run.noted":
      return data.note;
    case "run.ended":
      return `the run ended: ${OUTCOMES[data.outcome] ?? data.outcome}${because}`;
    default:
      return topic;
  }
}

/** @param {string} status */
function inWords(status) {
  return (TITLES[status] ?? status).toLowerCase();
}
