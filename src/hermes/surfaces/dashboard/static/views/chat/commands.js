// The page's slash commands. Skills are commands too; the server has their text.
/** @import { Answer, ChatActions, Filled } from "../../types/page.d.ts" */

import { api, may, sessionPath } from "../../app/api.js";
import { ask, confirm } from "../../app/parts/dialog.js";
import { toast, tryTo } from "../../app/parts.js";
import { navigate, pathTo } from "../../app/router.js";
import { t } from "../../app/translation.js";
import { kept } from "../../app/ui.js";
import { keepEarlier } from "./earlier_attachments.js";
import { setSpokenReplies } from "./voice.js";

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
 * Shows the result of an undo, and offers to overwrite files that were left alone.
 * @param {UndoReport} report
 * @param {string} done
 * @param {(() => void) | null} [insist]
 */
function told(report, done, insist) {
  const { files, note } = report;
  const parts = [done];
  const count = files.restored?.length;
  if (count) parts.push(t("{count} file restored.", "{count} files restored.", { count }));
  if (files.conflicts?.length)
    parts.push(
      t("Not restored, because they were changed since: {names}.", {
        names: named(files.conflicts),
      }),
    );
  if (files.unkept?.length)
    parts.push(t("No copy was kept of: {names}.", { names: named(files.unkept) }));
  if (note) parts.push(note);
  toast(
    parts.join(" "),
    files.conflicts?.length ? "bad" : "good",
    files.conflicts?.length && insist ? { label: t("Overwrite"), run: insist } : null,
  );
}

/** @param {[string, ...unknown[]][]} files */
function named(files) {
  return files.map(([name]) => name).join(", ");
}

/**
 * Whether turns may be undone: asks if that deletes files.
 * @param {string} id
 * @param {number} turns
 * @param {boolean} force
 * @param {string} title
 * @param {string} action
 */
async function confirmUndo(id, turns, force, title, action) {
  const found = await tryTo(() => api.get(sessionPath(id, "undo"), { turns, force }));
  if (!found?.deletes.length) return Boolean(found);
  const count = found.deletes.length;
  const first = found.deletes.slice(0, NAMED).join(", ");
  const more = count - NAMED;
  const names = more > 0 ? t("{names} and {count} more", { names: first, count: more }) : first;
  return confirm({
    title,
    action,
    danger: true,
    text: t(
      "This deletes {count} file that Hermes created: {names}. Right after the undo, redo restores it.",
      "This deletes {count} files that Hermes created: {names}. Right after the undo, redo restores them.",
      { count, names },
    ),
  });
}

/**
 * @param {string} id
 * @param {number} [turns]
 * @param {boolean} [force]
 * @returns {Promise<UndoReport | undefined>}
 */
export async function undo(id, turns = 1, force = false) {
  const title = t("Undo the last turn?", "Undo the last {count} turns?", { count: turns });
  if (!(await confirmUndo(id, turns, force, title, t("Undo and delete")))) return undefined;
  const report = await tryTo(() => api.post(sessionPath(id, "undo"), { turns, force }));
  if (report)
    told(
      report,
      t("Undid {count} turn.", "Undid {count} turns.", { count: report.turns.length }),
      force ? null : () => redo(id).then(() => undo(id, turns, true)),
    );
  return report;
}

/**
 * @param {string} id
 * @param {boolean} [force]
 */
export async function redo(id, force = false) {
  const report = await tryTo(() => api.post(sessionPath(id, "redo"), { force }));
  if (report) told(report, t("Restored what the last undo removed."));
  return report;
}

/** @param {string} id */
export async function retry(id) {
  const title = t("Undo the last turn and retry it?");
  if (!(await confirmUndo(id, 1, false, title, t("Undo, delete and retry")))) return;
  const report = await tryTo(() => api.post(sessionPath(id, "retry"), {}));
  if (report) told(report, t("Retrying the last turn."));
}

/** @param {string} id */
export function stop(id) {
  return tryTo(() => api.post(sessionPath(id, "interrupt"), {}));
}

