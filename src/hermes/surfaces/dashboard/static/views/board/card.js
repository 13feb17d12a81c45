// A card in its column. All cards have the same height, so that long columns draw only what is visible.
/** @import { ListedCard } from "../../types/page.d.ts" */

import { may } from "../../app/api.js";
import { Button, Icon, Tag } from "../../app/parts/basics.js";
import { duration, money } from "../../app/parts/format.js";
import { linkTo } from "../../app/router.js";
import { t } from "../../app/translation.js";
import { html, useEffect, useState } from "../../app/ui.js";
import { whyOf } from "./labels.js";
import { DRAGGED } from "./moving.js";

/** Pixels from one card to the next; the style sheet says the same. */
export const CARD_HEIGHT = 146;
const MAX_LABELS = 2;
const SHORT_LABEL_CHARS = 6; // labels up to this are never cut off
const TICK_MS = 1000; // milliseconds

/**
 * `titles` are those of the cards that the page knows, by id.
 * @param {{ card: ListedCard, titles: Map<string, string>, onMove: (card: ListedCard) => void }} props
 */
export function BoardCard({ card, titles, onMove }) {
  const why = whyOf(card, titles);
  const [dragged, setDragged] = useState(false);
  const movable = may("approve");
  /** @param {DragEvent} event */
  const take = (event) => {
    if (!event.dataTransfer) return;
    event.dataTransfer.setData(DRAGGED, card.id);
    event.dataTransfer.setData("text/plain", `${card.id} ${card.title}`);
    event.dataTransfer.effectAllowed = "move";
    setDragged(true);
  };
  const labels = card.labels.slice(0, MAX_LABELS);
  return html`
    <div class="board-slot">
      <article
        class=${`board-card ${dragged ? "dragged" : ""}`}
        data-card=${card.id}
        draggable=${movable}
        onDragStart=${take}
        onDragEnd=${() => setDragged(false)}
      >
        <a class="board-card-title" draggable=${false} href=${linkTo("board", card.board, card.id)}
          aria-describedby=${why ? `why-${card.id}` : undefined}>${card.title}</a>
        ${
          (labels.length > 0 || card.priority !== 0) &&
          html`<div class="board-labels">
            ${
              card.priority !== 0 &&
              html`<${Tag} class=${`tag fixed ${card.priority > 0 ? "accent" : ""}`}
                title=${t("Priority")}>P${card.priority}<//>`
            }
            ${labels.map(
              (label) => html`<${Tag} key=${label} title=${label}
              class=${`tag ${label.length > SHORT_LABEL_CHARS ? "" : "fixed"}`}>${label}<//>`,
            )}
            ${
              card.labels.length > MAX_LABELS &&
              html`<${Tag} class="tag fixed">+${card.labels.length - MAX_LABELS}<//>`
            }
          </div>`
        }
        <p class="board-why" id=${`why-${card.id}`} title=${why}>${why}</p>
        ${
          card.asks &&
          card.session &&
          html`<a class="board-answer small" draggable=${false} href=${linkTo("chat", card.session)}>${t("Answer")}</a>`
        }
        <div class="board-card-foot">
          <span class="board-who">${card.assignee}</span>
          ${card.status === "running" && card.since > 0 && html`<${Spent} card=${card} />`}
          <span class="spring" />
          ${
            card.failures > 0 &&
            html`<${Fact} icon="warn" number=${card.failures}
              label=${t("bad run in a row", "bad runs in a row", { count: card.failures })} />`
          }
          ${
            card.parents.length > 0 &&
            html`<${Fact} icon="link" number=${card.parents.length}
              label=${t("parent", "parents", { count: card.parents.length })} />`
          }
          ${
            card.comments > 0 &&
            html`<${Fact} icon="chat" number=${card.comments}
              label=${t("comment", "comments", { count: card.comments })} />`
          }
          ${
            card.attachments > 0 &&
            html`<${Fact} icon="attach" number=${card.attachments}
              label=${t("file", "files", { count: card.attachments })} />`
          }
          ${
            movable &&
            html`<${Button} kind="quiet" class="board-move" icon="more" label=${t("Move {card}", { card: card.title })}
            title=${t("Move (m)")} onClick=${() => onMove(card)} />`
          }
        </div>
      </article>
    </div>
  `;
}

/** @param {{ icon: string, number: number, label: string }} props */
function Fact({ icon, number, label }) {
  return html`<span class="board-fact" title=${label}><${Icon} name=${icon} size=${14} />${number}
    <span class="unseen">${label}</span></span>`;
}

/**
 * How long a card has run, and what that cost.
 * @param {{ card: ListedCard }} props
 */
function Spent({ card }) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), TICK_MS);
    return () => clearInterval(timer);
  }, []);
  const seconds = Math.max(1, Math.round(now / 1000 - card.since));
  const cost = card.cost_usd > 0 && ` · ${money(card.cost_usd)}`;
  return html`<span class="board-spent">${duration(seconds)}${cost}</span>`;
}
