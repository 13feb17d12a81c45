// Picking other cards of the board, such as those that must be done before.
/** @import { BoardColumns, FieldEvent, ListedCard } from "../../types/page.d.ts" */

import { Button } from "../../app/parts/basics.js";
import { t } from "../../app/translation.js";
import { html, useState } from "../../app/ui.js";

/**
 * @typedef {object} CardPickerProps
 * @property {BoardColumns | null} board
 * @property {string} label
 * @property {string[]} without
 * @property {(id: string) => unknown} onPick
 */

/** @param {CardPickerProps} props */
export function CardPicker({ board, label, without, onPick }) {
  const [text, setText] = useState("");
  const cards = (board?.columns ?? [])
    .flatMap((column) => column.cards)
    .filter((card) => !without.includes(card.id));
  const add = () => {
    const wanted = text.trim();
    if (!wanted) return;
    const known = cards.find((card) => card.id === wanted || card.title === wanted);
    setText("");
    onPick(known?.id ?? wanted);
  };
  /** @param {KeyboardEvent} event */
  const onKeyDown = (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    add();
  };
  return html`
    <div class="row">
      <input class="input" list="cards-to-pick" aria-label=${label} value=${text}
        placeholder=${t("id or title of a card")} autocomplete="off" onKeyDown=${onKeyDown}
        onInput=${(/** @type {FieldEvent} */ event) => setText(event.target.value)} />
      <datalist id="cards-to-pick">
        ${cards.map((card) => html`<option key=${card.id} value=${card.id}>${card.title}</option>`)}
      </datalist>
      <${Button} disabled=${!text.trim()} onClick=${add}>${t("Add")}<//>
    </div>
  `;
}

/**
 * The title of a card that the page knows, or its id.
 * @param {BoardColumns | null} board
 * @param {string} id
 */
export function titleOf(board, id) {
  /** @type {ListedCard[]} */
  const cards = (board?.columns ?? []).flatMap((column) => column.cards);
  return cards.find((card) => card.id === id)?.title ?? id;
}
