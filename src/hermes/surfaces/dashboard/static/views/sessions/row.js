// One session in the list, with what can be done about it.
/** @import { SessionStore } from "./session_store.js" */
/** @import { Child, SessionRow } from "../../types/page.d.ts" */
import { may, sessionPath } from "../../app/api.js";
import { Button, IconLink, Tag, Time } from "../../app/parts/basics.js";
import { inFull, money, tokens } from "../../app/parts/format.js";
import { linkTo } from "../../app/router.js";
import { t } from "../../app/translation.js";
import { html } from "../../app/ui.js";
import { remove, rename, titleOf } from "./actions.js";

/**
 * One session as a row. Keys find it by `data-session`.
 * @param {{ session: SessionRow, store: SessionStore, children?: Child }} props
 */
export function Row({ session, store, children }) {
  const running = store.now.running.has(session.id);
  const waiting = store.now.waiting.has(session.id);
  const { tokens: count } = session;
  return html`
    <li class="session-row" data-session=${session.id}>
      <a class="session-main" href=${linkTo("sessions", session.id)}>
        <span class="session-title">
          ${titleOf(session)}
          ${running && html`<${Tag} kind="accent">${t("running")}<//>`}
          ${waiting && html`<${Tag} kind="warn">${t("waiting for you")}<//>`}
          ${session.kind === "branch" && html`<${Tag}>${t("branch")}<//>`}
        </span>
        <span class="session-meta">
          <span>${session.surface || t("imported")}</span>
          ${session.model && html`<span>${session.model}</span>`}
          <span>${t("{count} message", "{count} messages", { count: session.messages })}</span>
          ${session.cwd && html`<span class="session-cwd" title=${session.cwd}>${session.cwd}</span>`}
        </span>
      </a>
      <span class="session-sum">
        <span title=${t("{number} token", "{number} tokens", { count, number: inFull(count) })}>${spent(session)}</span>
        <${Time} at=${session.updated} />
      </span>
      <${RowActions} session=${session} store=${store} />
      ${children}
    </li>
  `;
}

/** @param {{ session: SessionRow, store: SessionStore }} props */
function RowActions({ session, store }) {
  const name = titleOf(session);
  const onRename = () => renameRow(session, store);
  const onDelete = () => removeRow(session, store);
  return html`
    <span class="session-actions">
      <${IconLink}
        icon="chat"
        label=${t("Open {name} in chat", { name })}
        title=${t("Open in chat (o)")}
        href=${linkTo("chat", session.id)}
      />
      ${
        may("chat") &&
        html`
        <${Button} kind="quiet" icon="edit" label=${t("Rename {name}", { name })}
          title=${t("Rename (r)")} onClick=${onRename} />
      `
      }
      <${IconLink}
        icon="download"
        label=${t("Export {name}", { name })}
        title=${t("Export (x)")}
        href=${sessionPath(session.id, "export")}
        download
      />
      ${
        may("admin") &&
        html`
        <${Button} kind="quiet" icon="trash" label=${t("Delete {name}", { name })}
          title=${t("Delete (Del)")} onClick=${onDelete} />
      `
      }
    </span>
  `;
}

/**
 * What it cost; where no price is known, how much was read and written.
 * @param {SessionRow} session
 */
function spent({ cost_usd: cost, tokens: total }) {
  if (cost) return money(cost);
  return total ? tokens(total) : "";
}

/**
 * Asks for a name and puts it on the store.
 * @param {SessionRow} session
 * @param {SessionStore} store
 */
export async function renameRow(session, store) {
  const changed = await rename(session);
  if (changed) store.replace(changed);
}

/**
 * Asks, deletes, and takes it off the store.
 * @param {SessionRow} session
 * @param {SessionStore} store
 */
export async function removeRow(session, store) {
  if (await remove(session)) store.drop(session);
}
