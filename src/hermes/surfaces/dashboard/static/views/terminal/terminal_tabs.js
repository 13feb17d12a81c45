// The open terminals: their tabs, and the one that is shown.
/** @import { Screen } from "./screen.js" */
/** @import { Ref, TerminalInfo } from "../../types/page.d.ts" */
import { useKeys } from "../../app/keys.js";
import { Button, Icon } from "../../app/parts/basics.js";
import { navigate, pathTo } from "../../app/router.js";
import { t } from "../../app/translation.js";
import { html, kept, useEffect, useElement, useState, useStore } from "../../app/ui.js";
import { KeyRow } from "./key_row.js";
import { Options, speak } from "./options.js";
import { screenReader } from "./screen.js";
import { screenOf } from "./screens.js";

/**
 * @typedef {object} TerminalTabsProps
 * @property {TerminalInfo[]} list
 * @property {TerminalInfo} current
 * @property {(command: TerminalInfo["command"]) => void} open
 * @property {(info: TerminalInfo) => void} end
 */

/** @type {Record<string, string>} */
const NAMES = { hermes: "Hermes", shell: t("Shell") };

/** @param {TerminalTabsProps} props */
export function TerminalTabs({ list, current, open, end }) {
  const screen = screenOf(current);
  const [options, setOptions] = useState(false);
  const openHermes = () => open("hermes");
  const openShell = () => open("shell");
  const endCurrent = () => end(current);
  useEffect(() => {
    kept.set("terminal.last", current.id);
  }, [current.id]);
  useTerminalKeys({ openHermes, openShell, endCurrent });
  return html`
    <section class="terminals" aria-label=${t("Terminals")}>
      <header class="terminal-head">
        <h1 class="unseen">${t("Terminal")}</h1>
        <${TabList} list=${list} current=${current} end=${end} />
        <${Button} icon="plus" title=${t("A new terminal that runs Hermes")} onClick=${openHermes}>${NAMES.hermes}<//>
        <${Button} icon="plus" title=${t("A new terminal with a shell")} onClick=${openShell}>${NAMES.shell}<//>
        <${Button} kind="quiet" icon="settings" label=${t("Options")} onClick=${() => setOptions(true)} />
        <${Button} kind="quiet" icon="close" label=${t("End this terminal")} onClick=${endCurrent} />
      </header>
      <${TerminalScreen} key=${current.id} screen=${screen} onAgain=${() => open(current.command)}
        onClose=${endCurrent} />
      ${options && html`<${Options} onClose=${() => setOptions(false)} />`}
    </section>
  `;
}

/** @param {{ openHermes: () => void, openShell: () => void, endCurrent: () => void }} actions */
function useTerminalKeys({ openHermes, openShell, endCurrent }) {
  const aloud = useStore(screenReader);
  const speaking = aloud ? t("Turn screen reader mode off") : t("Turn screen reader mode on");
  const group = t("Terminal");
  useKeys([
    { label: t("New Hermes terminal"), group, icon: "plus", run: openHermes },
    { label: t("New shell"), group, icon: "plus", run: openShell },
    { label: t("End this terminal"), group, icon: "close", run: endCurrent },
    { label: speaking, group, icon: "bell", run: speak },
    { keys: "Mod+Shift+x", label: t("Leave the terminal"), group, hidden: true, run: () => false },
  ]);
}

/**
 * @param {{ list: TerminalInfo[], current: TerminalInfo, end: (info: TerminalInfo) => void }} props
 */
function TabList({ list, current, end }) {
  const box = /** @type {Ref<HTMLElement>} */ (useElement());
  const at = list.indexOf(current);
  /** @param {KeyboardEvent} event */
  const press = (event) => {
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: list.length - 1 }[event.key];
    if (event.key === "Delete") return end(current);
    if (event.key === "Enter") return setTimeout(() => screenOf(current).focus());
    if (to === undefined) return;
    event.preventDefault();
    const next = (to + list.length) % list.length;
    show(list[next]);
    /** @type {HTMLElement} */ (box.current.children[next]).focus();
  };
  return html`
    <div ref=${box} class="terminal-tabs" role="tablist" aria-label=${t("Open terminals")} onKeyDown=${press}>
      ${list.map(
        (info, index) => html`
        <${Tab} key=${info.id} info=${info} number=${index + 1} chosen=${info === current} />
      `,
      )}
    </div>
  `;
}

/** @param {{ info: TerminalInfo, number: number, chosen: boolean }} props */
function Tab({ info, number, chosen }) {
  const screen = screenOf(info);
  const title = useStore(screen.title);
  const state = useStore(screen.state);
  const name = title || `${NAMES[info.command] ?? info.command} ${number}`;
  return html`
    <button
      type="button"
      role="tab"
      class=${`terminal-tab ${state}`}
      aria-selected=${String(chosen)}
      aria-controls="terminal-panel"
      tabindex=${chosen ? 0 : -1}
      title=${t("{name}, in {folder}", { name, folder: info.cwd })}
      onClick=${() => show(info)}
    >
      <${Icon} name=${info.command === "hermes" ? "chat" : "terminal"} size=${16} />
      <span>${name}</span>
    </button>
  `;
}

/** @param {TerminalInfo} info */
function show(info) {
  navigate(pathTo("terminal", info.id), { replace: true });
}

/** @param {{ screen: Screen, onAgain: () => void, onClose: () => void }} props */
function TerminalScreen({ screen, onAgain, onClose }) {
  const place = /** @type {Ref<HTMLElement>} */ (useElement());
  useEffect(() => {
    screen.mount(place.current);
    screen.focus();
    return () => screen.unmount();
  }, [screen]);
  return html`
    <div id="terminal-panel" class="terminal-panel" role="tabpanel"
      aria-label=${t("Terminal. Ctrl Shift X leaves it.")}>
      <${Note} screen=${screen} onAgain=${onAgain} onClose=${onClose} />
      <div ref=${place} class="terminal-place" />
      <${KeyRow} screen=${screen} />
    </div>
  `;
}

/**
 * The note on a terminal that has ended, is gone or lost its connection.
 * @param {{ screen: Screen, onAgain: () => void, onClose: () => void }} props
 */
function Note({ screen, onAgain, onClose }) {
  const state = useStore(screen.state);
  const ended = useStore(screen.ended);
  const ways = html`
    <${Button} onClick=${onAgain}>${t("Start another")}<//>
    <${Button} kind="quiet" onClick=${onClose}>${t("Close")}<//>
  `;
  if (state === "waiting") {
    return html`
      <p class="terminal-note warn" role="status">
        <span class="spinner" aria-hidden="true" />
        ${t("Connection lost. The program keeps running. Reconnecting …")}
      </p>
    `;
  }
  if (state === "ended") {
    const how = ended?.code
      ? t("The program has ended with exit code {code}.", { code: ended.code })
      : t("The program has ended.");
    return html`<p class="terminal-note" role="status">${how}${ways}</p>`;
  }
  if (state === "gone") {
    return html`
      <p class="terminal-note warn" role="status">
        ${t("This terminal is gone: the dashboard was restarted, or no page showed it for half an hour.")}
        ${ways}
      </p>
    `;
  }
  return null;
}
