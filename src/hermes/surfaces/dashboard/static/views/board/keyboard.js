// Going from card to card with the arrow keys.

/**
 * Moves the focus from the focused card by a number of columns or cards. Returns false if no card is focused.
 * @param {HTMLElement} board
 * @param {number} columns
 * @param {number} cards
 */
export function stepFocus(board, columns, cards) {
  const here = document.activeElement?.closest(".board-card");
  const column = here?.closest(".board-column");
  if (!here || !column || !board.contains(column)) return false;
  const place = linksIn(column).findIndex((link) => here.contains(link));
  if (cards) linksIn(column)[place + cards]?.focus();
  else focusBeside([...board.querySelectorAll(".board-column")], column, columns, here);
  return true;
}

/** @param {Element} column */
function linksIn(column) {
  return /** @type {HTMLElement[]} */ ([...column.querySelectorAll(".board-card-title")]);
}

/**
 * The card at the same height in the next column that has cards.
 * @param {Element[]} all
 * @param {Element} from
 * @param {number} step
 * @param {Element} card
 */
function focusBeside(all, from, step, card) {
  const top = card.getBoundingClientRect().top;
  for (let at = all.indexOf(from) + step; all[at]; at += step) {
    const links = linksIn(all[at]);
    const below = links.find(
      (link) => (link.closest(".board-card")?.getBoundingClientRect().top ?? 0) >= top - 1,
    );
    const found = below ?? links.at(-1);
    if (found) return found.focus();
  }
}
