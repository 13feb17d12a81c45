// The chat: one session, or the beginning of one, with the list of sessions beside it.
import { api, may } from "../app/api.js";
import { useKeys } from "../app/keys.js";
import { showKeys } from "../app/overlay.js";
import { Button, Loading, Problem, toast } from "../app/parts.js";
import { navigate, pathTo } from "../app/router.js";
import { Fragment, html, kept, useEffect, useMemo, useRef, useState, useStore, useStyle } from "../app/ui.js";
import { changes, waiting } from "../app/waiting.js";
import { ApprovalMode, ApprovalPicker, MODES, mayChoose } from "./chat/approvals.js";
import { branch, redo, retry, stop, undo } from "./chat/commands.js";
import { Composer } from "./chat/composer.js";
import { conversationOf } from "./chat/conversation.js";
import { Drawer } from "./chat/drawer.js";
import { Filling } from "./chat/filling.js";
import { Changes, Header, ModelPicker, titleOf } from "./chat/header.js";
import { Messages } from "./chat/messages.js";
import { openQuestion, turnsSince, typed } from "./chat/transcript.js";
import { Welcome } from "./chat/welcome.js";

export default function Chat({ route }) {
  const styled = useStyle("views/chat.css");
  const id = route.parts[0] ?? "";
  const [drawer, setDrawer] = useState(false);
  const [words, setWords] = useState("");
  const search = (text) => {
    setWords(text);
    setDrawer(true);
  };
  useKeys([
    { keys: "Alt+c", label: "New chat", group: "Chat", icon: "plus", typing: true, run: () =>
      navigate("/chat") },
    { keys: "Alt+l", label: "Show the sessions", group: "Chat", icon: "sessions", typing: true, run: () =>
      setDrawer((now) => !now) },
    { label: "Write a message", group: "Chat", icon: "edit", run: () =>
      document.querySelector(".composer textarea")?.focus() },
  ]);
  if (!styled) return html`<${Loading} label="Chat" />`;
  const shared = { search, onDrawer: () => setDrawer(true) };
  return html`<div class="chat"><${Drawer} current=${id} open=${drawer} onClose=${() => setDrawer(false)}
    words=${words} setWords=${setWords} />
    ${drawer && html`<div class="drawer-shade" onClick=${() => setDrawer(false)} />`}
    <div class="talk">${id ? html`<${Talk} key=${id} id=${id} route=${route} ...${shared} />` :
      html`<${Begin} key="new" ...${shared} />`}</div></div>`;
}

/** The model chosen for a session in this browser; "" for that of the settings, null for none chosen. */
function useModel(id) {
  const [model, set] = useState(() => kept.get(`model.${id || "new"}`));
  return [model, (name) => (kept.set(`model.${id || "new"}`, name), set(name))];
}

