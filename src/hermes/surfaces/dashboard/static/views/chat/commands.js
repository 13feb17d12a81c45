// Slash commands of the page, and what they do. Skills are commands too; the server knows what they say.
/** @import { Answer, ChatActions } from "../../types/page.d.ts" */
import { api, sessionPath } from "../../app/api.js";
import { ask, confirm } from "../../app/parts/dialog.js";
import { plural, toast, trying } from "../../app/parts.js";
import { navigate, pathTo } from "../../app/router.js";
import { kept } from "../../app/ui.js";

const NAMED = 5; // files that are named before they are deleted

/** @typedef {Answer<"POST", "/api/sessions/x/undo">} UndoReport */

/**
 * @typedef {object} Command
 * @property {string} name
 * @property {string} [value]
 * @property {string} summary
 * @property {boolean} [alone]
 * @property {(chat: ChatActions, words: string) => unknown} run
 */

/**
 * Says what came of going back, and offers to insist where files were left alone.
 * @param {UndoReport} report
 * @param {string} done
 * @param {(() => void) | null} [insist]
 */
function told(report, done, insist) {
  const { files, note } = report;
  const parts = [done];
  if (files.restored?.length) parts.push(`${plural(files.restored.length, "file")} brought back.`);
  if (files.conflicts?.length)
    parts.push(
      `Left alone, as they were changed since: ${files.conflicts
        .map(([name]) => name)
        .join(", ")}.`,
    );
  if (files.unkept?.length)
    parts.push(`Not kept: ${files.unkept.map(([name]) => name).join(", ")}.`);
  if (note) parts.push(note);
  toast(
    parts.join(" "),
    files.conflicts?.length ? "bad" : "good",
    files.conflicts?.length && insist ? { label: "Overwrite", run: insist } : null,
  );
}

/**
 * Whether turns may be taken back: asks when that deletes files.
 * @param {string} id
 * @param {number} turns
 * @param {boolean} force
 * @param {string} title
 * @param {string} action
 */
async function mayTakeBack(id, turns, force, title, action) {
  const found = await trying(() => api.get(sessionPath(id, "undo"), { turns, force }));
  if (!found?.deletes.length) return Boolean(found);
  const names =
    found.deletes.slice(0, NAMED).join(", ") +
    (found.deletes.length > NAMED ? ` and ${found.deletes.length - NAMED} more` : "");
  return confirm({
    title,
    action,
    danger: true,
    text: `This deletes ${plural(
      found.deletes.length,
      "file",
    )} that Hermes made: ${names}. Right after an undo, redo brings ${
      found.deletes.length === 1 ? "it" : "them"
    } back.`,
  });
}

/**
 * @param {string} id
 * @param {number} [turns]
 * @param {boolean} [force]
 * @returns {Promise<UndoReport | undefined>}
 */
export async function undo(id, turns = 1, force = false) {
  const title = turns === 1 ? "Undo the last turn?" : `Undo the last ${turns} turns?`;
  if (!(await mayTakeBack(id, turns, force, title, "Undo and delete"))) return undefined;
  const report = await trying(() => api.post(sessionPath(id, "undo"), { turns, force }));
  if (report)
    told(
      report,
      `${plural(report.turns.length, "turn")} taken back.`,
      force ? null : () => redo(id).then(() => undo(id, turns, true)),
    );
  return report;
}

/**
 * @param {string} id
 * @param {boolean} [force]
 */
export async function redo(id, force = false) {
  const report = await trying(() => api.post(sessionPath(id, "redo"), { force }));
  if (report) told(report, "The undo was taken back.");
  return report;
}

/** @param {string} id */
export async function retry(id) {
  if (
    !(await mayTakeBack(
      id,
      1,
      false,
      "Undo the last turn and try it again?",
      "Undo, delete and try again",
    ))
  )
    return;
  const report = await trying(() => api.post(sessionPath(id, "retry"), {}));
  if (report) told(report, "It is tried again.");
}

