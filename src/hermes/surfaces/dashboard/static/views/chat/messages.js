// The message list: draws the newest items, older ones on demand, and stays at the end while the reader is there.
/**
 * @import {
 *   Goal, ItemContext, Message, OpenQuestion, Transcript, TranscriptRow, UndoneRow,
 * } from "../../types/page.d.ts"
 */
/** @import { Conversation } from "./conversation.js" */
/** @import { Outbox } from "./outbox.js" */

import { Button, Icon } from "../../app/parts.js";
import { waiting } from "../../app/pending_requests.js";
import { t } from "../../app/translation.js";
import { html, useEffect, useMemo, useRef, useStore } from "../../app/ui.js";
import { CallGroup, groupCalls } from "./call_groups.js";
import { Item, Live, Unsent } from "./items.js";
import { Approval, Question } from "./requests.js";
import { openQuestion, openRequests } from "./transcript.js";
import { useVisibleRows } from "./visible_rows.js";

/**
 * @typedef {object} MessagesProps
 * @property {Conversation} conversation
 * @property {ItemContext} context
 * @property {(message: Message) => void} onEdit
 * @property {Goal | null} [goal]
 */

/**
 * @typedef {object} ComingProps
 * @property {Transcript} state
 * @property {ItemContext} context
 * @property {OpenQuestion | null} question
 * @property {boolean} isAsked
 * @property {Message[]} unsent
 * @property {Outbox} outbox
 * @property {(message: Message) => void} onEdit
 */

/** @param {MessagesProps} props */
export function Messages({ conversation, context, onEdit, goal = null }) {
  const state = useStore(conversation.transcript);
  const unsent = useStore(conversation.outbox.messages);
  const rows = useMemo(
    () => groupCalls(groupUndone(state.items.filter((item) => !waits(item)))),
    [state.items],
  );
  const reading = useVisibleRows(rows, {
    first: state.first,
    read: (seq) => conversation.earlier(seq),
    goal,
  });
  const { away, busy, jump } = reading;
  useOnIncrease(unsent.length, jump); // the user wants to see their own message
  const open = openRequests(state);
  const question = openQuestion(state, useStore(waiting));
  const lastReply = state.items.findLast((item) => item.kind === "assistant" && !item.undone);
  const last = state.turn ? null : lastReply;
  const { drawn } = reading;
  const list = useMemo(
    () =>
      drawn.map(
        (row) => html`<div class="item" key=${row.key} data-key=${row.key}>
    ${
      "isCalls" in row
        ? html`<${CallGroup} calls=${row.group} context=${context} />`
        : "group" in row
          ? html`<${UndoneMessages} items=${row.group} context=${context} />`
          : html`<${Item} item=${row} context=${context} first=${isCall(row, question?.call)}
        last=${row === last} />`
    }</div>`,
      ),
    [rows, drawn[0], drawn.length, context, question?.call, last],
  );
  return html`<div class="scroll" ref=${reading.box} tabindex="0" role="log" aria-label=${t("Conversation")}
    aria-live=${away ? "off" : "polite"} aria-relevant="additions">
    <div class="transcript" ref=${reading.inner}>
      ${
        !reading.isBegin &&
        html`<div class="row earlier" ref=${reading.top}><${Button} kind="quiet" busy=${busy}
        onClick=${reading.earlier}>${t("Show earlier messages")}<//></div>`
      }
      ${list}
      ${
        reading.isEnd
          ? html`<${LiveAndQueued} state=${state} context=${context} question=${question}
        isAsked=${open.length > 0} unsent=${unsent} outbox=${conversation.outbox} onEdit=${onEdit} />`
          : html`<div ref=${reading.bottom} />`
      }
    </div>
    ${
      away
        ? html`<${Button} class="jump" icon="bottom" onClick=${jump}>${t("Latest")}<//>`
        : busy && html`<${Button} class="jump" busy>${t("Loading earlier messages")}<//>`
    }
  </div>`;
}

/**
 * Below the rows: the streamed reply, queued messages, questions of other sessions, unsent messages.
 * @param {ComingProps} props
 */
function LiveAndQueued({ state, context, question, isAsked, unsent, outbox, onEdit }) {
  const elsewhere = useStore(waiting).filter(
    (one) => one.session_id !== state.session && one.root_session_id === state.session,
  );
  return html`${state.turn && !isAsked && html`<${Live} live=${state.live} since=${state.stepSince} />`}
    ${state.items
      .filter((item) => waits(item) && !("withdrawn" in item && item.withdrawn))
      .map(
        (item) => html`<div class="item" key=${item.key}><${Item} item=${item}
      context=${context} /></div>`,
      )}
    ${elsewhere.map(
      (one) => html`<div class="item tool waiting" key=${`${one.session_id} ${one.call_id}`}>
      ${
        one.kind === "approval"
          ? html`<${Approval} request=${one} session=${one.session_id} cwd=${context.cwd}
        from=${one.title || t("a child session")} />`
          : html`<${Question} question=${one} session=${one.session_id} first=${one.call_id === question?.call}
            from=${one.title || t("a child session")} />`
      }</div>`,
    )}
    ${unsent.map(
      (message) => html`<${Unsent} key=${message.key} message=${message} outbox=${outbox}
      onEdit=${onEdit} />`,
    )}`;
}

/**
 * @param {TranscriptRow} item
 * @param {string | undefined} call
 */
function isCall(item, call) {
  return item.kind === "tool" && item.call === call;
}

/**
 * Does something whenever a number has become larger.
 * @param {number} number
 * @param {() => void} act
 */
function useOnIncrease(number, act) {
  const before = useRef(number);
  useEffect(() => {
    if (number > before.current) act();
    before.current = number;
  }, [number]);
}

/**
 * Messages that no turn has read yet are shown below the streamed reply.
 * @param {TranscriptRow} item
 */
function waits(item) {
  return item.kind === "user" && !item.taken && item.origin === "user";
}

/**
 * Items, with each group of undone ones in one row.
 * @param {TranscriptRow[]} items
 */
function groupUndone(items) {
  /** @type {(TranscriptRow | UndoneRow)[]} */
  const rows = [];
  for (const item of items) {
    const last = rows[rows.length - 1];
    if (!item.undone) rows.push(item);
    else if (last && "group" in last) last.group.push(item);
    else rows.push({ key: `taken ${item.key}`, seq: item.seq, group: [item] });
  }
  return rows;
}

/** @param {{ items: TranscriptRow[], context: ItemContext }} props */
function UndoneMessages({ items, context }) {
  const words = items.filter((item) => item.kind === "user" || item.kind === "assistant").length;
  return html`<details class="taken"><summary><${Icon} name="undo" size=${16} />
    ${t(
      "{count} message undone; the model no longer sees it",
      "{count} messages undone; the model no longer sees them",
      { count: words },
    )}</summary>
    ${items.map(
      (item) => html`<div class="item" key=${item.key}><${Item} item=${item} context=${context} />
      </div>`,
    )}</details>`;
}
