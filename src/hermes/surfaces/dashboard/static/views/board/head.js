// The head of a board: which board, what runs it, filters, and the ways to make cards and boards.
/** @import { BoardColumns, CardFilter, FieldEvent } from "../../types/page.d.ts" */

import { api, may } from "../../app/api.js";
import { Button, Words } from "../../app/parts/basics.js";
import { ask } from "../../app/parts/dialog.js";
import { tryTo } from "../../app/parts/toast.js";
import { navigate, pathTo } from "../../app/router.js";
import { t, withElements } from "../../app/translation.js";
import { html, useEffect, useState } from "../../app/ui.js";
import { Options, SearchBox } from "../inputs.js";
import { useLoaded } from "../loading.js";

const TYPING_MS = 200; // milliseconds

/**
 * @typedef {object} HeadProps
 * @property {BoardColumns | null} board
 * @property {CardFilter} filter
 * @property {(filter: CardFilter) => void} onFilter
 * @property {() => void} onNew
 */

/** @param {HeadProps} props */
export function BoardHead({ board, filter, onFilter, onNew }) {
  return html`
    <header class="board-head">
      <div class="board-line">
        <h1>${t("Board")}</h1>
        <${BoardSwitch} current=${board?.board.slug ?? ""} name=${board?.board.name ?? ""} />
        <span class="spring" />
        ${
          board &&
          may("approve") &&
          html`<${Button} kind="primary" icon="plus" title="n" onClick=${onNew}>${t("New card")}<//>`
        }
      </div>
      ${board && html`<${Filters} board=${board} filter=${filter} onFilter=${onFilter} />`}
      ${board && html`<${Dispatching} board=${board} />`}
    </header>
  `;
}

/** @param {{ current: string, name: string }} props */
function BoardSwitch({ current, name }) {
  const list = useLoaded(() => api.get("/api/commands/kanban.boards.list"), [current]);
  const known = (list.value?.boards ?? []).map(({ board }) => [board.slug, board.name]);
  const choices = known.some(([slug]) => slug === current) ? known : [[current, name], ...known];
  const make = async () => {
    const title = await ask({
      title: t("New board"),
      label: t("Name of the board"),
      action: t("Create"),
    });
    if (!title?.trim()) return;
    const before = new Set(known.map(([slug]) => slug));
    const done = await tryTo(() => api.post("/api/commands/kanban.boards.create", { name: title }));
    if (done === undefined) return;
    const { boards } = await api.get("/api/commands/kanban.boards.list");
    const made = boards.find(({ board }) => !before.has(board.slug));
    if (made) navigate(pathTo("board", made.board.slug));
  };
  return html`
    <select class="input board-switch" aria-label=${t("Board")} value=${current}
      onChange=${(/** @type {FieldEvent} */ event) => navigate(pathTo("board", event.target.value))}>
      <${Options} choices=${choices} value=${current} />
    </select>
    ${may("chat") && html`<${Button} kind="quiet" icon="plus" label=${t("New board")} onClick=${make} />`}
  `;
}

/** @param {{ board: BoardColumns, filter: CardFilter, onFilter: (filter: CardFilter) => void }} props */
function Filters({ board, filter, onFilter }) {
  const [words, setWords] = useState(filter.query);
  useEffect(() => {
    if (words === filter.query) return;
    const timer = setTimeout(() => onFilter({ ...filter, query: words }), TYPING_MS);
    return () => clearTimeout(timer);
  }, [words, filter]);
  const showArchived = (/** @type {FieldEvent} */ event) =>
    onFilter({ ...filter, archived: event.target.checked });
  /** @param {"assignee" | "label"} name */
  const set = (name) => (/** @type {FieldEvent} */ event) =>
    onFilter({ ...filter, query: words, [name]: event.target.value });
  /**
   * @param {"assignee" | "label"} name
   * @param {string} all
   * @param {string[]} found
   */
  const select = (name, all, found) => html`
    <select class="input" aria-label=${all} value=${filter[name]} onChange=${set(name)}>
      <${Options} choices=${[["", all], ...found.map((one) => [one, one])]} value=${filter[name]} />
    </select>
  `;
  return html`
    <div class="board-filters">
      <${SearchBox} label=${t("Search cards")} value=${words} onInput=${setWords} />
      ${select("assignee", t("All assignees"), board.assignees)}
      ${board.labels.length > 0 && select("label", t("All labels"), board.labels)}
      <label class="board-check"><input type="checkbox" checked=${filter.archived}
        onChange=${showArchived} />
        ${t("Archived")}</label>
    </div>
  `;
}

/**
 * Whether cards are being run, and why nothing runs.
 * @param {{ board: BoardColumns }} props
 */
function Dispatching({ board }) {
  const { dispatcher, running, max_running: most, idle } = board;
  if (!dispatcher)
    return html`<p class="board-state warn" role="status">
      <strong>${t("Nothing runs: no dispatcher is running.")}</strong>${" "}
      ${withElements(
        t("Start {gateway} or {kanban}, or turn on {setting} and restart the dashboard."),
        {
          gateway: html`<code>hermes gateway run</code>`,
          kanban: html`<code>hermes kanban run</code>`,
          setting: html`<code>boards.enabled</code>`,
        },
      )}</p>`;
  const words = t("Nothing runs on this board: {reason}.", { reason: idle });
  return html`<p class="board-state muted" role="status">
    ${t("Ready cards start by themselves. Running: {running} of at most {most}.", { running, most })}
    ${idle && html` <strong><${Words} text=${words} /></strong>`}</p>`;
}
