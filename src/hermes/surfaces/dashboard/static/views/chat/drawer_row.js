// One session in the drawer: its marks, and a menu of what can be done with it.
/** @import { SessionRow } from "../../types/page.d.ts" */
import { may } from "../../app/api.js";
import { Button, Dialog, Icon, Time } from "../../app/parts.js";
import { reloadLists } from "../../app/pending_requests.js";
import { pathTo } from "../../app/router.js";
import { t } from "../../app/translation.js";
import { html, useState } from "../../app/ui.js";
import { remove, rename } from "../sessions/actions.js";
import { archive, download, FORMATS, move, pin } from "../sessions/filing.js";
import { knownBeginning } from "./beginnings.js";

/**
 * Whether messages came since somebody last looked at a session. One that was never opened here is not unread.
 * @param {SessionRow} session
 */
export function isUnread(session) {
  return session.seen > 0 && session.messages > session.seen;
}

/**
 * The name of a session, as the head of the chat has it.
 * @param {SessionRow} session
 */
function nameOf(session) {
  return session.title || knownBeginning(session.id) || t("Untitled");
}

/**
 * @typedef {object} DrawerRowProps
 * @property {SessionRow} session
 * @property {string} current
 * @property {boolean} asks
 * @property {boolean} runs
 * @property {Set<string> | null} selected
 * @property {(session: SessionRow) => void} onSelect
 * @property {() => void} onClick
 */

/** @param {DrawerRowProps} props */
export function DrawerRow({ session, current, asks, runs, selected, onSelect, onClick }) {
  const [menu, setMenu] = useState(false);
  const here = session.id === current;
  const unread = isUnread(session) && !here;
  const isMarked = selected?.has(session.id) ?? false;
  const body = html`<span class="drawer-title"><${Mark} asks=${asks} runs=${runs} unread=${unread} />
      <span>${nameOf(session)}</span></span>
    <span class="drawer-note"><${Time} at=${session.updated} />
      ${session.surface && session.surface !== "dashboard" && html`<span>${session.surface}</span>`}
      ${session.folder && html`<span class="drawer-folder">${session.folder}</span>`}</span>`;
  if (selected)
    return html`<label class=${`drawer-row selectable ${isMarked ? "current" : ""}`}>
      <input type="checkbox" checked=${isMarked} onChange=${() => onSelect(session)} />
      <span class="drawer-words">${body}</span></label>`;
  return html`<div class=${`drawer-item ${unread ? "unread" : ""}`}>
    <a class=${`drawer-row ${here ? "current" : ""}`} href=${`#${pathTo("chat", session.id)}`}
      aria-current=${here ? "page" : undefined} onClick=${onClick}>${body}</a>
    <${Button} kind="quiet" class="drawer-menu" icon="more"
      label=${t("Actions for {session}", { session: nameOf(session) })}
      aria-haspopup="dialog" onClick=${() => setMenu(true)} />
    ${menu && html`<${RowMenu} session=${session} onClose=${() => setMenu(false)} />`}
  </div>`;
}

/** @param {{ asks: boolean, runs: boolean, unread: boolean }} props */
function Mark({ asks, runs, unread }) {
  if (asks) return html`<span class="dot warn" role="img" aria-label=${t("waiting for you")} />`;
  if (runs) return html`<span class="dot running" role="img" aria-label=${t("running")} />`;
  return unread && html`<span class="dot unread" role="img" aria-label=${t("unread")} />`;
}

/** @param {{ session: SessionRow, onClose: () => void }} props */
function RowMenu({ session, onClose }) {
  /** @type {[string, string, () => unknown][]} */
  const rows = [];
  if (may("chat"))
    rows.push(
      [
        "pin",
        session.pinned ? t("Unpin") : t("Pin to the top"),
        () => pin([session], !session.pinned),
      ],
      ["folder", t("Move to a folder"), () => move([session])],
      ["edit", t("Rename"), () => rename(session)],
      [
        "archive",
        session.archived ? t("Take out of the archive") : t("Archive"),
        () => archive([session], !session.archived),
      ],
    );
  for (const [format, label] of FORMATS)
    rows.push([
      "download",
      t("Export as {format}", { format: label }),
      () => download([session], format),
    ]);
  if (may("admin"))
    rows.push(["trash", t("Delete"), async () => (await remove(session)) && reloadLists()]);
  return html`<${Dialog} title=${nameOf(session)} class="sheet" onClose=${onClose}><ul class="more">
    ${rows.map(
      ([icon, label, run]) =>
        html`<li key=${label}><button type="button" class="more-row" onClick=${() => {
          onClose();
          run();
        }}><${Icon} name=${icon} />${label}</button></li>`,
    )}</ul><//>`;
}
