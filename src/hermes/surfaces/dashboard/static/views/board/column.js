// A column: its cards, and the place where cards are dropped.
/** @import { BoardColumn, CardStatus, ListedCard } from "../../types/page.d.ts" */

import { inFull } from "../../app/parts/format.js";
import { t } from "../../app/translation.js";
import { html, useEffect, useState } from "../../app/ui.js";
import { Rows } from "../rows.js";
import { BoardCard, CARD_HEIGHT } from "./card.js";
import { TITLES } from "./labels.js";
import { DRAGGED } from "./moving.js";

/** @typedef {{ id: string, mark: number }} FocusGoal */

/**
 * @typedef {object} ColumnProps
 * @property {BoardColumn} column
 * @property {FocusGoal} goal
 * @property {Map<string, string>} titles
 * @property {(id: string, status: CardStatus) => void} onDrop
 * @property {(card: ListedCard) => void} onMove
 * @property {(status: CardStatus) => Promise<void>} more
 */

/**
 * `goal` is the card that should get the focus, once for each `mark`.
 * @param {ColumnProps} props
 */
export function Column({ column, goal, titles, onDrop, onMove, more }) {
  const [isOver, setOver] = useState(false);
  const { status, cards, total } = column;
  const items = cards.length < total ? [...cards, null] : cards;
  const at = goal.id ? cards.findIndex((card) => card.id === goal.id) : -1;
  useEffect(() => {
    if (at < 0) return;
    // After the row was scrolled to and drawn.
    const frame = requestAnimationFrame(() => focusCard(goal.id));
    return () => cancelAnimationFrame(frame);
  }, [goal.mark, at < 0]);
  /** @param {DragEvent} event */
  const over = (event) => {
    if (!event.dataTransfer?.types.includes(DRAGGED)) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = "move";
    setOver(true);
  };
  /** @param {DragEvent & { currentTarget: HTMLElement }} event */
  const leave = (event) =>
    event.relatedTarget instanceof Node && event.currentTarget.contains(event.relatedTarget)
      ? undefined
      : setOver(false);
  /** @param {DragEvent} event */
  const drop = (event) => {
    event.preventDefault();
    setOver(false);
    const id = event.dataTransfer?.getData(DRAGGED);
    if (id) onDrop(id, status);
  };
  const title = TITLES[status];
  return html`
    <section
      class=${`board-column ${isOver ? "over" : ""} ${total ? "" : "bare"}`}
      data-status=${status}
      aria-label=${title}
      onDragOver=${over}
      onDragLeave=${leave}
      onDrop=${drop}
    >
      <h2>${title} <span class="board-count">${inFull(total)}</span></h2>
      <${Rows}
        class="board-rows"
        label=${t("Cards in {column}", { column: title })}
        items=${items}
        height=${CARD_HEIGHT}
        reveal=${at}
        mark=${goal.mark}
        row=${(/** @type {ListedCard | null} */ card) =>
          card
            ? html`<${BoardCard} key=${card.id} card=${card} titles=${titles} onMove=${onMove} />`
            : html`<${More} key="more" more=${() => more(status)} />`}
      />
    </section>
  `;
}

/** @param {string} id */
export function focusCard(id) {
  const link = document.querySelector(`[data-card="${CSS.escape(id)}"] .board-card-title`);
  if (link instanceof HTMLElement) link.focus();
}

/**
 * Asks for the next page as soon as it is about to be seen.
 * @param {{ more: () => Promise<void> }} props
 */
function More({ more }) {
  useEffect(() => {
    more();
  }, []);
  return html`<p class="board-more muted small" role="status">${t("Loading more cards…")}</p>`;
}
