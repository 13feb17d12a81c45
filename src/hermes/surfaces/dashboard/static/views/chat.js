// The chat: one session, or the beginning of one, with the list of sessions beside it.
/**
 * @import {
 *   ChatActions, Child, Filled, Goal, Item, ItemContext, Mode, Route, SessionDetail, Status,
 *   Transcript, UserItem,
 * } from "../types/page.d.ts"
 */
import { api, errorText, may, scopes, sessionPath } from "../app/api.js";
import { lookedAt, setTitle } from "../app/attention.js";
import { useKeys } from "../app/keys.js";
import { showKeys } from "../app/overlay.js";
import { Button, Dialog, Loading, Problem, toast, tryTo } from "../app/parts.js";
import { changes, waiting } from "../app/pending_requests.js";
import { navigate, pathTo } from "../app/router.js";
import { t } from "../app/translation.js";
import {
  Fragment,
  html,
  kept,
  preloadModule,
  Soon,
  useEffect,
  useMedia,
  useMemo,
  useRef,
  useState,
  useStore,
  useStyle,
} from "../app/ui.js";
import { ApprovalMode, ApprovalPicker, MODES, mayChoose } from "./chat/approvals.js";
import { branch, redo, retry, stop, undo, withdraw } from "./chat/commands.js";
import { Composer } from "./chat/composer.js";
import { ContextUseDialog } from "./chat/context_use.js";
import { conversationOf } from "./chat/conversation.js";
import { Drawer } from "./chat/drawer.js";
import { attachmentsOf } from "./chat/earlier_attachments.js";
import { Header, ModelPicker, titleOf } from "./chat/header.js";
import { PinnedPlan } from "./chat/plan.js";
import { openQuestion, turnsSince, typed } from "./chat/transcript.js";
import { TurnCost } from "./chat/turn_cost.js";
import { Welcome } from "./chat/welcome.js";

const DRAWER_BESIDE = "(min-width: 1100px)"; // as in chat.css; in a narrower window it is drawn when it is opened
const AHEAD_MS = 2000; // after a new chat is shown, what its reply needs is loaded, and run once it is needed

/**
 * @typedef {{ kind: "said", title: string, text: string, next?: string }} SaidOverlay
 * @typedef {{ kind: "model" | "approvals" | "context" | "diff" | "files" | "cost" | "background", turn?: string }
 *   | SaidOverlay} Overlay
 */

/** @param {{ route: Route }} props */
export default function Chat({ route }) {
  const styled = useStyle("views/chat.css");
  const id = route.parts[0] ?? "";
  const [drawer, setDrawer] = useState(false);
  const isBeside = useMedia(DRAWER_BESIDE);
  const wasOpen = useRef(false); // from then on it is there, so that it slides
  if (drawer) wasOpen.current = true;
  const [words, setWords] = useState("");
  /** @param {string} text */
  const search = (text) => {
    setWords(text);
    setDrawer(true);
  };
  useKeys([
    {
      keys: "Alt+c",
      label: t("New chat"),
      group: t("Chat"),
      icon: "plus",
      typing: true,
      run: () => navigate("/chat"),
    },
    {
      keys: "Alt+l",
      label: t("Show sessions"),
      group: t("Chat"),
      icon: "sessions",
      typing: true,
      run: () => setDrawer((now) => !now),
    },
    {
      label: t("Write a message"),
      group: t("Chat"),
      icon: "edit",
      run: () => document.querySelector(/** @type {"textarea"} */ (".composer textarea"))?.focus(),
    },
  ]);
  if (!styled) return html`<${Loading} label=${t("Chat")} />`;
  const shared = { search, onDrawer: () => setDrawer(true) };
  return html`<div class="chat">${
    (isBeside || wasOpen.current) &&
    html`<${Drawer} current=${id} open=${drawer} onClose=${() => setDrawer(false)}
    words=${words} setWords=${setWords} />`
  }
    ${drawer && html`<div class="drawer-shade" onClick=${() => setDrawer(false)} />`}
    <div class="talk">${
      id
        ? html`<${Conversation} key=${id} id=${id} route=${route} ...${shared} />`
        : html`<${NewChat} key="new" ...${shared} />`
    }</div></div>`;
}

