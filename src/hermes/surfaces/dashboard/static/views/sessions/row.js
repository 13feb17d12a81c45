// One session in the list, with what can be done about it.
import { may } from "../../app/api.js";
import { Button, Icon, Tag, Time } from "../../app/parts/basics.js";
import { count, money, plural } from "../../app/parts/format.js";
import { pathTo } from "../../app/router.js";
import { html } from "../../app/ui.js";
import { addressOf, remove, rename, titleOf } from "./actions.js";

/** One session as a row. Keys find it by `data-session`. */
export function Row({ session, shelf, children }) {
  const running = shelf.now.running.has(session.id);
  const waiting = shelf.now.waiting.has(session.id);
  return html`<li class="session-row" data-session=${session.id}>
    <a class="session-main" href=${`#${pathTo("sessions", session.id)}`}>
      <span class="session-title">${titleOf(session)}
        ${running && html`<${Tag} kind="accent">at work<//>`}${waiting && html`<${Tag} kind="warn">waits for you<//>`}${session.kind === "branch" && html`<${Tag}>branch<//>`}</span>
      <span class="session-meta"><span>${session.surface || "imported"}</span>${session.model && html`<span>${session.model}</span>`}<span>${plural(session.messages, "message")}</span>
        ${session.cwd && html`<span class="session-cwd" title=${session.cwd}>${session.cwd}</span>`}</span>
    </a>
    <span class="session-sum"><span title=${`${session.tokens.toLocaleString("en")} tokens`}>${session.cost_usd ? money(session.cost_usd) : session.tokens ? `${count(session.tokens)} tokens` : ""}</span><${Time} at=${session.updated} /></span>
    <${RowActions} session=${session} shelf=${shelf} />
    ${children}
  </li>`;
}

function RowActions({ session, shelf }) {
  const name = titleOf(session);
  return html`<span class="session-actions">
    <a class="button quiet bare" href=${`#${pathTo("chat", session.id)}`} aria-label=${`Open ${name} in chat`} title="Open in chat (o)"><${Icon} name="chat" /></a>
    ${may("chat") && html`<${Button} kind="quiet" icon="edit" label=${`Rename ${name}`} title="Rename (r)" onClick=${() => renameRow(session, shelf)} />`}
    <a class="button quiet bare" href=${addressOf(session, "export")} download aria-label=${`Export ${name}`} title="Export (x)"><${Icon} name="download" /></a>
    ${may("admin") && html`<${Button} kind="quiet" icon="trash" label=${`Delete ${name}`} title="Delete (Del)" onClick=${() => removeRow(session, shelf)} />`}
  </span>`;
}

/** Asks for a name and puts it on the shelf. */
export async function renameRow(session, shelf) {
  const changed = await rename(session);
  if (changed) shelf.replace(changed);
}

/** Asks, deletes, and takes it off the shelf. */
export async function removeRow(session, shelf) {
  if (await remove(session)) shelf.drop(session);
}
