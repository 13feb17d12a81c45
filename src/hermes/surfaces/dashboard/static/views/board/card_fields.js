// The fields of a card that can be changed in its drawer. Each is saved by itself.
/** @import { CardDetails, Child, FieldEvent, RequestBody } from "../../types/page.d.ts" */
/** @import { Act } from "./drawer.js" */

import { api, may } from "../../app/api.js";
import { Button, Time } from "../../app/parts/basics.js";
import { duration } from "../../app/parts/format.js";
import { Markdown } from "../../app/parts/markdown.js";
import { t } from "../../app/translation.js";
import { html, useState } from "../../app/ui.js";
import { Options } from "../inputs.js";
import { useLoaded } from "../loading.js";

/** @typedef {Omit<RequestBody<"POST", "/api/commands/kanban.edit">, "card">} Changes */

/** @param {{ details: CardDetails, act: Act }} props */
export function CardFields({ details, act }) {
  const { card } = details;
  const agents = useLoaded(
    () => api.get("/api/commands/kanban.assignees", { board: card.board }),
    [card.board],
  );
  /** @param {Partial<Changes>} changes */
  const save = (changes) =>
    act(() =>
      api.post(
        "/api/commands/kanban.edit",
        /** @type {RequestBody<"POST", "/api/commands/kanban.edit">} */ ({
          card: card.id,
          ...changes,
        }),
      ),
    );
  const readOnly = !may("approve");
  const assignee = card.assignee;
  const known = (agents.value?.assignees ?? []).map(({ name }) => name);
  const names = known.includes(assignee) ? known : [assignee, ...known];
  /** @param {FieldEvent} event */
  const assign = (event) =>
    act(() =>
      api.post("/api/commands/kanban.assign", { card: card.id, agent: event.target.value }),
    );
  return html`
    <section class="stack tight" aria-label=${t("Card")}>
      <${TextField} label=${t("Title")} value=${card.title} readOnly=${readOnly}
        onSave=${(/** @type {string} */ title) => save({ title })} />
      <${Body} text=${card.body} readOnly=${readOnly} onSave=${(/** @type {string} */ body) => save({ body })} />
      <div class="board-fields">
        <label class="field"><span>${t("Assignee")}</span>
          <select class="input" value=${assignee} disabled=${readOnly} onChange=${assign}>
            <${Options} choices=${names.map((name) => [name, name])} value=${assignee} /></select></label>
        <${TextField} label=${t("Priority")} type="number" value=${String(card.priority)} readOnly=${readOnly}
          onSave=${(/** @type {string} */ text) => save({ priority: Number(text) })} />
        <${TextField} label=${t("Labels")} value=${card.labels.join(", ")} readOnly=${readOnly}
          placeholder=${t("words, separated by commas")} onSave=${(/** @type {string} */ labels) => save({ labels })} />
        <${TextField} label=${t("Not before")} value=${card.schedule} readOnly=${readOnly}
          placeholder=${t("such as tomorrow at 9")} onSave=${(/** @type {string} */ at) => save({ at })} />
      </div>
      <${MoreFacts} card=${card} />
    </section>
  `;
}

/**
 * @typedef {object} TextFieldProps
 * @property {string} label
 * @property {string} value
 * @property {boolean} readOnly
 * @property {string} [type]
 * @property {string} [placeholder]
 * @property {(text: string) => Promise<boolean>} onSave
 */

/**
 * A line of text, saved by Enter or by leaving it. What is typed is not lost when the card changes meanwhile.
 * @param {TextFieldProps} props
 */
function TextField({ label, value, readOnly, onSave, ...rest }) {
  const [draft, setDraft] = useState(/** @type {string | null} */ (null));
  const save = async () => {
    const text = draft?.trim();
    if (text === undefined || text === value) return setDraft(null);
    if (await onSave(text)) setDraft(null);
  };
  /** @param {KeyboardEvent & { target: HTMLElement }} event */
  const onKeyDown = (event) => {
    if (event.key === "Enter") save();
    if (event.key !== "Escape" || draft === null) return;
    event.preventDefault(); // the drawer stays open
    setDraft(null);
  };
  return html`<label class="field"><span>${label}</span>
    <input class="input" value=${draft ?? value} readonly=${readOnly} autocomplete="off" ...${rest}
      onInput=${(/** @type {FieldEvent} */ event) => setDraft(event.target.value)}
      onBlur=${save} onKeyDown=${onKeyDown} /></label>`;
}

/** @param {{ text: string, readOnly: boolean, onSave: (text: string) => Promise<boolean> }} props */
function Body({ text, readOnly, onSave }) {
  const [draft, setDraft] = useState(/** @type {string | null} */ (null));
  const save = async () => {
    if (draft === text || (await onSave(draft ?? ""))) setDraft(null);
  };
  if (draft === null)
    return html`<div class="field"><span>${t("Details")}</span>
      <div class="board-body">${
        text
          ? html`<${Markdown} text=${text} />`
          : html`<p
        class="muted">${t("No details yet.")}</p>`
      }
        ${
          !readOnly &&
          html`<${Button} icon="edit" onClick=${() => setDraft(text)}>${t("Edit details")}<//>`
        }</div></div>`;
  return html`<div class="stack tight">
    <label class="field"><span>${t("Details")}</span><textarea class="input" rows="8" value=${draft} autofocus
      onInput=${(/** @type {FieldEvent} */ event) => setDraft(event.target.value)}></textarea></label>
    <div class="row end"><${Button} kind="quiet" onClick=${() => setDraft(null)}>${t("Cancel")}<//>
      <${Button} kind="primary" onClick=${save}>${t("Save details")}<//></div>
  </div>`;
}

/** @param {{ card: CardDetails["card"] }} props */
function MoreFacts({ card }) {
  /** @type {[string, Child][]} */
  const facts = [
    [t("Workspace"), card.workspace || t("as the board says")],
    [t("Branch"), card.branch],
    [t("Model"), card.model],
    [t("Budget"), card.budget],
    [t("Time limit"), card.time_limit ? duration(card.time_limit) : ""],
    [
      t("Bad runs"),
      card.retries ? t("blocked after {number} in a row", { number: card.retries }) : "",
    ],
    [t("Starts"), card.due ? html`<${Time} at=${card.due} />` : ""],
    [t("Reviewer"), card.reviewer],
    [t("Tenant"), card.tenant],
  ];
  return html`<dl class="facts">${facts
    .filter(([, value]) => value)
    .map(
      ([name, value]) => html`<dt key=${`${name}-name`}>${name}</dt><dd key=${name}>${value}</dd>`,
    )}</dl>`;
}
