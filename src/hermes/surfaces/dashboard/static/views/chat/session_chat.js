// An open session in the chat: its header, its messages and its composer.
/**
 * @import {
 *   ChatActions, Filled, Goal, Item, ItemContext, Mode, Route, SessionDetail, Transcript, UserItem,
 * } from "../../types/page.d.ts"
 */
/** @import { Overlay } from "./shared.js" */
import { api, errorText, may, scopes, sessionPath } from "../../app/api.js";
import { lookedAt, setTitle } from "../../app/attention.js";
import { useKeys } from "../../app/keys.js";
import { showKeys } from "../../app/overlay.js";
import { Button, Problem, toast } from "../../app/parts.js";
import { changes, waiting } from "../../app/pending_requests.js";
import { t } from "../../app/translation.js";
import { Fragment, html, useEffect, useMemo, useRef, useState, useStore } from "../../app/ui.js";
import { ApprovalPicker } from "./approvals.js";
import { branch, redo, retry, stop, undo, withdraw } from "./commands.js";
import { Composer } from "./composer.js";
import { ContextUseDialog } from "./context_use.js";
import { conversationOf } from "./conversation.js";
import { attachmentsOf } from "./earlier_attachments.js";
import { Header, titleOf } from "./header.js";
import { typed } from "./message_parts.js";
import { Messages } from "./messages.js";
import { ModelPicker } from "./model_picker.js";
import { PinnedPlan } from "./plan.js";
import { BACKGROUND_WORK, chooseMode, LOADING, OnDemand, Said, useModel } from "./shared.js";
import { openQuestion, turnsSince } from "./transcript.js";
import { TurnCost } from "./turn_cost.js";

const CHANGES = () => import("./changes.js");
const FILES = () => import("./changes.js").then((one) => ({ default: one.SessionFiles }));

/**
 * Sends the first message of a session.
 * @param {string} id
 * @param {Parameters<import("./outbox.js").Outbox["send"]>[0]} message
 */
export function sendFirst(id, message) {
  conversationOf(id).outbox.send(message);
}

/**
 * @param {{ id: string, route: Route, search: (text: string) => void, onDrawer: () => void }} props
 */
