// Board: cards in columns, moved by hand or by the dispatcher, live; a card's drawer; making cards and boards.
/** @import { BoardColumns, CardFilter, CardStatus, ListedCard, Ref, Route } from "../types/page.d.ts" */

import { may } from "../app/api.js";
import { useKeys } from "../app/keys.js";
import { Empty, Loading, Problem } from "../app/parts/basics.js";
import { navigate, pathTo } from "../app/router.js";
import { t } from "../app/translation.js";
import {
  html,
  kept,
  useCallback,
  useEffect,
  useElement,
  useMemo,
  useRef,
  useState,
  useStyle,
} from "../app/ui.js";
import { useBoard } from "./board/board_data.js";
import { CardForm } from "./board/card_form.js";
import { Column } from "./board/column.js";
import { CardDrawer } from "./board/drawer.js";
import { BoardHead } from "./board/head.js";
import { stepFocus } from "./board/keyboard.js";
import { TITLES, titlesOf } from "./board/labels.js";
import { beside, MoveDialog, moveCard } from "./board/moving.js";
import { useBusEvents } from "./live_reload.js";

const EVERYTHING = { query: "", assignee: "", label: "", archived: false };
const group = t("Board");

/** @param {{ route: Route }} props */
export default function BoardView({ route }) {
  const ready = useStyle("views/board.css");
  const seen = kept.get("board") ?? "";
  const slug = route.parts[0] ?? seen;
  // Opening a card names the board that was shown without a name: that is no other board.
  const first = useRef(slug);
  const key = first.current === "" && slug === seen ? "" : slug;
  return html`<${Board} key=${key} slug=${slug} open=${route.parts[1] ?? ""} styled=${ready} />`;
}

/**
 * `open` is the card whose drawer is open. The cards are loaded while the style sheet is.
 * @param {{ slug: string, open: string, styled: boolean }} props
 */
