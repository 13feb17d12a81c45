// Completion in the input: commands and skills after a slash, files after an at sign.
/** @import { Answer } from "../../types/page.d.ts" */
import { api, sessionPath } from "../../app/api.js";
import { commandOf, everyCommand, readPluginCommands } from "./commands.js";

const MOST = 12;
const FRESH_MS = 3000; // milliseconds in which no skill is learned that somebody calls
const PAUSE_MS = 80; // milliseconds after the last key before files are looked for

/** @typedef {{ kind: "command" | "file", word: string, start: number, end: number }} Place */

/** @typedef {{ label: string, note: string, insert: string, value?: string, again?: boolean }} Completion */

/** @typedef {Answer<"GET", "/api/skills">["skills"]} Skills */

/**
 * The word at the cursor: {kind, word, start, end}, or null.
 * @param {string} text
 * @param {number} cursor
 * @returns {Place | null}
 */
export function wordAt(text, cursor) {
  const before = text.slice(0, cursor);
  const slash = /^\/([\w:-]*)$/.exec(before);
  if (slash) return { kind: "command", word: slash[1].toLowerCase(), start: 0, end: cursor };
  const file = /(?:^|\s)@("?)([^\s"]*)$/.exec(before);
  if (file)
    return {
      kind: "file",
      word: file[2],
      start: cursor - file[2].length - file[1].length - 1,
      end: cursor,
    };
  return null;
}

let known = { at: -FRESH_MS, skills: Promise.resolve(/** @type {Skills} */ ([])) };

/** The skills that can be called; cached for a moment. */
export async function knownSkills() {
  if (performance.now() - known.at < FRESH_MS) return known.skills;
  const ofPlugins = readPluginCommands().catch(() => {});
  const skills = Promise.all([api.get("/api/skills"), ofPlugins]).then(([answer]) =>
    answer.skills.filter((one) => one.enabled && !one.problem),
  );
  known = { at: performance.now(), skills: skills.catch(() => /** @type {Skills} */ ([])) };
  return known.skills;
}

/** Finds completions; only the newest request gets a result. */
export class Completer {
  #number = 0;

  /** @param {string} session */
  constructor(session) {
    this.session = session;
  }

  /**
   * Resolves to [{label, note, insert}], or to null when a newer question was put meanwhile.
   * @param {Place} place
   * @returns {Promise<Completion[] | null>}
   */
  async find(place) {
    const number = ++this.#number;
    const rows =
      place.kind === "command"
        ? await this.#commands(place.word)
        : await this.#files(place.word, number);
    return number === this.#number ? rows : null;
  }

  /** @param {string} word */
  async #commands(word) {
    const skills = await knownSkills(); // also reads the commands of plugins
    const own = everyCommand()
      .filter((one) => this.session || one.alone)
      .map((one) => ({
        label: `/${one.name}`,
        value: one.value ?? "",
        note: one.summary,
        insert: `/${one.name}${one.value ? " " : ""}`,
      }));
    const learned = skills.map((one) => ({
      label: `/${commandOf(one.name)}`,
      value: "WORDS",
      note: one.description,
      insert: `/${commandOf(one.name)} `,
    }));
    const all = [...own, ...learned];
    const begins = all.filter((one) => one.label.slice(1).startsWith(word));
    const holds = all.filter(
      (one) => !begins.includes(one) && word.length > 1 && one.label.includes(word),
    );
    return [...begins, ...holds].slice(0, 40);
  }

  /**
   * @param {string} word
   * @param {number} number
   */
  async #files(word, number) {
    if (!this.session) return [];
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    if (number !== this.#number) return null;
    try {
      const { files } = await api.get(sessionPath(this.session, "files"), {
        prefix: word,
        limit: MOST,
      });
      return files.map((name) => ({
        label: name,
        note: "",
        insert: `@${/\s/.test(name) ? `"${name}"` : name}${name.endsWith("/") ? "" : " "}`,
        again: name.endsWith("/"),
      }));
    } catch {
      return [];
    }
  }
}