export default function SessionChat({ id, route, search, onDrawer }) {
  const conversation = useMemo(() => conversationOf(id), [id]);
  const state = useStore(conversation.transcript);
  const link = useStore(conversation.state);
  const asked = useStore(waiting);
  const [filled, setFilled] = useState(/** @type {Filled | null} */ (null));
  const [over, setOver] = useState(/** @type {Overlay | null} */ (null));
  const [goal, setGoal] = useGoal(route);
  const [model, setModel] = useModel(id);
  const [detail, setDetail] = useDetail(id);
  const mode = detail?.approvals ?? "ask";
  /** @param {Mode} approvals */
  const setMode = async (approvals) => {
    try {
      await api.put(sessionPath(id, "mode"), { approvals });
      setDetail((now) => now && { ...now, approvals });
    } catch (error) {
      toast(errorText(error), "bad");
    }
  };
  const pickMode = (/** @type {Mode} */ name) => {
    setMode(name);
    setOver(null);
  };
  const current = useRef(state);
  current.current = state;
  useEffect(() => {
    conversation.open();
    return () => conversation.close();
  }, [conversation]);
  useEffect(() => {
    setTitle(`${titleOf(state)} · Hermes`);
  }, [titleOf(state)]);
  useSeen(id, detail);
  /** @type {ItemContext} */
  const context = useMemo(
    () => ({
      session: id,
      cwd: state.cwd,
      retry: () => retry(id),
      diff: (/** @type {string} */ turn) => setOver({ kind: "diff", turn }),
      cost: (/** @type {string} */ turn) => setOver({ kind: "cost", turn }),
      branch: (/** @type {Item} */ item) =>
        branch(id, {
          ...cutAt(current.current, item),
          filled: item.kind === "user" ? filledAs(id, item) : undefined,
        }),
      withdraw: (/** @type {UserItem} */ item) => withdraw(id, item),
      edit: async (/** @type {UserItem} */ item) => {
        if (await withdraw(id, item)) setFilled(filledAs(id, item));
      },
    }),
    [id, state.cwd],
  );
  /** @param {string} name */
  const choose = (name) => {
    setModel(name);
    setOver(null);
  };
  /** @type {ChatActions & Required<Pick<ChatActions, "context" | "beginning">>} */
  const chat = useMemo(
    () => ({
      id,
      search,
      help: showKeys,
      chosenModel: model,
      fill: (text) => setFilled({ text }),
      backgroundWork: () => setOver({ kind: "background" }),
      transcript: conversation.transcript,
      send: (text, delivery = "queue", images = [], files = [], recordings = [], earlier = null) =>
        conversation.outbox.send({ text, images, files, recordings, earlier, delivery, model }),
      stop: () => stop(id),
      diff: context.diff,
      files: () => setOver({ kind: "files" }),
      context: () => setOver({ kind: "context" }),
      show: (title, text) => setOver({ kind: "said", title, text }),
      beginning: () => setGoal({ seq: 1 }),
      approvals: chooseMode(setMode, () => setOver({ kind: "approvals" })),
      model: (name) => (name ? choose(name) : setOver({ kind: "model" })),
      lastSaid: () => lastSaid(current.current),
    }),
    [id, model, context],
  );
  useKeys([
    {
      keys: "Escape",
      label: t("Stop the running turn"),
      group: t("Chat"),
      icon: "stop",
      typing: true,
      run: () => (current.current.turn ? void stop(id) : false),
    },
    {
      keys: "Alt+u",
      label: t("Undo the last turn"),
      group: t("Chat"),
      icon: "undo",
      typing: true,
      run: () => void undo(id),
    },
    {
      keys: "Alt+r",
      label: t("Redo"),
      group: t("Chat"),
      icon: "redo",
      typing: true,
      run: () => void redo(id),
    },
    {
      keys: "Alt+d",
      label: t("Show what the last turn changed"),
      group: t("Chat"),
      icon: "file",
      typing: true,
      run: () => setOver({ kind: "diff", turn: "" }),
    },
    {
      keys: "Home",
      label: t("Go to the beginning"),
      group: t("Chat"),
      icon: "up",
      run: () => chat.beginning(),
    },
    {
      keys: "End",
      label: t("Go to the end"),
      group: t("Chat"),
      icon: "bottom",
      run: () => setGoal({ seq: Infinity }),
    },
    {
      label: t("Session files"),
      group: t("Chat"),
      icon: "folder",
      run: () => setOver({ kind: "files" }),
    },
    { label: t("Retry the last turn"), group: t("Chat"), icon: "retry", run: () => void retry(id) },
    {
      label: t("Choose a model"),
      group: t("Chat"),
      icon: "settings",
      run: () => setOver({ kind: "model" }),
    },
    { label: t("Context use"), group: t("Chat"), icon: "info", run: () => chat.context() },
    {
      label: t("Background work"),
      group: t("Chat"),
      icon: "sessions",
      run: () => setOver({ kind: "background" }),
    },
    {
      label: t("Approval mode"),
      group: t("Chat"),
      icon: "lock",
      run: () => void chat.approvals(""),
    },
  ]);
  // While a reply streams, only the reply is drawn again.
  const steady = useSteady(state);
  const granted = useStore(scopes);
  const header = useMemo(
    () => html`<${Header} state=${steady} detail=${detail} model=${model} mode=${mode} chat=${chat}
      onModel=${() => setOver({ kind: "model" })} onDrawer=${onDrawer} />`,
    [steady, detail, model, mode, chat, granted],
  );
  const input = useMemo(
    () => html`<${PinnedPlan} state=${steady} />
      ${
        may("chat") &&
        html`<${Composer} chat=${chat} running=${Boolean(steady.turn)} stopping=${steady.stopping}
        question=${openQuestion(steady, asked)} filled=${filled} />`
      }`,
    [steady, asked, filled, chat, granted],
  );
  if (state.deleted || link === "closed") {
    return html`<${Fragment}><header class="chat-head"><${Button} kind="quiet" class="drawer-open" icon="menu"
      label=${t("Sessions")} onClick=${onDrawer} />
      <h1 class="chat-title"><bdi>${state.title || t("Chat")}</bdi></h1></header>
      <${Problem} error=${{
        message:
          state.deleted || state.ready || state.items.length
            ? t("This session was deleted.")
            : t("There is no such session."),
        hint: t("Choose another one, or start a new chat."),
      }} /><//>`;
  }
  return html`${header}
    ${
      state.ready || state.items.length
        ? html`<${Messages} conversation=${conversation} context=${context}
      onEdit=${setFilled} goal=${goal} />`
        : LOADING
    }
    ${input}
    ${
      over?.kind === "model" &&
      html`<${ModelPicker} current=${model} onClose=${() => setOver(null)}
      onChoose=${choose} />`
    }
    ${
      over?.kind === "approvals" &&
      html`<${ApprovalPicker} current=${mode} onClose=${() => setOver(null)}
      onChoose=${pickMode} />`
    }
    ${
      over?.kind === "context" &&
      html`<${ContextUseDialog} session=${id} running=${Boolean(state.turn)}
      onClose=${() => setOver(null)} />`
    }
    ${over?.kind === "said" && html`<${Said} said=${over} onClose=${() => setOver(null)} />`}
    ${
      over?.kind === "background" &&
      html`<${OnDemand} load=${BACKGROUND_WORK} session=${id} onClose=${() => setOver(null)} />`
    }
    ${
      over?.kind === "cost" &&
      html`<${TurnCost} state=${state} turn=${over.turn ?? ""} onClose=${() => setOver(null)} />`
    }
    ${
      over?.kind === "files" &&
      html`<${OnDemand} load=${FILES} session=${id} onClose=${() => setOver(null)} />`
    }
    ${
      over?.kind === "diff" &&
      html`<${OnDemand} load=${CHANGES} session=${id} turn=${over.turn ?? ""}
      onClose=${() => setOver(null)} />`
    }`;
}

