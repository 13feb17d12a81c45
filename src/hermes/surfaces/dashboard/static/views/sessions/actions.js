// The actions of a session: rename and delete. Both ask first.
/** @import { SessionRow } from "../../types/page.d.ts" */
import { api, sessionPath } from "../../app/api.js";
import { ask, confirm } from "../../app/parts/dialog.js";
import { money, plural } from "../../app/parts/format.js";
import { toast, tryTo } from "../../app/parts/toast.js";

/** @param {{ id: string, title: string }} session */
export function titleOf(session) {
  return session.title || `Session ${session.id}`;
}

/**
 * Asks for a name. Resolves to the session as it is then, or to undefined.
 * @param {SessionRow} session
 */
export async function rename(session) {
  const title = await ask({
    title: "Rename the session",
    label: "Name",
    value: session.title,
    action: "Rename",
  });
  if (title === null || title.trim() === session.title) return undefined;
  return tryTo(() => api.patch(sessionPath(session.id), { title }));
}

/**
 * Asks, then deletes. Resolves to whether it is gone.
 * @param {SessionRow} session
 */
export async function remove(session) {
  const spent = session.cost_usd
    ? ` Its ${money(session.cost_usd)} disappear from the usage figures too.`
    : "";
  const sure = await confirm({
    title: `Delete “${titleOf(session)}”?`,
    text:
      `This permanently deletes ${plural(session.messages, "message")} in ${plural(session.turns, "turn")}, here, ` +
      `in search and in every other Hermes on this home.${spent} Files it changed stay as they are and can ` +
      "no longer be undone. Export the session first to keep a copy.",
    action: "Delete session",
    danger: true,
  });
  if (!sure) return false;
  const answer = await tryTo(() => api.delete(sessionPath(session.id)));
  if (answer) toast(`Deleted ${plural(answer.rows, "row")}.`, "good");
  return Boolean(answer);
}
