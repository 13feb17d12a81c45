// Terminals in tabs: Hermes itself, or a shell. They survive a reload, and half an hour without anybody looking.
import { ApiError, api, may } from "../app/api.js";
import { useKeys } from "../app/keys.js";
import { Button, Empty, Icon, Loading, Problem } from "../app/parts/basics.js";
import { Dialog, confirm } from "../app/parts/dialog.js";
import { toast, trying } from "../app/parts/toast.js";
import { navigate, pathTo } from "../app/router.js";
import { html, kept, useEffect, useRef, useState, useStore, useStyle } from "../app/ui.js";
import { KeyRow } from "./terminal/keyrow.js";
import { Screen, letters, roomFor, spoken } from "./terminal/screen.js";

const NAMES = { hermes: "Hermes", shell: "Shell" };
const SMALLEST = 9; // pixels
const LARGEST = 28;
const screens = new Map(); // by terminal; they outlive the view, so that coming back is no loss

function screenOf(info) {
  if (!screens.has(info.id)) screens.set(info.id, new Screen(info));
  return screens.get(info.id);
}

function forget(id) {
  screens.get(id)?.close();
  screens.delete(id);
}

export default function TerminalView({ route }) {
  const own = useStyle("views/terminal.css");
  const base = useStyle("/static/vendor/xterm-xterm-6.0.0/xterm.css");
  if (!may("terminal")) return html`<${NotAllowed} />`;
  return own && base ? html`<${Terminals} route=${route} />` : html`<${Loading} label="Terminal" />`;
}

function Terminals({ route }) {
  const [list, setList] = useState(null);
  const [problem, setProblem] = useState(null);
  const load = async () => {
    try {
      setList(await api.get("/api/terminals"));
      setProblem(null);
    } catch (error) {
      setProblem(error);
    }
  };
  useEffect(() => {
    load();
  }, []);
  const open = async (command, more = {}) => {
    const info = await trying(() => api.post("/api/terminals", { command, ...roomFor(document.getElementById("main")), ...more }));
    if (!info) return;
    setList((was) => ({ ...was, terminals: [...(was?.terminals ?? []), info] }));
    navigate(pathTo("terminal", info.id), { replace: true });
  };
  const session = route.query.get("session");
  const asked = useRef("");
  useEffect(() => {
    if (!list?.available || !session || asked.current === session) return;
    asked.current = session;
    open("hermes", { session });
  }, [list, session]);
  const end = async (info) => {
    const running = screens.get(info.id)?.state.value === "live";
    if (running && !(await confirm({ title: "End this terminal?", text: "The program in it is ended, with everything it started.", action: "End it", danger: true }))) return;
    try {
      await api.delete(`/api/terminals/${info.id}`);
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 404) return toast(error.words ?? error.message, "bad");
    }
    forget(info.id);
    const left = list.terminals.filter((one) => one.id !== info.id);
    setList({ ...list, terminals: left });
    navigate(left.length ? pathTo("terminal", left.at(-1).id) : "/terminal", { replace: true });
  };
  if (problem?.status === 403) return html`<${NotAllowed} />`;
  if (problem) return html`<${Problem} error=${problem} retry=${load} />`;
  if (!list) return html`<${Loading} label="Terminal" />`;
  if (!list.available) return html`<${Unavailable} reason=${list.reason} />`;
  if (!list.terminals.length) return html`<${First} open=${open} />`;
  const wanted = route.parts[0] ?? kept.get("terminal.last");
  const current = list.terminals.find((one) => one.id === wanted) ?? list.terminals.at(-1);
  return html`<${Desk} list=${list.terminals} current=${current} open=${open} end=${end} />`;
}

function Desk({ list, current, open, end }) {
  const screen = screenOf(current);
  const aloud = useStore(spoken);
  const [options, setOptions] = useState(false);
  useEffect(() => {
    kept.set("terminal.last", current.id);
  }, [current.id]);
  useKeys([
    { label: "New Hermes terminal", group: "Terminal", icon: "plus", run: () => open("hermes") },
    { label: "New shell", group: "Terminal", icon: "plus", run: () => open("shell") },
    { label: "End this terminal", group: "Terminal", icon: "close", run: () => end(current) },
    { label: aloud ? "Stop speaking what terminals write" : "Let a screen reader speak what terminals write", group: "Terminal", icon: "bell", run: speak },
    { keys: "Mod+Shift+x", label: "Leave the terminal", group: "Terminal", hidden: true, run: () => false },
  ]);
  return html`<section class="terminals" aria-label="Terminals">
    <header class="terminal-head">
      <h1 class="unseen">Terminal</h1>
      <${TabList} list=${list} current=${current} end=${end} />
      <${Button} icon="plus" title="A new terminal that runs Hermes" onClick=${() => open("hermes")}>Hermes<//>
      <${Button} icon="plus" title="A new terminal with a shell" onClick=${() => open("shell")}>Shell<//>
      <${Button} kind="quiet" icon="settings" label="Options" onClick=${() => setOptions(true)} />
      <${Button} kind="quiet" icon="close" label="End this terminal" onClick=${() => end(current)} />
    </header>
    <${Shown} key=${current.id} screen=${screen} onAgain=${() => open(current.command)} onClose=${() => end(current)} />
    ${options && html`<${Options} onClose=${() => setOptions(false)} />`}
  </section>`;
}

