// The actions of a session: rename and delete. Both ask first.
/** @import { SessionRow } from "../../types/page.d.ts" */

import { api, sessionPath } from "../../app/api.js";
import { ask, confirm } from "../../app/parts/dialog.js";
import { money } from "../../app/parts/format.js";
import { toast, tryTo } from "../../app/parts/toast.js";
import { t } from "../../app/translation.js";

/** @param {{ id: string, title: string }} session */
export function titleOf(session) {
  return session.title || t("Untitled");
}

/**
 * Asks for a name. Resolves to the session as it is then, or to undefined.
 * @param {SessionRow} session
 */
export async function rename(session) {
  const title = await ask({
    title: t("Rename the session"),
    label: t("Name"),
    value: session.title,
    action: t("Rename"),
  });
  if (title === null || title.trim() === session.title) return undefined;
  return tryTo(() => api.patch(sessionPath(session.id), { title }));
}

/**
 * Asks, then deletes. Resolves to whether it is gone.
 * @param {SessionRow} session
 */
export async function remove(session) {
  const { messages, turns } = session;
  const cost = money(session.cost_usd);
  const text = [
    t(
      "This permanently deletes {messages} in {turns}, here, in search and in every other Hermes on this home.",
      {
        messages: t("{count} message", "{count} messages", { count: messages }),
        turns: t("{count} turn", "{count} turns", { count: turns }),
      },
    ),
    session.cost_usd ? t("Its {cost} disappear from the usage figures too.", { cost }) : "",
    t("Files it changed stay as they are and can no longer be undone."),
    t("Export the session first to keep a copy."),
  ];
  const sure = await confirm({
    title: t("Delete “{name}”?", { name: titleOf(session) }),
    text: text.filter(Boolean).join(" "),
    action: t("Delete session"),
    danger: true,
  });
  if (!sure) return false;
  const answer = await tryTo(() => api.delete(sessionPath(session.id)));
  if (answer)
    toast(t("Deleted {count} row.", "Deleted {count} rows.", { count: answer.rows }), "good");
  return Boolean(answer);
}
