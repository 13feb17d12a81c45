// One session in the list, with what can be done about it.
/** @import { Shelf } from "./shelf.js" */
/** @import { Child, SessionRow } from "../../types/page.d.ts" */
import { may, sessionPath } from "../../app/api.js";
import { Button, IconLink, Tag, Time } from "../../app/parts/basics.js";
import { count, inFull, money, plural } from "../../app/parts/format.js";
import { linkTo } from "../../app/router.js";
import { html } from "../../app/ui.js";
import { remove, rename, titleOf } from "./actions.js";

/**
 * One session as a row. Keys find it by `data-session`.
 * @param {{ session: SessionRow, shelf: Shelf, children?: Child }} props
 */
export function Row({ session, shelf, children }) {
  const running = shelf.now.running.has(session.id);
  const waiting = shelf.now.waiting.has(session.id);
  return html`
    <li class="session-row" data-session=${session.id}>
      <a class="session-main" href=${linkTo("sessions", session.id)}>
        <span class="session-title">
          ${titleOf(session)}
          ${running && html`<${Tag} kind="accent">running<//>`}
          ${waiting && html`<${Tag} kind="warn">waiting for you<//>`}
          ${session.kind === "branch" && html`<${Tag}>branch<//>`}
        </span>
        <span class="session-meta">
          <span>${session.surface || "imported"}</span>
          ${session.model && html`<span>${session.model}</span>`}
          <span>${plural(session.messages, "message")}</span>
          ${session.cwd && html`<span class="session-cwd" title=${session.cwd}>${session.cwd}</span>`}
        </span>
      </a>
      <span class="session-sum">
        <span title=${`${inFull(session.tokens)} tokens`}>${spent(session)}</span>
        <${Time} at=${session.updated} />
      </span>
      <${RowActions} session=${session} shelf=${shelf} />
      ${children}
    </li>
  `;
}

/** @param {{ session: SessionRow, shelf: Shelf }} props */
function RowActions({ session, shelf }) {
  const name = titleOf(session);
  const onRename = () => renameRow(session, shelf);
  const onDelete = () => removeRow(session, shelf);
  return html`
    <span class="session-actions">
      <${IconLink}
        icon="chat"
        label=${`Open ${name} in chat`}
        title="Open in chat (o)"
        href=${linkTo("chat", session.id)}
      />
      ${
        may("chat") &&
        html`
        <${Button} kind="quiet" icon="edit" label=${`Rename ${name}`} title="Rename (r)" onClick=${onRename} />
      `
      }
      <${IconLink}
        icon="download"
        label=${`Export ${name}`}
        title="Export (x)"
        href=${sessionPath(session.id, "export")}
        download
      />
      ${
        may("admin") &&
        html`
        <${Button} kind="quiet" icon="trash" label=${`Delete ${name}`} title="Delete (Del)" onClick=${onDelete} />
      `
      }
    </span>
  `;
}

/**
 * What it cost; where no price is known, how much was read and written.
 * @param {SessionRow} session
 */
function spent({ cost_usd: cost, tokens }) {
  if (cost) return money(cost);
  return tokens ? `${count(tokens)} tokens` : "";
}

/**
 * Asks for a name and puts it on the shelf.
 * @param {SessionRow} session
 * @param {Shelf} shelf
 */
export async function renameRow(session, shelf) {
  const changed = await rename(session);
  if (changed) shelf.replace(changed);
}

/**
 * Asks, deletes, and takes it off the shelf.
 * @param {SessionRow} session
 * @param {Shelf} shelf
 */
export async function removeRow(session, shelf) {
  if (await remove(session)) shelf.drop(session);
}