/**
 * Takes back a message that Hermes has not read yet. Resolves to whether it was taken back.
 * @param {string} id
 * @param {{ seq: number }} message
 */
export async function withdraw(id, { seq }) {
  const answer = await tryTo(() => api.delete(sessionPath(id, "messages", String(seq))));
  if (answer && !answer.counted) toast(t("Hermes has read this message already."));
  return Boolean(answer?.counted);
}

/**
 * Continues in a copy of the session up to a row, with `filled` in its input.
 * @param {string} id
 * @param {{ at?: number, back?: number, filled?: Filled }} [options]
 */
export async function branch(id, { at: row, back, filled } = {}) {
  /** @type {{ at?: number, back?: number }} */
  const body = {};
  if (row !== undefined) body.at = row;
  if (back) body.back = back;
  const made = await tryTo(
    () => api.post(sessionPath(id, "branch"), body),
    t("This is a branch. The original session is unchanged."),
  );
  if (!made) return;
  kept.set(`draft.${made.id}`, filled?.text ?? "");
  keepEarlier(made.id, filled?.earlier ?? null);
  navigate(pathTo("chat", made.id));
}

/**
 * Gives a session a title; asks for one if none is given.
 * @param {string} id
 * @param {string} words
 * @param {string} [before]
 */
export async function rename(id, words, before = "") {
  const title = words || (await ask({ title: t("Name this session"), value: before }));
  if (title === null) return;
  await tryTo(() => api.patch(sessionPath(id), { title }));
}

/** @param {string} id */
export async function compress(id) {
  const fine = await confirm({
    title: t("Compress the conversation?"),
    text: t(
      "The model will see a summary in place of the older part. The log keeps every message.",
    ),
    action: t("Compress"),
  });
  if (!fine) return;
  toast(t("Compressing …"));
  await tryTo(() => api.post(sessionPath(id, "compress"), {}), t("Compressed."));
}

/** @param {string} id */
export function exportSession(id) {
  const link = document.createElement("a");
  link.href = sessionPath(id, "export");
  link.download = "";
  link.click();
}

/**
 * The path of a terminal that resumes a session.
 * @param {string} id
 */
export function terminalOf(id) {
  return `/terminal?session=${encodeURIComponent(id)}`;
}

/**
 * Runs a command that the server has, and shows what it says. A new chat becomes a session for that, which stays if the
 * command was given something to do, and if nobody knows whether it does it.
 * @param {string} name
 * @returns {Command["run"]}
 */
function served(name) {
  return async (chat, words) => {
    const id = chat.id || (await chat.begin?.());
    if (!id) return;
    const line = { name, words, model: chat.chosenModel ?? null };
    let isRefused = false;
    const answer = await tryTo(() =>
      api.post(sessionPath(id, "commands"), line).catch((error) => {
        isRefused = error.isRefusal;
        throw error;
      }),
    );
    const isUnused = !chat.id && (answer ? !words && name !== "review" : isRefused);
    const shown = answer?.opens || (isUnused ? "" : id);
    if (isUnused) await api.delete(sessionPath(id)).catch(() => {}); // an empty session harms nobody
    if (!answer) return void chat.fill?.(`/${name} ${words}`.trim());
    const isShort = !answer.text.includes("\n");
    if (shown !== chat.id && (isShort || answer.opens)) navigate(pathTo("chat", shown));
    if (answer.text && (isShort || answer.opens)) toast(answer.text, "good");
    else if (answer.text) chat.show?.(`/${name}`, answer.text, shown);
  };
}

/**
 * The table. `run(chat, words)`; `alone`: also without a session.
 * @type {Command[]}
 */