function Begin({ search, onDrawer }) {
  const [filled, setFilled] = useState(null);
  const [folder, setFolder] = useState("");
  const [picking, setPicking] = useState("");
  const [model, setModel] = useModel("");
  const [mode, setMode] = useState("ask");
  const [busy, setBusy] = useState(false);
  const [status, setStatus] = useState(null);
  useEffect(() => {
    api.get("/api/status").then(setStatus, () => {});
  }, []);
  const send = async (text, _, images = []) => {
    setBusy(true);
    try {
      const begun = await api.post("/api/sessions", folder.trim() ? { cwd: folder.trim() } : {});
      if (model) kept.set(`model.${begun.id}`, model);
      conversationOf(begun.id).outbox.send({ text, images, since: 0, model: model || null, approvals:
        mode === "ask" ? null : mode });
      navigate(pathTo("chat", begun.id));
    } catch (error) {
      toast(error.words, "bad");
      setFilled({ text, images });
      setBusy(false);
    }
  };
  const chat = { id: "", send, search, stop: () => {}, lastSaid: () => "", help: showKeys, model: (name) =>
    (name ? setModel(name) : setPicking("model")), approvals: chooseMode(setMode, () => setPicking("approvals")) };
  return html`<header class="chat-head"><${Button} kind="quiet" class="drawer-open" icon="menu" label="Sessions"
    onClick=${onDrawer} /><h1 class="chat-title">New chat</h1>
      <button type="button" class="button quiet model" onClick=${() => setPicking("model")}><span>
        ${model || status?.model.replace(/^(?!codex:)[^:]*:/, "") || "Choose a model"}</span></button>
      ${may("chat") && html`<${ApprovalMode} current=${mode} onOpen=${() => setPicking("approvals")} />`}</header>
    <div class="scroll"><${Welcome} problem=${status?.model_problem} onIdea=${(text) => setFilled({ text })}
      folder=${folder} setFolder=${setFolder} /></div>
    ${busy ? html`<${Loading} label="Beginning" />` : may("chat") &&
      html`<${Composer} chat=${chat} filled=${filled} />`}
    ${picking === "model" && html`<${ModelPicker} current=${model} onClose=${() => setPicking("")}
      onChoose=${(name) => (setModel(name || null), setPicking(""))} />`}
    ${picking === "approvals" && html`<${ApprovalPicker} current=${mode} onClose=${() => setPicking("")}
      onChoose=${(name) => (setMode(name), setPicking(""))} />`}`;
}

/** What `/approvals MODE` does: chooses, or shows the choice. */
function chooseMode(choose, show) {
  return async (name) => {
    const known = MODES.some((one) => one.name === name);
    if (!known || (name !== "ask" && !may("approve"))) show();
    else if (await mayChoose(name)) choose(name);
  };
}

