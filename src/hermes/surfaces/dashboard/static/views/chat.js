// The chat: one session, or the beginning of one, with the list of sessions beside it.
/**
 * @import {
 *   ChatActions, Filled, Mode, Route, Status,
 * } from "../types/page.d.ts"
 */
/** @import { Overlay } from "./chat/shared.js" */
import { api, errorText, may, sessionPath } from "../app/api.js";
import { useKeys } from "../app/keys.js";
import { showKeys } from "../app/overlay.js";
import { Button, Loading, toast, tryTo } from "../app/parts.js";
import { navigate, pathTo } from "../app/router.js";
import { t } from "../app/translation.js";
import {
  html,
  kept,
  preloadModule,
  Soon,
  useEffect,
  useMedia,
  useRef,
  useState,
  useStyle,
} from "../app/ui.js";
import { ApprovalMode, ApprovalPicker } from "./chat/approvals.js";
import { Composer } from "./chat/composer.js";
import { Drawer } from "./chat/drawer.js";
import { ModelPicker } from "./chat/model_picker.js";
import { BACKGROUND_WORK, chooseMode, LOADING, OnDemand, Said, useModel } from "./chat/shared.js";
import { Welcome } from "./chat/welcome.js";

const SESSION_CHAT = () => import("./chat/session_chat.js"); // what a new chat does not need
const DRAWER_BESIDE = "(min-width: 1100px)"; // as in chat.css; in a narrower window it is drawn when it is opened
const AHEAD_MS = 2000; // after a new chat is shown, what its reply needs is loaded, and run once it is needed

/** @param {{ route: Route }} props */
export default function Chat({ route }) {
  const styled = useStyle("views/chat.css");
  const id = route.parts[0] ?? "";
  const [drawer, setDrawer] = useState(false);
  const isBeside = useMedia(DRAWER_BESIDE);
  const wasOpen = useRef(false); // from then on it is there, so that it slides
  if (drawer) wasOpen.current = true;
  useEffect(() => {
    if (id) SESSION_CHAT().catch(() => {}); // with the style; where it is shown, it says what went wrong
  }, [id]);
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
    html`<${Drawer} current=${id} open=${drawer} isOver=${drawer && !isBeside} onClose=${() => setDrawer(false)}
    words=${words} setWords=${setWords} />`
  }
    ${drawer && html`<div class="drawer-shade" onClick=${() => setDrawer(false)} />`}
    <div class="talk">${
      id
        ? html`<${OnDemand} key=${id} load=${SESSION_CHAT} id=${id} route=${route} ...${shared}>${LOADING}<//>`
        : html`<${NewChat} key="new" ...${shared} />`
    }</div></div>`;
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
    const timer = setTimeout(() => preloadModule("session_chat.js"), AHEAD_MS);
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
      const { sendFirst } = await SESSION_CHAT();
      const begun = await create();
      sendFirst(begun.id, {
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