export const COMMANDS = [
  { name: "new", summary: t("start a new chat"), alone: true, run: () => navigate("/chat") },
  { name: "stop", summary: t("stop the running turn"), run: (chat) => stop(chat.id) },
  {
    name: "steer",
    value: "TEXT",
    summary: t("tell the model something while it works"),
    run: (chat, words) => words && chat.send(words, "steer"),
  },
  {
    name: "queue",
    value: "TEXT",
    summary: t("send a message after this turn"),
    run: (chat, words) => words && chat.send(words, "queue"),
  },
  {
    name: "undo",
    value: "N",
    summary: t("undo the last turn, or the last N, with their file changes"),
    run: (chat, words) => undo(chat.id, Number(words) || 1),
  },
  { name: "redo", summary: t("restore what the last undo removed"), run: (chat) => redo(chat.id) },
  {
    name: "retry",
    summary: t("undo the last turn and ask again"),
    run: (chat) => retry(chat.id),
  },
  {
    name: "branch",
    value: "N",
    summary: t("continue in a copy, without the last N turns"),
    run: (chat, words) => branch(chat.id, { back: Number(words) || 0 }),
  },
  {
    name: "diff",
    summary: t("show which files the last turn changed"),
    run: (chat) => chat.diff?.(""),
  },
  {
    name: "model",
    value: "NAME",
    summary: t("choose the model"),
    alone: true,
    run: (chat, words) => chat.model(words),
  },
  {
    name: "voice",
    value: "on|off",
    summary: t("speak replies, or stop that"),
    alone: true,
    run: (_, words) => setSpokenReplies(words),
  },
  {
    name: "approvals",
    value: "MODE",
    summary: t("what runs without asking: ask, auto-edit, plan or full"),
    alone: true,
    run: (chat, words) => chat.approvals(words),
  },
  {
    name: "context",
    summary: t("show what uses the context window"),
    run: (chat) => chat.context?.(),
  },
  {
    name: "goal",
    value: "TEXT",
    summary: t("set a goal that Hermes works towards; alone: show it; pause, resume, clear"),
    alone: true,
    run: served("goal"),
  },
  {
    name: "subgoal",
    value: "TEXT",
    summary: t("add a subgoal; alone: list them"),
    alone: true,
    run: served("subgoal"),
  },
  {
    name: "bg",
    value: "TASK",
    summary: t("do a task in the background; alone: move the running turn there"),
    alone: true,
    run: served("bg"),
  },
  {
    name: "agents",
    value: "ACTION",
    summary: t("list background tasks and child agents; open, tell or stop one"),
    alone: true,
    run: (chat, words) => (words ? served("agents")(chat, words) : chat.backgroundWork()),
  },
  {
    name: "agent",
    value: "NAME",
    summary: t("work as an agent from a file; `off` goes back"),
    alone: true,
    run: served("agent"),
  },
  {
    name: "review",
    value: "BRANCH",
    summary: t("let a fresh reviewer look at the changes"),
    alone: true,
    run: served("review"),
  },
  {
    name: "btw",
    value: "QUESTION",
    summary: t("ask something that leaves no trace in the conversation"),
    alone: true,
    run: served("btw"),
  },
  {
    name: "worktree",
    value: "ACTION",
    summary: t("list worktrees; make, open, merge or drop one"),
    alone: true,
    run: served("worktree"),
  },
  {
    name: "kanban",
    value: "ACTION",
    summary: t("use the boards; alone: list the open cards"),
    alone: true,
    run: (chat, words) => (words || chat.id ? served("kanban")(chat, words) : navigate("/board")),
  },
  {
    name: "title",
    value: "TEXT",
    summary: t("name this session"),
    run: (chat, words) => rename(chat.id, words),
  },
  {
    name: "compress",
    summary: t("compress now: summarize the older part"),
    run: (chat) => compress(chat.id),
  },
  {
    name: "export",
    summary: t("download this session as JSON lines"),
    run: (chat) => exportSession(chat.id),
  },
  {
    name: "timeline",
    summary: t("step through this session"),
    run: (chat) => navigate(pathTo("sessions", chat.id)),
  },
  {
    name: "terminal",
    summary: t("continue this session in a terminal"),
    run: (chat) => navigate(terminalOf(chat.id)),
  },
  {
    name: "sessions",
    summary: t("list all sessions"),
    alone: true,
    run: () => navigate("/sessions"),
  },
  {
    name: "search",
    value: "WORDS",
    summary: t("find messages in all sessions"),
    alone: true,
    run: (chat, words) => chat.search(words),
  },
  {
    name: "learn",
    summary: t("review what Hermes proposes to learn"),
    alone: true,
    run: () => navigate("/learning"),
  },
  {
    name: "skills",
    summary: t("list the skills; each is a command"),
    alone: true,
    run: () => navigate("/learning/skills"),
  },
  {
    name: "memory",
    summary: t("show what Hermes remembers"),
    alone: true,
    run: () => navigate("/learning/memory"),
  },
  {
    name: "tools",
    summary: t("list the tools"),
    alone: true,
    run: () => navigate("/settings/tools"),
  },
  {
    name: "mcp",
    summary: t("list the MCP servers and their state"),
    alone: true,
    run: () => navigate("/settings/mcp"),
  },
  {
    name: "cost",
    summary: t("show tokens and cost"),
    alone: true,
    run: () => navigate("/settings/usage"),
  },
  {
    name: "config",
    summary: t("show the settings"),
    alone: true,
    run: () => navigate("/settings"),
  },
  {
    name: "doctor",
    summary: t("check this installation"),
    alone: true,
    run: () => navigate("/settings/doctor"),
  },
  {
    name: "help",
    summary: t("show commands and keyboard shortcuts"),
    alone: true,
    run: (chat) => chat.help(),
  },
];

