// The policy's own words in the summary of a request for approval, in the page's language. Only for showing: the hash
// of a request has the English text. A command and the content of a file stay as they are.
import { language, t } from "../translation.js";
import { shownCodexRequest } from "./codex_summary.js";

const COMMAND_TOOLS = ["terminal", "exec_command"];
const CHECKS = "Run in the sandbox after each turn that changes files:"; // not translated: the policy writes it
const SIZE =
  /^(replaced|new content|replaces a file that can't be compared), ([\d,]+) lines?, ([\d,]+) bytes?:$/;
const WOULD_FAIL = /^\(as the files? (?:is|are) now, this would fail: (.*)\)$/;
const CUT_NOTE = /\n\.\.\. ([\d,]+) more characters are not shown here$/;

/**
 * What a tool's call would do, for a person.
 * @param {string} name of the tool
 * @param {string} summary
 */
export function shownSummary(name, summary) {
  if (language === "en") return summary;
  const codex = shownCodexRequest(name, summary);
  if (codex !== summary) return codex;
  const [first, ...rest] = summary.split("\n");
  const change = rest.length > 0 ? `\n${shownChange(name, rest.join("\n"))}` : "";
  return `${shownHead(name, first, rest.length > 0)}${change}`;
}

/**
 * @param {string} name
 * @param {string} first
 * @param {boolean} hasMore
 */
function shownHead(name, first, hasMore) {
  if (first === CHECKS) return t("Run in the sandbox after each turn that changes files:");
  const folder = /^Run in (.*):$/.exec(first);
  if (!folder || !hasMore || !COMMAND_TOOLS.includes(name)) return first;
  return t("Run in {folder}:", { folder: folder[1] });
}

/**
 * The lines below the first one.
 * @param {string} name
 * @param {string} change
 */
function shownChange(name, change) {
  const noted = change.replace(
    CUT_NOTE,
    (_, count) => `\n${t("... {count} more characters are not shown here", { count })}`,
  );
  const [first, ...rest] = noted.split("\n");
  return [shownFirst(name, first), ...rest].join("\n");
}

/**
 * @param {string} name
 * @param {string} first
 */
function shownFirst(name, first) {
  const size = name === "write_file" && SIZE.exec(first);
  if (size) return sizeLine(size[1], size[2], size[3]);
  const why = ["edit_file", "apply_patch"].includes(name) && WOULD_FAIL.exec(first);
  return why ? t("(as it is now, this would fail: {error})", { error: why[1] }) : first;
}

/**
 * What becomes of a file, and how large it is.
 * @param {string} what
 * @param {string} lines
 * @param {string} size
 */
function sizeLine(what, lines, size) {
  if (what === "replaced") return t("replaced; lines: {lines}, bytes: {size}", { lines, size });
  if (what === "new content")
    return t("new content; lines: {lines}, bytes: {size}", { lines, size });
  return t("replaces a file that can't be compared; lines: {lines}, bytes: {size}", {
    lines,
    size,
  });
}
