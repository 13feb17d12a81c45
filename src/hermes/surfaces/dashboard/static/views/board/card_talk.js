// Comments, files and the history of a card.
/** @import { CardDetails, CardHistoryEntry, FieldEvent } from "../../types/page.d.ts" */
/** @import { Act } from "./drawer.js" */

import { address, api, may } from "../../app/api.js";
import { Icon, Time } from "../../app/parts/basics.js";
import { size } from "../../app/parts/format.js";
import { Markdown } from "../../app/parts/markdown.js";
import { t } from "../../app/translation.js";
import { html, useState } from "../../app/ui.js";
import { happened } from "./labels.js";

/** @param {{ details: CardDetails, act: Act }} props */
export function Comments({ details, act }) {
  const [text, setText] = useState("");
  const { card, comments } = details;
  /** @param {Event} event */
  const send = async (event) => {
    event.preventDefault();
    if (!text.trim()) return;
    const sent = await act(() => api.post("/api/commands/kanban.comment", { card: card.id, text }));
    if (sent) setText("");
  };
  return html`
    <section aria-label=${t("Comments")}>
      <h3 class="section-title">${t("Comments")}</h3>
      <ul class="plain">
        ${comments.map(
          (one) => html`<li key=${one.id} class="board-comment">
          <p class="muted small">${one.by || t("user")}, <${Time} at=${one.ts} /></p>
          <${Markdown} text=${one.text} /></li>`,
        )}
      </ul>
      ${
        may("chat") &&
        html`<form class="board-say" onSubmit=${send}>
        <textarea class="input" rows="2" aria-label=${t("Comment")} value=${text}
          placeholder=${t("The next run reads it.")}
          onInput=${(/** @type {FieldEvent} */ event) => setText(event.target.value)}></textarea>
        <button type="submit" class="button" disabled=${!text.trim()}>${t("Add comment")}</button>
      </form>`
      }
    </section>
  `;
}

/** @param {{ details: CardDetails, act: Act }} props */
export function Attachments({ details, act }) {
  const { card, attachments } = details;
  /** @param {FieldEvent} event */
  const add = async (event) => {
    const field = event.target;
    const file = field.files?.[0];
    if (!file) return;
    const path = /** @type {`/api/kanban/cards/${string}/attachments`} */ (
      `/api/kanban/cards/${encodeURIComponent(card.id)}/attachments`
    );
    await act(() => api.upload(path, { name: file.name }, file));
    field.value = "";
  };
  if (!attachments.length && !may("chat")) return null;
  return html`
    <section aria-label=${t("Files")}>
      <h3 class="section-title">${t("Files")}</h3>
      <ul class="plain">
        ${attachments.map(
          (file) => html`<li key=${file.id} class="row small"><${Icon} name="file" size=${16} />
          <a
            class="grow"
            href=${address(`/api/kanban/attachments/${encodeURIComponent(file.id)}`)}
            download=${file.name}>${file.name}</a>
          <span class="muted">${size(file.size)}</span></li>`,
        )}
      </ul>
      ${
        may("chat") &&
        html`<label class="button board-attach"><${Icon} name="attach" />${t("Attach a file")}
        <input type="file" class="unseen" onChange=${add} /></label>`
      }
    </section>
  `;
}

/** @param {{ entries: CardHistoryEntry[] }} props */
export function CardHistory({ entries }) {
  const newest = [...entries].sort((one, other) => other.id - one.id);
  return html`
    <details class="fold"><summary>${t("History")}</summary>
      <ol class="plain board-history">
        ${newest.map(
          (
            entry,
          ) => html`<li key=${entry.id} class="small"><span class="muted"><${Time} at=${entry.ts} />
          ${` ${entry.data.by ?? ""}`}</span> ${happened(entry)}</li>`,
        )}
      </ol>
    </details>
  `;
}