function Options({ onClose }) {
  const size = useStore(letters);
  const aloud = useStore(spoken);
  return html`<${Dialog} title="Terminal options" onClose=${onClose}><div class="stack">
    <div class="row"><span class="spring" id="letters-label">Size of the letters</span><${Button} icon="minus" label="Smaller letters" disabled=${size <= SMALLEST} onClick=${() => scale(-1)} /><output aria-labelledby="letters-label">${size}</output><${Button} icon="plus" label="Larger letters" disabled=${size >= LARGEST} onClick=${() => scale(1)} /></div>
    <label class="row"><span class="spring">Screen reader mode: what is written is spoken</span><input type="checkbox" checked=${aloud} onChange=${speak} /></label>
    <dl class="facts"><dt>Copy</dt><dd>Ctrl Shift C, or ⌘ C</dd><dt>Paste</dt><dd>Ctrl Shift V, or ⌘ V</dd><dt>Leave the terminal</dt><dd>Ctrl Shift X, then the arrow keys go through the tabs, and Delete ends one</dd><dt>Open a link</dt><dd>Ctrl or ⌘ and a click</dd></dl>
  </div><//>`;
}

function speak() {
  spoken.set(!spoken.value);
  kept.set("terminal.spoken", spoken.value ? "yes" : null);
}

function scale(by) {
  letters.set(Math.min(LARGEST, Math.max(SMALLEST, letters.value + by)));
  kept.set("terminal.letters", String(letters.value));
}

function TabList({ list, current, end }) {
  const box = useRef();
  const at = list.indexOf(current);
  const press = (event) => {
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: list.length - 1 }[event.key];
    if (event.key === "Delete") return end(current);
    if (event.key === "Enter") return setTimeout(() => screenOf(current).focus());
    if (to === undefined) return;
    event.preventDefault();
    const next = (to + list.length) % list.length;
    navigate(pathTo("terminal", list[next].id), { replace: true });
    box.current.children[next].focus();
  };
  return html`<div ref=${box} class="terminal-tabs" role="tablist" aria-label="Open terminals" onKeyDown=${press}>
    ${list.map((info, index) => html`<${Tab} key=${info.id} info=${info} number=${index + 1} chosen=${info === current} />`)}
  </div>`;
}

function Tab({ info, number, chosen }) {
  const screen = screenOf(info);
  const title = useStore(screen.title);
  const state = useStore(screen.state);
  const name = title || `${NAMES[info.command] ?? info.command} ${number}`;
  return html`<button type="button" role="tab" class=${`terminal-tab ${state}`} aria-selected=${String(chosen)} aria-controls="terminal-panel" tabindex=${chosen ? 0 : -1} title=${`${name}, in ${info.cwd}`}
    onClick=${() => navigate(pathTo("terminal", info.id), { replace: true })}><${Icon} name=${info.command === "hermes" ? "chat" : "terminal"} size=${16} /><span>${name}</span></button>`;
}

function Shown({ screen, onAgain, onClose }) {
  const place = useRef();
  const state = useStore(screen.state);
  const ended = useStore(screen.ended);
  useEffect(() => {
    screen.mount(place.current);
    screen.focus();
    return () => screen.unmount();
  }, [screen]);
  return html`<div id="terminal-panel" class="terminal-panel" role="tabpanel" aria-label="Terminal. Ctrl Shift X leaves it.">
    ${state === "waiting" && html`<p class="terminal-note warn" role="status"><span class="spinner" aria-hidden="true" />The line broke. The program goes on, and it is connected again.</p>`}
    ${state === "ended" && html`<p class="terminal-note" role="status">The program has ended${ended?.code ? ` with code ${ended.code}` : ""}.<${Button} onClick=${onAgain}>Start another<//><${Button} kind="quiet" onClick=${onClose}>Close<//></p>`}
    ${state === "gone" && html`<p class="terminal-note warn" role="status">This terminal is no more: the dashboard was restarted, or nobody looked at it for half an hour.<${Button} onClick=${onAgain}>Start another<//><${Button} kind="quiet" onClick=${onClose}>Close<//></p>`}
    <div ref=${place} class="terminal-place" />
    <${KeyRow} screen=${screen} />
  </div>`;
}

function First({ open }) {
  return html`<${Empty} icon="terminal" title="No terminal is open">
    <div class="stack"><p>A terminal runs on the machine of the dashboard, as you. It survives a reload, and half an hour without anybody looking.</p>
    <div class="row terminal-choice"><${Button} kind="primary" icon="chat" onClick=${() => open("hermes")}>Open Hermes<//><${Button} icon="terminal" onClick=${() => open("shell")}>Open a shell<//></div></div>
  <//>`;
}

function Unavailable({ reason }) {
  return html`<${Empty} icon="warn" title="There are no terminals here"><p role="alert">${reason}</p><//>`;
}

function NotAllowed() {
  return html`<${Empty} icon="lock" title="This browser may not use terminals">
    <p>Its link or token lacks the scope <code>terminal</code>. A link with all rights is printed, on the machine Hermes runs on, by <code>hermes dashboard --link</code>.</p>
  <//>`;
}