/**
 * The model chosen for a session in this browser; "" for that of the settings, null for none chosen.
 * @param {string} id
 * @returns {[string | null, (name: string | null) => void]}
 */
function useModel(id) {
  const [model, set] = useState(() => kept.get(`model.${id || "new"}`));
  const choose = (/** @type {string | null} */ name) => {
    kept.set(`model.${id || "new"}`, name);
    set(name);
  };
  return [model, choose];
}

/** @param {{ search: (text: string) => void, onDrawer: () => void }} props */
function NewChat({ search, onDrawer }) {
  const [filled, setFilled] = useState(/** @type {Filled | null} */ (null));
  const [folder, setFolder] = useState("");
  const [picking, setPicking] = useState("");
  const [model, setModel] = useModel("");
  const [mode, setMode] = useState(/** @type {Mode} */ ("ask"));
  const [busy, setBusy] = useState(false);
  const [over, setOver] = useState(/** @type {Overlay | null} */ (null));
  const [status, setStatus] = useState(/** @type {Status | null} */ (null));
  useEffect(() => {
    api.get("/api/status").then(setStatus, () => {});
    const timer = setTimeout(() => preloadModule("messages.js"), AHEAD_MS);
    return () => clearTimeout(timer);
  }, []);
  const create = async () => {
    const begun = await api.post("/api/sessions", folder.trim() ? { cwd: folder.trim() } : {});
    if (model) kept.set(`model.${begun.id}`, model);
    return begun;
  };
  const begin = async () => {
    const begun = await tryTo(create);
    if (begun && mode !== "ask")
      await tryTo(() => api.put(sessionPath(begun.id, "mode"), { approvals: mode }));
    return begun?.id ?? "";
  };
  /** @type {import("../types/page.d.ts").ChatActions["send"]} */
  const send = async (text, _, images = [], files = [], recordings = [], earlier = null) => {
    setBusy(true);
    try {
      const begun = await create();
      conversationOf(begun.id).outbox.send({
        text,
        images,
        files,
        recordings,
        earlier,
        since: 0,
        model: model || null,
        approvals: mode === "ask" ? null : mode,
      });
      navigate(pathTo("chat", begun.id));
    } catch (error) {
      toast(errorText(error), "bad");
      setFilled({ text, images, files, recordings, earlier });
      setBusy(false);
    }
  };
  const fill = (/** @type {string} */ text) => setFilled({ text });
  const close = () => {
    setOver(null);
    if (over?.kind === "said" && over.next) navigate(pathTo("chat", over.next));
  };
  const pickModel = (/** @type {string} */ name) => {
    setModel(name || null);
    setPicking("");
  };
  const pickMode = (/** @type {Mode} */ name) => {
    setMode(name);
    setPicking("");
  };
  /** @type {ChatActions} */
  const chat = {
    id: "",
    send,
    search,
    begin,
    fill,
    chosenModel: model,
    backgroundWork: () => setOver({ kind: "background" }),
    show: (title, text, next = "") => setOver({ kind: "said", title, text, next }),
    stop: () => {},
    lastSaid: () => "",
    help: showKeys,
    model: (name) => (name ? setModel(name) : setPicking("model")),
    approvals: chooseMode(setMode, () => setPicking("approvals")),
  };
  return html`<header class="chat-head is-new"><${Button} kind="quiet" class="drawer-open" icon="menu"
    label=${t("Sessions")} onClick=${onDrawer} /><h1 class="chat-title">${t("New chat")}</h1>
      <button type="button" class="button quiet model" onClick=${() => setPicking("model")}><span>
        ${model || status?.model.replace(/^(?!codex:)[^:]*:/, "") || t("Choose a model")}</span></button>
      ${may("chat") && html`<${ApprovalMode} current=${mode} onOpen=${() => setPicking("approvals")} />`}</header>
    <div class="scroll"><${Soon}><${Welcome} problem=${status?.model_problem} onIdea=${fill}
      folder=${folder} setFolder=${setFolder} /><//></div>
    ${
      busy
        ? html`<${Loading} label=${t("Starting")} />`
        : may("chat") && html`<${Composer} chat=${chat} filled=${filled} />`
    }
    ${
      picking === "model" &&
      html`<${ModelPicker} current=${model} onClose=${() => setPicking("")}
      onChoose=${pickModel} />`
    }
    ${
      picking === "approvals" &&
      html`<${ApprovalPicker} current=${mode} onClose=${() => setPicking("")}
      onChoose=${pickMode} />`
    }
    ${over?.kind === "said" && html`<${Said} said=${over} onClose=${close} />`}
    ${
      over?.kind === "background" &&
      html`<${OnDemand} load=${BACKGROUND_WORK} session="" onClose=${() => setOver(null)} />`
    }`;
}

