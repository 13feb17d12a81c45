// What codex asks for, in the page's language: the words that `codex/approvals.py` writes into a summary. A line is
// translated only where codex's request puts it, so that nothing in a command is taken for it.
import { t } from "../translation.js";

const RUN = "Run in "; // not translated
const BELOW = "and from then on anywhere below "; // not translated
const PERMISSIONS = "with these permissions: "; // not translated
const MORE = "give codex more permissions: "; // not translated
const UNNAMED_HOST = "a host that codex does not name"; // not translated
const UNNAMED_PERMISSIONS = "it does not say which"; // not translated
const UNNAMED_ACTION = "an action that codex describes without a command"; // not translated
const TYPING = "type into the running command"; // not translated
const UNANNOUNCED_PATCH = "a patch whose content codex did not announce"; // not translated

const REQUESTS = ["exec_command", "network_access", "request_permissions"];
const COUNTS = /^(\d+ (?:add|update|delete)(?:, \d+ (?:update|delete))*): (.*)$/;
const NOT_SHOWN =
  /^\[\.\.\. ([\d,]+) more characters of the patch not shown here(?:, of (.*))? \.\.\.\]$/;

/** @type {Record<string, (value: string) => string>} */
const LEADS = {
  "in ": (folder) => t("in {folder}", { folder }),
  "for ": (command) => t("for {command}", { command }),
  [BELOW]: (folder) => t("and from then on anywhere below {folder}", { folder }),
  [PERMISSIONS]: (permissions) => t("with these permissions: {permissions}", { permissions }),
};

/**
 * The summary of codex's request, for a person; that of another tool as it is.
 * @param {string} name of the tool
 * @param {string} summary
 */
export function shownCodexRequest(name, summary) {
  const lines = summary.split("\n");
  if (REQUESTS.includes(name) && !summary.startsWith(RUN)) {
    translateEnd(lines);
    if (name === "network_access" && lines.length > 1) lines[1] = after("for ", lines[1]);
  } else if (name === "apply_patch" && lines[1]?.startsWith("in ")) {
    lines[1] = after("in ", lines[1]);
    if (lines.length > 2) lines[2] = after(BELOW, lines[2]);
    lines[lines.length - 1] = notShown(lines[lines.length - 1]);
  } else return summary;
  lines[0] = shownWish(name, lines[0]);
  return lines.join("\n");
}

/**
 * Translates the last lines: the folder, and the permissions.
 * @param {string[]} lines
 */
function translateEnd(lines) {
  let last = lines.length - 1;
  if (last > 1 && lines[last].startsWith(PERMISSIONS)) {
    lines[last] = after(PERMISSIONS, lines[last]);
    last -= 1;
  }
  if (last > 0) lines[last] = after("in ", lines[last]);
}

/**
 * The line with its lead translated, if it begins with it.
 * @param {string} lead
 * @param {string} line
 */
function after(lead, line) {
  return line.startsWith(lead) ? LEADS[lead](line.slice(lead.length)) : line;
}

/**
 * What codex wants to do: the first line.
 * @param {string} name
 * @param {string} wish
 */
function shownWish(name, wish) {
  if (name === "network_access" && wish.startsWith("reach "))
    return shownHost(wish.slice("reach ".length));
  if (name === "request_permissions" && wish.startsWith(MORE))
    return shownPermissions(wish.slice(MORE.length));
  return name === "apply_patch" ? shownPatch(wish) : shownCommand(wish);
}

/** @param {string} where */
function shownHost(where) {
  if (where === UNNAMED_HOST) return t("reach a host that codex does not name");
  return t("reach {where}", { where });
}

/** @param {string} wanted */
function shownPermissions(wanted) {
  if (wanted === UNNAMED_PERMISSIONS)
    return t("give codex more permissions; it does not say which");
  return t("give codex more permissions: {wanted}", { wanted });
}

/** @param {string} wish */
function shownCommand(wish) {
  if (wish === UNNAMED_ACTION) return t("an action that codex describes without a command");
  if (!wish.startsWith(TYPING)) return wish;
  return t("type into the running command {command}", {
    command: wish.slice(TYPING.length).trim(),
  });
}

/** @param {string} wish */
function shownPatch(wish) {
  if (wish === UNANNOUNCED_PATCH) return t("a patch whose content codex did not announce");
  const counts = COUNTS.exec(wish);
  return counts ? `${counts[1].split(", ").map(shownCount).join(", ")}: ${counts[2]}` : wish;
}

/**
 * How many files a patch adds, changes or deletes.
 * @param {string} words such as `2 update`
 */
function shownCount(words) {
  const [number, kind] = words.split(" ");
  const count = Number(number);
  if (kind === "add") return t("{count} new file", "{count} new files", { count });
  if (kind === "update") return t("{count} changed file", "{count} changed files", { count });
  return t("{count} deleted file", "{count} deleted files", { count });
}

/** @param {string} line */
function notShown(line) {
  const found = NOT_SHOWN.exec(line);
  if (!found) return line;
  const [, count, files] = found;
  if (!files)
    return t("[... {count} more characters of the patch are not shown here ...]", { count });
  return t("[... {count} more characters of the patch are not shown here, of {files} ...]", {
    count,
    files,
  });
}
