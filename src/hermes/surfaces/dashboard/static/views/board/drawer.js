// The drawer of a card: what it is, what it waits for, its runs, comments, files and history, and what can be done.
/** @import { BoardColumns, CardDetails, Failure, HermesEvent } from "../../types/page.d.ts" */
/** @import { Store } from "../../app/ui.js" */

import { api, asFailure, may } from "../../app/api.js";
import { Icon, Tag, Time, Words } from "../../app/parts/basics.js";
import { Copy } from "../../app/parts/copy.js";
import { Dialog } from "../../app/parts/dialog.js";
import { linkTo } from "../../app/router.js";
import { t, withElements } from "../../app/translation.js";
import { html, useState } from "../../app/ui.js";
import { FieldError } from "../inputs.js";
import { useLiveReload } from "../live_reload.js";
import { useLoaded, whenLoaded } from "../loading.js";
import { CardActions } from "./card_actions.js";
import { CardFields } from "./card_fields.js";
import { CardPicker } from "./card_picker.js";
import { CardRuns } from "./card_runs.js";
import { Attachments, CardHistory, Comments } from "./card_talk.js";
import { readable, STATUS_KIND, TITLES, whyOf } from "./labels.js";

const USUAL = /** @type {const} */ ({
  status: "todo",
  body: "",
  assignee: "hermes",
  priority: 0,
  labels: [],
  schedule: "",
  due: 0,
});

/** @typedef {(work: () => Promise<unknown>) => Promise<boolean>} Act */

/**
 * @typedef {object} DrawerProps
 * @property {string} id
 * @property {BoardColumns | null} board
 * @property {Store<HermesEvent[]>} news
 * @property {() => void} onClose
 */

/** @param {DrawerProps} props */
export function CardDrawer({ id, board, news, onClose }) {
  const found = useLoaded(() => readCard(id), [id]);
  const [refusal, setRefusal] = useState(/** @type {Failure | null} */ (null));
  useLiveReload(news, (event) => !("card" in event) || event.card === id, found.again);
  /** @type {Act} */
  const act = async (work) => {
    setRefusal(null);
    try {
      await work();
      return true;
    } catch (error) {
      setRefusal(asFailure(error));
      return false;
    } finally {
      await found.again();
    }
  };
  const title = found.value?.card.title ?? t("Card");
  return html`
    <${Dialog} title=${title} class="board-drawer" onClose=${onClose}>
      ${whenLoaded(
        found,
        (details) => html`<div class="stack">
        <${State} details=${details} />
        ${refusal && html`<${FieldError} error=${inTitles(refusal, details)} />`}
        ${may("approve") && html`<${CardActions} key=${details.card.status} details=${details} act=${act} />`}
        <${CardFields} details=${details} act=${act} />
        <${Dependencies} details=${details} board=${board} act=${act} />
        <${CardRuns} runs=${details.runs} />
        <${Comments} details=${details} act=${act} />
        <${Attachments} details=${details} act=${act} />
        <${CardHistory} entries=${details.history} />
      </div>`,
      )}
    <//>
  `;
}

/**
 * A card with all its fields: the server leaves out those with their usual value.
 * @param {string} id
 */
async function readCard(id) {
  const details = await api.get("/api/commands/kanban.show", { card: id });
  return { ...details, card: { ...USUAL, ...details.card } };
}

/** @param {CardDetails} details */
function titlesAround({ card, parents, children }) {
  return new Map([card, ...parents, ...children].map((one) => [one.id, one.title]));
}

/**
 * @param {Failure} refusal
 * @param {CardDetails} details
 */
function inTitles({ message, hint }, details) {
  return { message: readable(message, titlesAround(details)), hint };
}

/** @param {{ details: CardDetails }} props */
function State({ details }) {
  const { card } = details;
  const why = whyOf(details, titlesAround(details));
  const asking = details.asks && details.runs.find((run) => run.outcome === "running")?.session;
  return html`
    <div class="board-drawer-state">
      <div class="row wrap">
        <${Tag} kind=${STATUS_KIND[card.status] ?? ""}>${TITLES[card.status]}<//>
        <code class="muted">${card.id}</code><${Copy} text=${card.id} label=${t("Copy the id")} />
        <span class="spring" />
        <span class="muted small">
          ${withElements(card.by ? t("made {time} by {who}") : t("made {time}"), {
            time: html`<${Time} at=${card.created} />`,
            who: card.by,
          })}</span>
      </div>
      ${why && html`<p class="small"><${Words} text=${why} /></p>`}
      ${asking && html`<p><a class="button primary" href=${linkTo("chat", asking)}>${t("Answer")}</a></p>`}
      ${
        card.last_error &&
        card.failures > 0 &&
        html`<p
        class="small board-error">${t("Last error: {error}", { error: card.last_error })}</p>`
      }
      ${card.result && html`<p class="small pre">${t("Result: {result}", { result: card.result })}</p>`}
    </div>
  `;
}

/** @param {{ details: CardDetails, board: BoardColumns | null, act: Act }} props */
function Dependencies({ details, board, act }) {
  const { card, parents, children } = details;
  if (!may("chat") && !parents.length && !children.length) return null;
  /**
   * @param {CardDetails["parents"][number]} other
   * @param {(() => unknown) | null} remove
   */
  const chip = (other, remove) => html`
    <li key=${other.id} class="board-chip">
      <a href=${linkTo("board", other.board, other.id)}>${other.title}</a>
      <${Tag} kind=${STATUS_KIND[other.status] ?? ""}>${TITLES[other.status]}<//>
      ${
        remove &&
        html`<button type="button" class="button quiet bare" 
        aria-label=${t("Don't wait for {card}", { card: other.title })}
        title=${t("Remove")} onClick=${remove}><${Icon} name="close" size=${16} /></button>`
      }
    </li>
  `;
  /** @param {string} parent */
  const unlink = (parent) => () =>
    act(() => api.post("/api/commands/kanban.unlink", { parent, child: card.id }));
  /** @param {string} parent */
  const link = (parent) =>
    act(() => api.post("/api/commands/kanban.link", { parent, child: card.id }));
  const taken = [card.id, ...parents.map((one) => one.id), ...children.map((one) => one.id)];
  return html`
    <section aria-label=${t("Dependencies")}>
      <h3 class="section-title">${t("Waits for")}</h3>
      ${
        parents.length > 0 &&
        html`<ul class="chips plain-chips">${parents.map((one) =>
          chip(one, may("approve") ? unlink(one.id) : null),
        )}</ul>`
      }
      ${
        may("chat") &&
        html`<${CardPicker} board=${board} label=${t("Card to wait for")} without=${taken} onPick=${link} />`
      }
      ${
        children.length > 0 &&
        html`<h3 class="section-title">${t("Cards that wait for this one")}</h3>
        <ul class="chips plain-chips">${children.map((one) => chip(one, null))}</ul>`
      }
    </section>
  `;
}