/**
 * What `/approvals MODE` does: chooses, or shows the choice.
 * @param {(mode: Mode) => void} choose
 * @param {() => void} show
 */
function chooseMode(choose, show) {
  return async (/** @type {string} */ name) => {
    const mode = MODES.find((one) => one.name === name)?.name;
    if (!mode || (mode !== "ask" && !may("approve"))) show();
    else if (await mayChoose(mode)) choose(mode);
  };
}

/**
 * @param {{ id: string, route: Route, search: (text: string) => void, onDrawer: () => void }} props
 */
function Conversation({ id, route, search, onDrawer }) {
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
    MESSAGES().catch(() => {}); // while the session is read; where it is shown, it says what went wrong
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
      label=${t("Sessions")} onClick=${onDrawer} /><h1 class="chat-title">${state.title || t("Chat")}</h1></header>
      <${Problem} error=${{
        message:
          state.deleted || state.ready
            ? t("This session was deleted.")
            : t("There is no such session."),
        hint: t("Choose another one, or start a new chat."),
      }} /><//>`;
  }
  return html`${header}
    ${
      state.ready || state.items.length
        ? html`<${OnDemand} load=${MESSAGES} conversation=${conversation} context=${context}
      onEdit=${setFilled} goal=${goal}>${LOADING}<//>`
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

const LOADING = html`<div class="scroll"><${Loading} label=${t("Loading the session")} /></div>`;
// What a new chat does not need is loaded when it is used: with a session, or with its dialog.
const MESSAGES = () => import("./chat/messages.js").then((one) => ({ default: one.Messages }));
const MARKDOWN = () =>
  import("../app/parts/markdown.js").then((one) => ({ default: one.Markdown }));
const CHANGES = () => import("./chat/changes.js");
const FILES = () => import("./chat/changes.js").then((one) => ({ default: one.SessionFiles }));
const BACKGROUND_WORK = () => import("./chat/background_work.js");

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

/** @typedef {() => Promise<{ default: any }>} Load */

/** @type {Map<Load, { default: any }>} */
const loadedParts = new Map();

/**
 * A part that is loaded when it is first used; `children` stand in for it meanwhile. A dialog that can't be loaded is
 * closed.
 * @param {{ load: Load, onClose?: () => void, children?: Child, [name: string]: unknown }} props
 */
function OnDemand({ load, children = null, ...props }) {
  const [loaded, setLoaded] = useState(() => loadedParts.get(load) ?? null);
  const [isMissing, setIsMissing] = useState(false);
  useEffect(() => {
    if (loaded) return;
    tryTo(load).then((module) => {
      if (!module) return props.onClose ? props.onClose() : setIsMissing(true);
      loadedParts.set(load, module);
      setLoaded(module);
    });
  }, []);
  if (isMissing) {
    const message = t("{view} could not be shown.", { view: t("Chat") });
    return html`<${Problem} error=${{ message }} retry=${() => location.reload()} />`;
  }
  return loaded ? html`<${loaded.default} ...${props} />` : children;
}

/**
 * What a command says.
 * @param {{ said: SaidOverlay, onClose: () => void }} props
 */
function Said({ said, onClose }) {
  return html`<${Dialog} title=${said.title} class="wide" onClose=${onClose}>
    <${OnDemand} load=${MARKDOWN} text=${said.text}><${Loading} label=${said.title} /><//><//>`;
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
