// The form that makes a card.
/** @import { BoardColumns, Failure, FieldEvent, RequestBody } from "../../types/page.d.ts" */

import { api, asFailure } from "../../app/api.js";
import { Button } from "../../app/parts/basics.js";
import { Dialog } from "../../app/parts/dialog.js";
import { t } from "../../app/translation.js";
import { html, useState } from "../../app/ui.js";
import { FieldError, Options } from "../inputs.js";
import { useLoaded } from "../loading.js";
import { CardPicker, titleOf } from "./card_picker.js";

/** @typedef {RequestBody<"POST", "/api/commands/kanban.create">} NewCard */

const EMPTY = {
  title: "",
  body: "",
  assignee: "",
  priority: "",
  labels: "",
  place: "",
  path: "",
  budget: "",
  time_limit: "",
  retries: "",
  at: "",
  start: "",
};
const PLACES = [
  ["", t("As the board says")],
  ["scratch", t("A scratch folder of its own")],
  ["dir", t("A folder")],
  ["worktree", t("A copy of a git repository")],
];
const STARTS = [
  ["", t("As soon as possible")],
  ["hold", t("When I say so (To do)")],
  ["triage", t("It is a rough idea (Triage)")],
];

/** @param {{ board: BoardColumns, onClose: () => void, again: () => Promise<void> }} props */
export function CardForm({ board, onClose, again }) {
  const [now, setNow] = useState(EMPTY);
  const [parents, setParents] = useState(/** @type {string[]} */ ([]));
  const [error, setError] = useState(/** @type {Failure | null} */ (null));
  const [busy, setBusy] = useState(false);
  const slug = board.board.slug;
  const agents = useLoaded(
    () => api.get("/api/commands/kanban.assignees", { board: slug }),
    [slug],
  );
  /** @param {keyof typeof EMPTY} name */
  const set = (name) => (/** @type {FieldEvent} */ event) =>
    setNow((before) => ({ ...before, [name]: event.target.value }));
  /** @param {string} id */
  const addParent = (id) => setParents([...new Set([...parents, id])]);
  /** @param {Event} event */
  const save = async (event) => {
    event.preventDefault();
    if (busy) return;
    setBusy(true);
    try {
      await api.post("/api/commands/kanban.create", asked(now, parents, slug));
      await again();
      onClose();
    } catch (wrong) {
      setError(asFailure(wrong));
      setBusy(false);
    }
  };
  /**
   * @param {keyof typeof EMPTY} name
   * @param {string} label
   * @param {object} [more]
   */
  const field = (name, label, more = {}) => html`<label class="field"><span>${label}</span>
    <input class="input" name=${name} value=${now[name]} onInput=${set(name)} autocomplete="off" ...${more} /></label>`;
  /**
   * @param {keyof typeof EMPTY} name
   * @param {string} label
   * @param {string[][]} choices
   */
  const select = (name, label, choices) => html`<label class="field"><span>${label}</span>
    <select class="input" name=${name} value=${now[name]} onChange=${set(name)}>
      <${Options} choices=${choices} value=${now[name]} /></select></label>`;
  const who = (agents.value?.assignees ?? []).map(({ name }) => [name, name]);
  return html`
    <${Dialog} title=${t("New card")} class="wide" onClose=${onClose}>
      <form class="stack" onSubmit=${save}>
        ${field("title", t("What to do, in a few words"), { required: true, autofocus: true, maxlength: 500 })}
        <label class="field"><span>${t("Details")}</span><textarea class="input" name="body" rows="4" value=${now.body}
          onInput=${set("body")} placeholder=${t("Everything the worker needs to know. Markdown.")}></textarea></label>
        <div class="board-fields">
          ${select("start", t("Start"), STARTS)}
          ${select("assignee", t("Assignee"), [["", t("As the settings say")], ...who])}
          ${field("priority", t("Priority"), {
            type: "number",
            step: 1,
            placeholder: t("0; the highest starts first"),
          })}
          ${field("labels", t("Labels"), { placeholder: t("words, separated by commas") })}
        </div>
        <fieldset class="board-parents">
          <legend>${t("Waits for")}</legend>
          ${
            parents.length > 0 &&
            html`<ul class="chips plain-chips">${parents.map(
              (id) => html`<li key=${id} class="board-chip">${titleOf(board, id)}
              <${Button} kind="quiet" icon="close" label=${t("Don't wait for {card}", { card: titleOf(board, id) })}
                onClick=${() => setParents(parents.filter((one) => one !== id))} /></li>`,
            )}</ul>`
          }
          <${CardPicker} board=${board} label=${t("Card that must be done first")} without=${parents}
            onPick=${addParent} />
        </fieldset>
        <details class="fold"><summary>${t("Workspace, limits and time")}</summary>
          <div class="board-fields">
            ${select("place", t("Workspace"), PLACES)}
            ${
              ["dir", "worktree"].includes(now.place) &&
              field("path", t("Path"), { required: true, placeholder: "~/code/app" })
            }
            ${field("budget", t("Budget for all runs"), { placeholder: t("such as $2 or 500k tokens") })}
            ${field("time_limit", t("Time limit of a run"), { placeholder: t("such as 2h") })}
            ${field("retries", t("Failed runs before it is blocked"), {
              type: "number",
              min: 0,
              placeholder: t("as in the settings"),
            })}
            ${field("at", t("Not before"), { placeholder: t("such as tomorrow at 9") })}
          </div>
        </details>
        ${error && html`<${FieldError} error=${error} />`}
        <div class="row end">
          <${Button} kind="quiet" onClick=${onClose}>${t("Cancel")}<//>
          <button type="submit" class="button primary" disabled=${busy} aria-busy=${busy ? "true" : undefined}>
            ${t("Create card")}</button>
        </div>
      </form>
    <//>
  `;
}

/**
 * What is sent: only what was filled in.
 * @param {typeof EMPTY} form
 * @param {string[]} parents
 * @param {string} board
 * @returns {NewCard}
 */
function asked({ place, path, start, priority, retries, title, ...texts }, parents, board) {
  const given = Object.entries(texts).filter(([, text]) => text.trim());
  return /** @type {NewCard} */ ({
    title,
    board,
    ...Object.fromEntries(given),
    ...(priority && { priority: Number(priority) }),
    ...(retries && { retries: Number(retries) }),
    ...(place && { workspace: path ? `${place}:${path.trim()}` : place }),
    ...(parents.length && { parents: parents.join(",") }),
    ...(start && { [start]: true }),
  });
}
