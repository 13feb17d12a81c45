// What can be done with a card, by its status.
/** @import { CardDetails, CardStatus, FieldEvent } from "../../types/page.d.ts" */
/** @import { Act } from "./drawer.js" */

import { api } from "../../app/api.js";
import { Button } from "../../app/parts/basics.js";
import { ask, confirm } from "../../app/parts/dialog.js";
import { t } from "../../app/translation.js";
import { html, useState } from "../../app/ui.js";
import { Options } from "../inputs.js";
import { COLUMNS } from "./labels.js";
import { reasonFor } from "./moving.js";

/** @typedef {{ name: string, icon: string, run: () => Promise<unknown>, kind?: string }} CardAction */

/**
 * Asks for a line of text, then sends it. Nothing is sent if the user changed their mind.
 * @param {string} title
 * @param {string} action
 * @param {(text: string) => Promise<unknown>} send
 * @param {string} [text]
 */
async function withWords(title, action, send, text = "") {
  const words = await ask({ title, action, text });
  return words === null ? undefined : send(words.trim());
}

/** @param {{ details: CardDetails, act: Act }} props */
export function CardActions({ details, act }) {
  const [busy, setBusy] = useState("");
  const { card } = details;
  /** @param {CardAction} action */
  const start = async ({ name, run }) => {
    setBusy(name);
    await act(run);
    setBusy("");
  };
  /** @param {CardStatus} status */
  const moveTo = async (status) => {
    const reason = await reasonFor(card.title, status);
    if (reason === null) return;
    await act(() => api.post("/api/commands/kanban.move", { card: card.id, status, reason }));
  };
  const choices = COLUMNS.filter(([name]) => name !== "running" || card.status === "running");
  return html`
    <div class="board-actions" role="group" aria-label=${t("Actions")}>
      ${actionsOf(details).map(
        (action) => html`<${Button} key=${action.name} icon=${action.icon} kind=${action.kind ?? ""}
        busy=${busy === action.name} disabled=${busy !== ""} onClick=${() => start(action)}>${action.name}<//>`,
      )}
      <label class="board-move-to"><span>${t("Move to")}</span>
        <select class="input" value=${card.status}
          onChange=${(/** @type {FieldEvent} */ event) => moveTo(/** @type {CardStatus} */ (event.target.value))}>
          <${Options} choices=${choices} value=${card.status} />
        </select>
      </label>
    </div>
  `;
}

/**
 * @param {CardDetails} details
 * @returns {CardAction[]}
 */
function actionsOf({ card }) {
  const id = card.id;
  const { status } = card;
  const over = status === "done" || status === "archived";
  const waits = ["triage", "todo", "ready", "blocked"].includes(status);
  /** @type {(CardAction | false)[]} */
  const all = [
    status === "running" && {
      name: t("Stop"),
      icon: "stop",
      run: () => api.post("/api/commands/kanban.stop", { card: id }),
    },
    status === "review" && {
      name: t("Request changes"),
      icon: "undo",
      run: () =>
        withWords(t("What should be changed?"), t("Send back"), (reason) =>
          api.post("/api/commands/kanban.request-changes", { card: id, reason }),
        ),
    },
    status === "blocked" && {
      name: t("Unblock"),
      icon: "play",
      run: () =>
        withWords(
          t("Unblock"),
          t("Unblock"),
          (comment) => api.post("/api/commands/kanban.unblock", { card: id, comment }),
          t("What should the worker know? You can leave it empty."),
        ),
    },
    canStart(card) && { name: t("Run now"), icon: "bolt", run: () => runNow(card) },
    !over && {
      name: t("Complete"),
      icon: "check",
      run: () =>
        withWords(
          t("Complete"),
          t("Complete"),
          (summary) => api.post("/api/commands/kanban.complete", { card: id, summary }),
          t("What was done? You can leave it empty."),
        ),
    },
    !over &&
      status !== "review" && {
        name: t("Request review"),
        icon: "eye",
        run: () =>
          withWords(t("What should be reviewed?"), t("Request review"), (summary) =>
            api.post("/api/commands/kanban.request-review", { card: id, summary }),
          ),
      },
    !over &&
      status !== "blocked" && {
        name: t("Block"),
        icon: "pause",
        run: () =>
          withWords(t("Why is it blocked?"), t("Block"), (reason) =>
            api.post("/api/commands/kanban.block", { card: id, reason }),
          ),
      },
    waits && {
      name: t("Specify"),
      icon: "thought",
      run: () => api.post("/api/commands/kanban.specify", { card: id }),
    },
    waits && {
      name: t("Decompose"),
      icon: "branch",
      run: () => api.post("/api/commands/kanban.decompose", { card: id }),
    },
    status !== "archived" && {
      name: t("Archive"),
      icon: "folder",
      kind: "danger",
      run: () => archive(card.title, id),
    },
  ];
  return all.filter((action) => action !== false);
}

/**
 * Whether something but the queue keeps a card from starting.
 * @param {CardDetails["card"]} card
 */
function canStart(card) {
  if (card.status === "ready") return card.due * 1000 > Date.now();
  return card.status === "triage" || card.status === "todo";
}

/**
 * Removes what keeps a card from starting: its time, or that it is not ready.
 * @param {CardDetails["card"]} card
 */
async function runNow(card) {
  if (card.due * 1000 > Date.now())
    await api.post("/api/commands/kanban.schedule", { card: card.id, when: "off" });
  if (card.status !== "ready")
    await api.post("/api/commands/kanban.move", { card: card.id, status: "ready" });
}

/**
 * @param {string} title
 * @param {string} card
 */
async function archive(title, card) {
  const sure = await confirm({
    title: t("Archive “{card}”?", { card: title }),
    text: t("Cards that wait for this one no longer wait. You can find this card under Archived."),
    action: t("Archive card"),
    danger: true,
  });
  if (sure) await api.post("/api/commands/kanban.archive", { card });
}