function Board({ slug, open, styled }) {
  const [filter, setFilter] = useState(/** @type {CardFilter} */ (EVERYTHING));
  const [clears, setClears] = useState(0);
  const [moving, setMoving] = useState(/** @type {ListedCard | null} */ (null));
  const [making, setMaking] = useState(false);
  const [goal, setGoal] = useState({ id: "", mark: 0 });
  const [said, setSaid] = useState("");
  const box = /** @type {Ref<HTMLElement>} */ (useElement());
  const news = useBusEvents("kanban.**");
  const board = useBoard(slug, filter, news);
  const { value } = board;
  useEffect(() => {
    if (value) kept.set("board", value.board.slug);
  }, [value?.board.slug]);
  const titles = useMemo(() => titlesOf(value), [value]);
  /** @param {string} id */
  const find = (id) =>
    value?.columns.flatMap((column) => column.cards).find((card) => card.id === id);
  const focused = () =>
    find(document.activeElement?.closest("[data-card]")?.getAttribute("data-card") ?? "");
  /**
   * @param {ListedCard} card
   * @param {CardStatus | undefined} status
   * @param {boolean} follow whether the focus goes with the card
   */
  const move = async (card, status, follow) => {
    if (!status || !may("chat")) return;
    const done = moveCard(board, card, status);
    const look = () => follow && setGoal(({ mark }) => ({ id: card.id, mark: mark + 1 }));
    look();
    if (await done)
      setSaid(t("Moved {card} to {column}.", { card: card.title, column: TITLES[status] }));
    look();
  };
  const onDrop = (/** @type {string} */ id, /** @type {CardStatus} */ status) => {
    const card = find(id);
    if (card) move(card, status, false);
  };
  const onMove = useCallback((/** @type {ListedCard} */ card) => setMoving(card), []);
  /** @param {number} step */
  const shift = (step) => () => {
    const card = focused();
    if (!card) return false;
    move(card, beside(card.status, step, filter.archived), true);
    return true;
  };
  useKeys([
    {
      keys: "n",
      label: t("New card"),
      group,
      icon: "plus",
      run: () => may("chat") && setMaking(true),
    },
    {
      keys: "m",
      label: t("Move the card"),
      group,
      run: () => {
        const card = focused();
        return card && may("chat") ? setMoving(card) : false;
      },
    },
    {
      keys: "Alt+ArrowLeft",
      label: t("Move the card to the previous column"),
      group,
      run: shift(-1),
    },
    { keys: "Alt+ArrowRight", label: t("Move the card to the next column"), group, run: shift(1) },
    { keys: "ArrowDown", label: t("Next card"), group, run: () => stepFocus(box.current, 0, 1) },
    { keys: "ArrowUp", label: t("Previous card"), group, run: () => stepFocus(box.current, 0, -1) },
    { keys: "ArrowRight", label: t("Next column"), group, run: () => stepFocus(box.current, 1, 0) },
    {
      keys: "ArrowLeft",
      label: t("Previous column"),
      group,
      run: () => stepFocus(box.current, -1, 0),
    },
  ]);
  const clear = () => {
    setFilter(EVERYTHING);
    setClears(clears + 1); // also the words that are being typed
  };
  const close = () => {
    navigate(pathTo("board", ...(slug ? [slug] : [])));
    setGoal(({ mark }) => ({ id: open, mark: mark + 1 })); // it may be in another column now
  };
  const pick = (/** @type {CardStatus} */ status) => {
    setMoving(null);
    if (moving) move(moving, status, true);
  };
  if (!styled) return null;
  return html`
    <div class="board" ref=${box}>
      <${BoardHead} key=${clears} board=${value} filter=${filter} onFilter=${setFilter}
        onNew=${() => setMaking(true)} />
      ${board.error && html`<${Problem} error=${board.error} retry=${board.again} />`}
      ${!value && !board.error && html`<${Loading} />`}
      ${value && isEmpty(value.counts) && html`<${FirstCard} onNew=${() => setMaking(true)} />`}
      ${
        value &&
        !isEmpty(value.counts) &&
        hasNoMatch(value, filter) &&
        html`<p class="board-state" role="status">${t("No card matches the filters.")}${" "}
          <button type="button" class="link" onClick=${clear}>${t("Show all cards")}</button></p>`
      }
      ${
        value &&
        !isEmpty(value.counts) &&
        html`<div class="board-columns" role="group" aria-label=${t("Columns")}>
        ${value.columns.map(
          (
            column,
          ) => html`<${Column} key=${column.status} column=${column} goal=${goal} titles=${titles}
          onDrop=${onDrop} onMove=${onMove} more=${board.more} />`,
        )}
      </div>`
      }
      <p class="unseen" role="status">${said}</p>
      ${moving && html`<${MoveDialog} card=${moving} onPick=${pick} onClose=${() => setMoving(null)} />`}
      ${making && value && html`<${CardForm} board=${value} onClose=${() => setMaking(false)} again=${board.again} />`}
      ${open && html`<${CardDrawer} key=${open} id=${open} board=${value} news=${news} onClose=${close} />`}
    </div>
  `;
}

/** @param {Record<string, number>} counts */
function isEmpty(counts) {
  return !Object.values(counts).some((number) => number > 0);
}

/**
 * Whether the filters leave nothing of a board.
 * @param {BoardColumns} board
 * @param {CardFilter} filter
 */
function hasNoMatch(board, filter) {
  const isFiltered = filter.query || filter.assignee || filter.label;
  return isFiltered && board.columns.every((column) => column.total === 0);
}

/** @param {{ onNew: () => void }} props */
function FirstCard({ onNew }) {
  return html`
    <${Empty} icon="board" title=${t("No cards yet")}>
      <p>${t("A card is a piece of work that an agent does by itself.")}${" "}
        ${t("Make one, and it runs as soon as it can; you can watch it, answer its questions and see what it costs.")}</p>
      ${
        may("approve") &&
        html`<p><button type="button" class="button primary" onClick=${onNew}>${t("Make the first card")}</button></p>`
      }
    <//>
  `;
}