function Talk({ id, route, search, onDrawer }) {
  const conversation = useMemo(() => conversationOf(id), [id]);
  const state = useStore(conversation.transcript);
  const link = useStore(conversation.state);
  const asked = useStore(waiting);
  const [filled, setFilled] = useState(null);
  const [over, setOver] = useState(null); // {kind: "model" | "approvals" | "context"} | {kind: "diff", turn}
  const [goal, setGoal] = useGoal(route);
  const [model, setModel] = useModel(id);
  const [detail, setDetail] = useDetail(id);
  const mode = detail?.approvals ?? "ask";
  const setMode = async (approvals) => {
    try {
      await api.put(`/api/sessions/${encodeURIComponent(id)}/mode`, { approvals });
      setDetail((now) => ({ ...now, approvals }));
    } catch (error) {
      toast(error.words, "bad");
    }
  };
  const current = useRef(state);
  current.current = state;
  useEffect(() => {
    conversation.open();
    return () => conversation.close();
  }, [conversation]);
  useEffect(() => {
    document.title = `${titleOf(state)} · Hermes`;
  }, [titleOf(state)]);
  const context = useMemo(
    () => ({
      session: id,
      cwd: state.cwd,
      retry: () => retry(id),
      diff: (turn) => setOver({ kind: "diff", turn }),
      branch: (item, text = "") => branch(id, { ...cutAt(current.current, item), text }),
    }),
    [id, state.cwd],
  );
  const chat = {
    id,
    search,
    help: showKeys,
    send: (text, delivery = "queue", images = []) => conversation.outbox.send({ text, images, delivery, model }),
    stop: () => stop(id),
    diff: context.diff,
    context: () => setOver({ kind: "context" }),
    beginning: () => setGoal({ seq: 1 }),
    approvals: chooseMode(setMode, () => setOver({ kind: "approvals" })),
    model: (name) => (name ? choose(name) : setOver({ kind: "model" })),
    lastSaid: () => typed(state.items.findLast((item) => item.kind === "user" &&
      item.origin === "user")?.text ?? "").text,
  };
  const choose = (name) => {
    setModel(name);
    setOver(null);
  };
  useKeys([
    { keys: "Escape", label: "Stop the running turn", group: "Chat", icon: "stop", typing: true, run: () =>
      (current.current.turn ? void stop(id) : false) },
    { keys: "Alt+u", label: "Undo the last turn", group: "Chat", icon: "undo", typing: true, run: () => void undo(id) },
    { keys: "Alt+r", label: "Redo", group: "Chat", icon: "redo", typing: true, run: () => void redo(id) },
    { keys: "Alt+d", label: "What the last turn changed", group: "Chat", icon: "file", typing: true, run: () =>
      setOver({ kind: "diff", turn: "" }) },
    { keys: "Home", label: "To the beginning", group: "Chat", icon: "up", run: () => chat.beginning() },
    { keys: "End", label: "To the end", group: "Chat", icon: "bottom", run: () => setGoal({ seq: Infinity }) },
    { label: "Try the last turn again", group: "Chat", icon: "retry", run: () => void retry(id) },
    { label: "Choose the model", group: "Chat", icon: "settings", run: () => setOver({ kind: "model" }) },
    { label: "What fills the window", group: "Chat", icon: "info", run: () => chat.context() },
    { label: "What Hermes asks about", group: "Chat", icon: "lock", run: () => void chat.approvals("") },
  ]);
  if (state.deleted || link === "closed") {
    return html`<${Fragment}><header class="chat-head"><${Button} kind="quiet" class="drawer-open" icon="menu"
      label="Sessions" onClick=${onDrawer} /><h1 class="chat-title">${state.title || "Chat"}</h1></header>
      <${Problem} error=${{ message: state.deleted || state.ready ? "This session was deleted." :
        "There is no such session.",
        hint: "Choose another, or begin a new chat." }} /><//>`;
  }
  return html`<${Header} state=${state} detail=${detail} model=${model} mode=${mode} chat=${chat}
    onModel=${() => setOver({ kind: "model" })} onDrawer=${onDrawer} />
    ${state.ready || state.items.length ? html`<${Messages} conversation=${conversation} context=${context}
      onEdit=${setFilled} goal=${goal} />` :
        html`<div class="scroll"><${Loading} label="Reading the session" /></div>`}
    ${may("chat") && html`<${Composer} chat=${chat} running=${Boolean(state.turn)} stopping=${state.stopping}
      question=${openQuestion(state, asked)} filled=${filled} />`}
    ${over?.kind === "model" && html`<${ModelPicker} current=${model} onClose=${() => setOver(null)}
      onChoose=${choose} />`}
    ${over?.kind === "approvals" && html`<${ApprovalPicker} current=${mode} onClose=${() => setOver(null)}
      onChoose=${(name) => (setMode(name), setOver(null))} />`}
    ${over?.kind === "context" && html`<${Filling} session=${id} running=${Boolean(state.turn)}
      onClose=${() => setOver(null)} />`}
    ${over?.kind === "diff" && html`<${Changes} session=${id} turn=${over.turn} onClose=${() => setOver(null)} />`}`;
}

/** Where a branch from an item ends: before a person's words, or with the turn that a reply belongs to. */
function cutAt(state, item) {
  if (item.kind === "user") return { back: turnsSince(state, item) };
  return { at: state.items.find((one) => one.kind === "end" && one.turn === item.turn)?.seq ?? item.seq };
}

/** The place in the conversation that is to be shown: at first that of the address. */
function useGoal(route) {
  const at = Number(route.query.get("at")) || 0;
  const [goal, setGoal] = useState(null);
  useEffect(() => {
    if (at) setGoal({ seq: at, isFound: true });
  }, [at]);
  return [goal, setGoal];
}

/** Facts the log does not have: who runs it, the model's window. Asked again after each turn. */
function useDetail(id) {
  const [detail, setDetail] = useState(null);
  const changed = useStore(changes);
  const mine = changed.event?.session_id === id ? changed.count : 0;
  useEffect(() => {
    api.get(`/api/sessions/${encodeURIComponent(id)}`).then(setDetail, () => {});
  }, [id, mine]);
  return [detail, setDetail];
}