/** @param {string} id */
export function stop(id) {
  return trying(() => api.post(sessionPath(id, "interrupt"), {}));
}

/**
 * Goes on in a copy of the session, up to a row; `text` waits in its input.
 * @param {string} id
 * @param {{ at?: number, back?: number, text?: string }} [options]
 */
export async function branch(id, { at: row, back, text = "" } = {}) {
  /** @type {{ at?: number, back?: number }} */
  const body = {};
  if (row !== undefined) body.at = row;
  if (back) body.back = back;
  const made = await trying(
    () => api.post(sessionPath(id, "branch"), body),
    "This is a branch; the other session stays as it is.",
  );
  if (!made) return;
  kept.set(`draft.${made.id}`, text);
  navigate(pathTo("chat", made.id));
}

/**
 * Gives a session a title; asks for one if none is given.
 * @param {string} id
 * @param {string} words
 * @param {string} [before]
 */
export async function rename(id, words, before = "") {
  const title = words || (await ask({ title: "Name this session", value: before }));
  if (title === null) return;
  await trying(() => api.patch(sessionPath(id), { title }));
}

/** @param {string} id */
export async function compress(id) {
  const fine = await confirm({
    title: "Make room?",
    text: "The model will see a summary in place of the older part. The log keeps everything.",
    action: "Sum up",
  });
  if (!fine) return;
  toast("Summing up …");
  await trying(() => api.post(sessionPath(id, "compress"), {}), "Room was made.");
}

/** @param {string} id */
export function exportSession(id) {
  const link = document.createElement("a");
  link.href = sessionPath(id, "export");
  link.download = "";
  link.click();
}

/**
 * Where a terminal opens that goes on with a session.
 * @param {string} id
 */
export function terminalOf(id) {
  return `/terminal?session=${encodeURIComponent(id)}`;
}

/**
 * The table. `run(chat, words)`; `alone`: also without a session.
 * @type {Command[]}
 */
export const COMMANDS = [
  { name: "new", summary: "begin a new chat", alone: true, run: () => navigate("/chat") },
  { name: "stop", summary: "stop the running turn", run: (chat) => stop(chat.id) },
  {
    name: "steer",
    value: "TEXT",
    summary: "tell the model something while it works",
    run: (chat, words) => words && chat.send(words, "steer"),
  },
  {
    name: "queue",
    value: "TEXT",
    summary: "let a message wait for its turn",
    run: (chat, words) => words && chat.send(words, "queue"),
  },
  {
    name: "undo",
    value: "N",
    summary: "take back the last turn, or N of them, with their files",
    run: (chat, words) => undo(chat.id, Number(words) || 1),
  },
  { name: "redo", summary: "bring back what the last undo took", run: (chat) => redo(chat.id) },
  {
    name: "retry",
    summary: "take back the last turn and ask the same again",
    run: (chat) => retry(chat.id),
  },
  {
    name: "branch",
    value: "N",
    summary: "go on in a copy, without the last N turns",
    run: (chat, words) => branch(chat.id, { back: Number(words) || 0 }),
  },
  { name: "diff", summary: "what the last turn changed in files", run: (chat) => chat.diff?.("") },
  {
    name: "model",
    value: "NAME",
    summary: "which model answers",
    alone: true,
    run: (chat, words) => chat.model(words),
  },
  {
    name: "approvals",
    value: "MODE",
    summary: "what is not asked: ask, auto-edit or full",
    alone: true,
    run: (chat, words) => chat.approvals(words),
  },
  {
    name: "context",
    summary: "how full the model's window is, and with what",
    run: (chat) => chat.context?.(),
  },
  {
    name: "title",
    value: "TEXT",
    summary: "name this session",
    run: (chat, words) => rename(chat.id, words),
  },
  {
    name: "compress",
    summary: "make room: sum up the older part",
    run: (chat) => compress(chat.id),
  },
  {
    name: "export",
    summary: "download this session as JSON lines",
    run: (chat) => exportSession(chat.id),
  },
  {
    name: "timeline",
    summary: "look back at this session, step by step",
    run: (chat) => navigate(pathTo("sessions", chat.id)),
  },
  {
    name: "terminal",
    summary: "go on with this session in a terminal",
    run: (chat) => navigate(terminalOf(chat.id)),
  },
  { name: "sessions", summary: "all sessions", alone: true, run: () => navigate("/sessions") },
  {
    name: "search",
    value: "WORDS",
    summary: "find messages in all sessions",
    alone: true,
    run: (chat, words) => chat.search(words),
  },
  {
    name: "learn",
    summary: "decide on what Hermes wants to keep",
    alone: true,
    run: () => navigate("/learning"),
  },
  {
    name: "skills",
    summary: "what Hermes can do well; each skill is a command",
    alone: true,
    run: () => navigate("/learning/skills"),
  },
  {
    name: "memory",
    summary: "what Hermes remembers",
    alone: true,
    run: () => navigate("/learning/memory"),
  },
  {
    name: "tools",
    summary: "what the model can do",
    alone: true,
    run: () => navigate("/settings/tools"),
  },
  {
    name: "mcp",
    summary: "the MCP servers and how they are",
    alone: true,
    run: () => navigate("/settings/mcp"),
  },
  { name: "cost", summary: "what was spent", alone: true, run: () => navigate("/settings/usage") },
  {
    name: "config",
    summary: "the settings in force",
    alone: true,
    run: () => navigate("/settings"),
  },
  {
    name: "doctor",
    summary: "check this installation",
    alone: true,
    run: () => navigate("/settings/doctor"),
  },
  { name: "help", summary: "all commands and keys", alone: true, run: (chat) => chat.help() },
];