/**
 * The transcript without the reply that is being written: the same object until anything else changes.
 * @param {Transcript} state
 */
function useSteady(state) {
  const held = useRef(state);
  const before = new Map(Object.entries(held.current));
  const isSame = Object.entries(state).every(
    ([name, value]) => name === "live" || Object.is(before.get(name), value),
  );
  if (!isSame) held.current = state;
  return held.current;
}

/**
 * What the person last wrote in a session.
 * @param {Transcript} state
 */
function lastSaid({ items }) {
  const said = items
    .filter((item) => item.kind === "user")
    .findLast((item) => item.origin === "user");
  return typed(said?.text ?? "").text;
}

/**
 * Tells the server that somebody looked at the session, also after the page comes to the front.
 * @param {string} id
 * @param {SessionDetail | null} detail
 */
function useSeen(id, detail) {
  useEffect(() => {
    const look = () => {
      if (document.hidden || !detail) return;
      lookedAt(id);
      const { seen, messages } = detail.session;
      if (may("chat") && seen < messages)
        api.post(sessionPath(id, "seen"), { messages }).catch(() => {}); // the next turn says it again
    };
    look();
    document.addEventListener("visibilitychange", look);
    return () => document.removeEventListener("visibilitychange", look);
  }, [id, detail]);
}

/**
 * Where a branch from an item ends: before a person's words, or with the turn that a reply belongs to.
 * @param {Transcript} state
 * @param {Item} item
 */
function cutAt(state, item) {
  if (item.kind === "user") return { back: turnsSince(state, item) };
  return {
    at: state.items.find((one) => one.kind === "end" && one.turn === item.turn)?.seq ?? item.seq,
  };
}

/**
 * A message as it is put into the composer to be edited.
 * @param {string} session
 * @param {UserItem} item
 * @returns {Filled}
 */
function filledAs(session, item) {
  return { text: typed(item.text).text, earlier: attachmentsOf(session, item) };
}

/**
 * The place in the conversation that is to be shown: at first that of the address.
 * @param {Route} route
 * @returns {[Goal | null, (goal: Goal) => void]}
 */
function useGoal(route) {
  const at = Number(route.query.get("at")) || 0;
  const [goal, setGoal] = useState(/** @type {Goal | null} */ (null));
  useEffect(() => {
    if (at) setGoal({ seq: at, isFound: true });
  }, [at]);
  return [goal, setGoal];
}

/**
 * Facts that are not in the log: the running process and the model's window. Loaded again after each turn.
 * @param {string} id
 * @returns {[SessionDetail | null, (change: (now: SessionDetail | null) => SessionDetail | null) => void]}
 */
function useDetail(id) {
  const [detail, setDetail] = useState(/** @type {SessionDetail | null} */ (null));
  const changed = useStore(changes);
  const mine = changed.event?.session_id === id ? changed.count : 0;
  useEffect(() => {
    api.get(sessionPath(id)).then(setDetail, () => {});
  }, [id, mine]);
  return [detail, setDetail];
}
