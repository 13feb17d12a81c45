// Terminals in tabs: Hermes or a shell. They survive a reload, and half an hour without a viewer.
/** @import { Answer, Failure, Route, TerminalInfo } from "../types/page.d.ts" */
import { ApiError, api, asFailure, errorText, may } from "../app/api.js";
import { Button, Empty, Loading, Problem } from "../app/parts/basics.js";
import { confirm } from "../app/parts/dialog.js";
import { toast, tryTo } from "../app/parts/toast.js";
import { navigate, pathTo } from "../app/router.js";
import { t, withElements } from "../app/translation.js";
import { html, kept, useEffect, useRef, useState, useStyle } from "../app/ui.js";
import { roomFor } from "./terminal/screen.js";
import { forget, isLive } from "./terminal/screens.js";
import { TerminalTabs } from "./terminal/terminal_tabs.js";

/** @typedef {"hermes" | "shell"} Command */

/** @typedef {Answer<"GET", "/api/terminals">} TerminalList */

/** @param {{ route: Route }} props */
export default function TerminalView({ route }) {
  const own = useStyle("views/terminal.css");
  const base = useStyle("/static/vendor/xterm-xterm-6.0.0/xterm.css");
  if (!may("terminal")) return html`<${NotAllowed} />`;
  return own && base
    ? html`<${Terminals} route=${route} />`
    : html`<${Loading} label=${t("Terminal")} />`;
}

/** @param {{ route: Route }} props */
function Terminals({ route }) {
  const [list, setList] = useState(/** @type {TerminalList | null} */ (null));
  const [problem, setProblem] = useState(
    /** @type {(Failure & { status?: number }) | null} */ (null),
  );
  const load = async () => {
    try {
      setList(await api.get("/api/terminals"));
      setProblem(null);
    } catch (error) {
      setProblem(asFailure(error));
    }
  };
  useEffect(() => {
    load();
  }, []);
  /**
   * @param {Command} command
   * @param {object} [more]
   */
  const open = async (command, more = {}) => {
    const room = roomFor(/** @type {HTMLElement} */ (document.getElementById("main")));
    const info = await tryTo(() => api.post("/api/terminals", { command, ...room, ...more }));
    if (!info) return;
    setList((was) => was && { ...was, terminals: [...was.terminals, info] });
    navigate(pathTo("terminal", info.id), { replace: true });
  };
  const session = route.query.get("session");
  const asked = useRef("");
  useEffect(() => {
    if (!list?.available || !session || asked.current === session) return;
    asked.current = session;
    open("hermes", { session });
  }, [list, session]);
  /** @param {TerminalInfo} info */
  const end = async (info) => {
    if (isLive(info.id) && !(await confirmEnd())) return;
    try {
      await api.delete(`/api/terminals/${info.id}`);
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 404)
        return toast(errorText(error), "bad");
    }
    forget(info.id);
    const left = list?.terminals.filter((one) => one.id !== info.id) ?? [];
    setList((was) => was && { ...was, terminals: left });
    navigate(left.length ? pathTo("terminal", left[left.length - 1].id) : "/terminal", {
      replace: true,
    });
  };
  if (problem?.status === 403) return html`<${NotAllowed} />`;
  if (problem) return html`<${Problem} error=${problem} retry=${load} />`;
  if (!list) return html`<${Loading} label=${t("Terminal")} />`;
  if (!list.available) return html`<${Unavailable} reason=${list.reason} />`;
  if (!list.terminals.length) return html`<${NoTerminal} open=${open} />`;
  const wanted = route.parts[0] ?? kept.get("terminal.last");
  const current = list.terminals.find((one) => one.id === wanted) ?? list.terminals.at(-1);
  return html`<${TerminalTabs} list=${list.terminals} current=${current} open=${open} end=${end} />`;
}

function confirmEnd() {
  return confirm({
    title: t("End this terminal?"),
    text: t("This ends the program in it, with everything it started."),
    action: t("End terminal"),
    danger: true,
  });
}

/** @param {{ open: (command: Command) => void }} props */
function NoTerminal({ open }) {
  return html`
    <h1 class="unseen">${t("Terminal")}</h1>
    <${Empty} icon="terminal" title=${t("No terminal is open")}>
      <div class="stack">
        <p>
          ${t("A terminal runs as you, on the machine of the dashboard.")}${" "}
          ${t("It survives a page reload, and ends after half an hour without an open page.")}
        </p>
        <div class="row terminal-choice">
          <${Button} kind="primary" icon="chat" onClick=${() => open("hermes")}>${t("Open Hermes")}<//>
          <${Button} icon="terminal" onClick=${() => open("shell")}>${t("Open a shell")}<//>
        </div>
      </div>
    <//>
  `;
}

/** @param {{ reason: string }} props */
function Unavailable({ reason }) {
  return html`<h1 class="unseen">${t("Terminal")}</h1>
    <${Empty} icon="warn" title=${t("Terminals are not available")}><p role="alert">${reason}</p><//>`;
}

function NotAllowed() {
  return html`
    <h1 class="unseen">${t("Terminal")}</h1>
    <${Empty} icon="lock" title=${t("This browser is not allowed to use terminals")}>
      <p>
        ${withElements(t("Its link or token lacks the scope {scope}."), { scope: html`<code>terminal</code>` })}${" "}
        ${withElements(
          t("To get a link with all permissions, run {command} on the machine where Hermes runs."),
          {
            command: html`<code>hermes dashboard --link</code>`,
          },
        )}
      </p>
    <//>
  `;
}