/**
 * The commands of plugins.
 * @type {Command[]}
 */
const ofPlugins = [];

/** Every command: the page's own, and those of plugins. */
export function everyCommand() {
  return [...COMMANDS, ...ofPlugins];
}

/**
 * Asks again which commands plugins have. They run code with the owner's permissions, so only owners are offered them.
 */
export async function readPluginCommands() {
  if (!may("admin")) {
    ofPlugins.length = 0;
    return;
  }
  const { commands } = await api.get("/api/commands/plugins.commands");
  const found = commands
    .filter((one) => !COMMANDS.some((own) => own.name === one.name))
    .map((one) => ({
      name: one.name,
      value: one.hint || "WORDS",
      summary: one.description || t("a command of the plugin {plugin}", { plugin: one.plugin }),
      alone: true,
      run: (/** @type {ChatActions} */ _, /** @type {string} */ words) =>
        runOfPlugin(one.name, words),
    }));
  ofPlugins.splice(0, Number.POSITIVE_INFINITY, ...found);
}

/**
 * @param {string} name
 * @param {string} words
 */
async function runOfPlugin(name, words) {
  const body = { name, words: words ? [words] : [] };
  const said = await tryTo(() => api.post("/api/commands/plugins.run", body));
  const text = said?.lines.join("\n");
  if (said) await confirm({ title: `/${name}`, text: text || t("Done."), action: t("OK") });
}

/** @type {Record<string, string>} */
const ALIASES = { clear: "new", compact: "compress" };
const PREFIX = "skill:"; // works for every skill, even one with the name of a command

/**
 * The command of a skill: its name, unless a command has the same name.
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
  const own = everyCommand().find(
    (one) => one.name === (Object.hasOwn(ALIASES, name) ? ALIASES[name] : name),
  );
  if (own) return meant(own);
  if (skills.includes(name.replace(PREFIX, ""))) return { line: line.trim() };
  const commands = everyCommand().filter((one) => one.name.startsWith(name));
  if (commands.length === 1) return meant(commands[0]);
  const begun = skills.map(commandOf).filter((one) => one.startsWith(name));
  if (!commands.length && begun.length === 1) return { line: `/${begun[0]} ${words}`.trim() };
  const near = [...COMMANDS.map((one) => one.name), ...skills.map(commandOf)].find(
    (one) => one.slice(0, 3) === name.slice(0, 3),
  );
  return {
    unknown: near
      ? t("There is no command /{name}. Did you mean /{near}?", { name, near })
      : t("There is no command /{name}. See /help.", { name }),
  };
}