/** @type {Record<string, string>} */
const ALIASES = { clear: "new", compact: "compress" };
const PREFIX = "skill:"; // every skill is found behind it, also one that a command is called like

/**
 * How a skill is called: by its name, unless that is a command's.
 * @param {string} skill
 */
export function commandOf(skill) {
  return isReserved(skill) ? `${PREFIX}${skill}` : skill;
}

/** @param {string} name */
function isReserved(name) {
  return Object.hasOwn(ALIASES, name) || COMMANDS.some((one) => one.name === name);
}

/**
 * What a line that begins with a slash means, by the names of the skills: {command, words}, {line} for the call of a
 * skill, {unknown}; null when it is no command at all. A beginning that fits one name alone is enough.
 * @param {string} line
 * @param {string[]} skills
 * @returns {{ command?: Command, words?: string, line?: string, unknown?: string } | null}
 */
export function called(line, skills) {
  const found = /^\/([a-z][\w:-]*)(?:\s+([\s\S]*))?$/i.exec(line.trim());
  if (!found) return null;
  const [, name, words = ""] = found;
  /** @param {Command} one */
  const meant = (one) => ({ command: one, words: words.trim() });
  const own = COMMANDS.find(
    (one) => one.name === (Object.hasOwn(ALIASES, name) ? ALIASES[name] : name),
  );
  if (own) return meant(own);
  if (skills.includes(name.replace(PREFIX, ""))) return { line: line.trim() };
  const commands = COMMANDS.filter((one) => one.name.startsWith(name));
  if (commands.length === 1) return meant(commands[0]);
  const begun = skills.map(commandOf).filter((one) => one.startsWith(name));
  if (!commands.length && begun.length === 1) return { line: `/${begun[0]} ${words}`.trim() };
  const near = [...COMMANDS.map((one) => one.name), ...skills.map(commandOf)].find(
    (one) => one.slice(0, 3) === name.slice(0, 3),
  );
  return {
    unknown: `There is no command /${name}. ${near ? `Did you mean /${near}?` : "See /help."}`,
  };
}
