// The cards of a board, a page of each column at a time, kept up to date by the events of boards.
/** @import { BoardColumns, CardFilter, CardStatus, Failure } from "../../types/page.d.ts" */
/** @import { HermesEvent, ListedCard, LoadedBoard } from "../../types/page.d.ts" */
/** @import { Store } from "../../app/ui.js" */
import { api, asFailure, Latest } from "../../app/api.js";
import { useCallback, useEffect, useRef, useState } from "../../app/ui.js";
import { useLiveReload } from "../live_reload.js";
import { COLUMNS } from "./labels.js";

const PAGE = 50; // cards of a column that are asked for at once

/** @typedef {{ value: BoardColumns | null, error: Failure | null }} BoardState */

/**
 * A board. `slug` is empty for the current one.
 * @param {string} slug
 * @param {CardFilter} filter
 * @param {Store<HermesEvent[]>} news
 * @returns {LoadedBoard}
 */
export function useBoard(slug, filter, news) {
  const [state, setState] = useState(/** @type {BoardState} */ ({ value: null, error: null }));
  const [requests] = useState(() => new Latest());
  const sizes = useRef(/** @type {Record<string, number>} */ ({}));
  const shown = useRef("");
  const { query, assignee, label, archived } = filter;
  const again = useCallback(async () => {
    const isLatest = requests.begin();
    const board = slug || shown.current;
    try {
      const value = await load({ board, query, assignee, label }, archived, sizes.current);
      shown.current = value.board.slug;
      if (isLatest()) setState({ value, error: null });
    } catch (error) {
      if (isLatest()) setState((was) => ({ ...was, error: asFailure(error) }));
    }
  }, [slug, query, assignee, label, archived]);
  const more = useCallback(
    async (/** @type {CardStatus} */ status) => {
      sizes.current[status] = (sizes.current[status] ?? PAGE) + PAGE;
      await again();
    },
    [again],
  );
  const place = useCallback((/** @type {ListedCard} */ card, /** @type {CardStatus} */ status) => {
    requests.begin();
    setState((was) => ({ ...was, value: was.value && placed(was.value, card, status) }));
  }, []);
  useEffect(() => {
    sizes.current = {};
    again();
  }, [again]);
  /** @param {HermesEvent} event */
  const concerns = (event) =>
    !("board" in event) || !event.board || !shown.current || event.board === shown.current;
  useLiveReload(news, concerns, again);
  const isOther = slug && state.value && state.value.board.slug !== slug;
  return { ...state, value: isOther ? null : state.value, again, more, place };
}

/**
 * Columns of which no more than a page is shown come with one request, each other one with its own.
 * @param {{ board: string, query: string, assignee: string, label: string }} asked
 * @param {boolean} archived
 * @param {Record<string, number>} sizes
 * @returns {Promise<BoardColumns>}
 */
async function load(asked, archived, sizes) {
  const statuses = COLUMNS.map(([name]) => name).filter((name) => archived || name !== "archived");
  const small = statuses.filter((name) => !sizes[name]);
  const large = statuses.filter((name) => sizes[name]);
  /**
   * @param {string[]} wanted
   * @param {number} limit
   */
  const get = (wanted, limit) =>
    api.get("/api/commands/kanban.columns", { ...asked, status: wanted.join(","), limit });
  const answers = await Promise.all([
    ...(small.length ? [get(small, PAGE)] : []),
    ...large.map((name) => get([name], sizes[name])),
  ]);
  const columns = answers.flatMap((answer) => answer.columns);
  columns.sort((one, other) => statuses.indexOf(one.status) - statuses.indexOf(other.status));
  return { ...answers[0], columns };
}

/**
 * The columns with a card elsewhere, as they will be once the server has moved it.
 * @param {BoardColumns} board
 * @param {ListedCard} card
 * @param {CardStatus} status
 */
function placed(board, card, status) {
  const columns = board.columns.map((column) => {
    const had = column.cards.some((one) => one.id === card.id);
    const cards = column.cards.filter((one) => one.id !== card.id);
    if (column.status !== status)
      return had ? { ...column, cards, total: column.total - 1 } : column;
    const moved = { ...card, status, why: "" };
    const at = cards.findIndex((one) => isBefore(moved, one));
    cards.splice(at < 0 ? cards.length : at, 0, moved);
    return { ...column, cards, total: column.total + (had ? 0 : 1) };
  });
  return { ...board, columns };
}

/**
 * The order of the server: the highest priority first, then the oldest.
 * @param {ListedCard} one
 * @param {ListedCard} other
 */
function isBefore(one, other) {
  if (one.priority !== other.priority) return one.priority > other.priority;
  return one.created === other.created ? one.id < other.id : one.created < other.created;
}
