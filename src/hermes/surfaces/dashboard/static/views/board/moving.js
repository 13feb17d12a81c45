// Moving cards: by drag and drop, by keys and from the menu. A refusal is shown with its reason.
/** @import { CardStatus, ListedCard, LoadedBoard } from "../../types/page.d.ts" */

import { api, errorText } from "../../app/api.js";
import { ask, Dialog } from "../../app/parts/dialog.js";
import { toast } from "../../app/parts/toast.js";
import { t } from "../../app/translation.js";
import { html } from "../../app/ui.js";
import { COLUMNS, readable, TITLES, titlesOf } from "./labels.js";

/** How a browser names what is dragged. */
export const DRAGGED = "application/x-hermes-card";

/**
 * Asks what a column needs to know. Null if the user changed their mind.
 * @param {string} title
 * @param {CardStatus} status
 */
export async function reasonFor(title, status) {
  if (status !== "blocked") return "";
  return ask({
    title: t("Block “{card}”", { card: title }),
    label: t("Why?"),
    action: t("Block"),
    text: t("What does it need?"),
  });
}

/**
 * Moves a card at once, and back if that is refused. Resolves to whether it was moved.
 * @param {LoadedBoard} board
 * @param {ListedCard} card
 * @param {CardStatus} status
 */
export async function moveCard(board, card, status) {
  if (card.status === status) return false;
  const reason = await reasonFor(card.title, status);
  if (reason === null) return false;
  if (card.status !== "running" && status !== "running") board.place(card, status);
  try {
    await api.post("/api/commands/kanban.move", { card: card.id, status, reason });
    return true;
  } catch (error) {
    toast(readable(errorText(error), titlesOf(board.value)), "bad");
    return false;
  } finally {
    await board.again();
  }
}

/**
 * The column beside another one that cards can be moved to by hand.
 * @param {CardStatus} status
 * @param {number} step
 * @param {boolean} archived
 */
export function beside(status, step, archived) {
  const names = COLUMNS.map(([name]) => name).filter(
    (name) => name !== "running" && (archived || name !== "archived"),
  );
  if (status === "running") return step > 0 ? "blocked" : "ready";
  return names[names.indexOf(status) + step];
}

/**
 * Where a card can go, for fingers and keyboards.
 * @param {{ card: ListedCard, onPick: (status: CardStatus) => void, onClose: () => void }} props
 */
export function MoveDialog({ card, onPick, onClose }) {
  const choices = COLUMNS.filter(([name]) => name !== card.status && name !== "running");
  return html`
    <${Dialog} title=${t("Move “{card}”", { card: card.title })} class="sheet" onClose=${onClose}>
      <p class="muted small">${t("It is in {column}.", { column: TITLES[card.status] })}</p>
      <ul class="more">
        ${choices.map(
          ([name, title]) => html`
          <li key=${name}>
            <button type="button" class="more-row" onClick=${() => onPick(name)}>${title}</button>
          </li>
        `,
        )}
      </ul>
    <//>
  `;
}
