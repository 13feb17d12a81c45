// Filing sessions: pin, move to a folder, archive, export, delete; one or several at once.
/** @import { SessionRow } from "../../types/page.d.ts" */

import { api } from "../../app/api.js";
import { ask, confirm } from "../../app/parts/dialog.js";
import { toast, tryTo } from "../../app/parts/toast.js";
import { reloadLists } from "../../app/pending_requests.js";
import { t } from "../../app/translation.js";

/** @typedef {"md" | "html" | "json" | "jsonl"} DocumentFormat */

/** @type {[DocumentFormat, string][]} */
export const FORMATS = [
  ["md", "Markdown"],
  ["html", "HTML"],
  ["json", "JSON"],
  ["jsonl", t("JSON lines, to import")],
];

/** @param {SessionRow[]} sessions */
const ids = (sessions) => sessions.map((one) => one.id);

/**
 * @param {SessionRow[]} sessions
 * @param {boolean} isPinned
 */
export function pin(sessions, isPinned) {
  const body = { sessions: ids(sessions) };
  return tryTo(() =>
    isPinned
      ? api.post("/api/commands/sessions.pin", body)
      : api.post("/api/commands/sessions.unpin", body),
  );
}

/**
 * Asks for a folder. Resolves to whether the sessions were moved.
 * @param {SessionRow[]} sessions
 */
export async function move(sessions) {
  const count = sessions.length;
  const leaving = t(
    "Leave the name empty to take the session out of its folder.",
    "Leave the name empty to take the sessions out of their folders.",
    { count },
  );
  const folder = await ask({
    title: t("Move to a folder", "Move {count} sessions", { count }),
    label: t("Folder"),
    value: sessions[0].folder,
    action: t("Move"),
    text: `${t("A new name makes a new folder.")} ${leaving}`,
  });
  if (folder === null) return false;
  const body = { sessions: ids(sessions), folder };
  return Boolean(await tryTo(() => api.post("/api/commands/sessions.move", body)));
}

/**
 * @param {SessionRow[]} sessions
 * @param {boolean} isArchived
 */
export async function archive(sessions, isArchived) {
  const body = { sessions: ids(sessions) };
  const done = await tryTo(() =>
    isArchived
      ? api.post("/api/commands/sessions.archive", body)
      : api.post("/api/commands/sessions.unarchive", body),
  );
  const count = sessions.length;
  const where = isArchived
    ? t(
        "{count} session archived. Search still finds it.",
        "{count} sessions archived. Search still finds them.",
        { count },
      )
    : t("{count} session back in the list.", "{count} sessions back in the list.", { count });
  if (done) toast(where, "good");
  return Boolean(done);
}

/**
 * Asks, then deletes. Resolves to whether anything was deleted.
 * @param {SessionRow[]} sessions
 */
export async function removeAll(sessions) {
  const count = sessions.length;
  const loss = t(
    "This permanently deletes {count} message, here, in search and in every other Hermes on this home.",
    "This permanently deletes {count} messages, here, in search and in every other Hermes on this home.",
    { count: sessions.reduce((sum, one) => sum + one.messages, 0) },
  );
  const sure = await confirm({
    title: t("Delete {count} session?", "Delete {count} sessions?", { count }),
    text: `${loss} ${t("Export or archive them instead to keep them.")}`,
    action: t("Delete {count} session", "Delete {count} sessions", { count }),
    danger: true,
  });
  if (!sure) return false;
  const body = { sessions: ids(sessions), yes: true };
  const done = await tryTo(() => api.post("/api/commands/sessions.delete", body));
  if (done) toast(t("Deleted {count} session.", "Deleted {count} sessions.", { count }), "good");
  reloadLists();
  return Boolean(done);
}

/**
 * Downloads documents: one session as it is, several as a ZIP file.
 * @param {SessionRow[]} sessions
 * @param {DocumentFormat} format
 */
export function download(sessions, format) {
  const link = document.createElement("a");
  const query = new URLSearchParams({ sessions: ids(sessions).join(","), format });
  link.href =
    sessions.length === 1
      ? `/api/sessions/${encodeURIComponent(sessions[0].id)}/export?format=${format}`
      : `/api/exports?${query}`;
  link.download = "";
  link.click();
}
