// The palette: searches every available command and every recent session.
/** @import { Binding, FieldEvent, Ref, SessionRow } from "../types/page.d.ts" */
import { api } from "./api.js";
import { shown, useBindings } from "./keys.js";
import { Icon } from "./parts/basics.js";
import { Dialog } from "./parts/dialog.js";
import { ago } from "./parts/format.js";
import { navigate, pathTo } from "./router.js";
import { t } from "./translation.js";
import { html, useEffect, useElement, useMemo, useState } from "./ui.js";

const MOST = 60;

/** @typedef {Binding & { id: string, note: string }} Row */

/** @param {{ onClose: () => void }} props */
export function Palette({ onClose }) {
  const [words, setWords] = useState("");
  const [at, setAt] = useState(0);
  const [sessions, setSessions] = useState(/** @type {SessionRow[]} */ ([]));
  const list = /** @type {Ref<HTMLElement>} */ (useElement());
  const commands = useBindings();
  useEffect(() => {
    api.get("/api/sessions", { limit: 50 }).then(
      (answer) => setSessions(answer.sessions),
      () => {},
    );
  }, []);
  const rows = useMemo(() => matchingRows(words, commands, sessions), [words, commands, sessions]);
  /** @param {Row} row */
  const choose = (row) => {
    onClose();
    // After the dialog has returned the focus.
    setTimeout(() => row.run(new Event("palette")), 0);
  };
  /** @param {KeyboardEvent} event */
  const press = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      setAt((rows.length + Math.min(at, rows.length - 1) + step) % Math.max(rows.length, 1));
    } else if (event.key === "Enter" && rows[at]) {
      event.preventDefault();
      choose(rows[at]);
    }
  };
  /** @param {FieldEvent} event */
  const type = (event) => {
    setWords(event.target.value);
    setAt(0);
  };
  useEffect(() => {
    list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }, [at, rows]);
  /**
   * @param {Row} row
   * @param {number} index
   */
  const option = (row, index) => html`
    <li
      key=${row.id}
      id=${`palette-${index}`}
      role="option"
      aria-selected=${index === at ? "true" : "false"}
      onClick=${() => choose(row)}
      onMouseMove=${() => setAt(index)}
    >
      <${Icon} name=${row.icon ?? "right"} size=${18} />
      <span class="palette-label">${row.label}</span>
      <span class="muted">${row.note}</span>
      ${row.keys && html`<span class="keys">${shown(row.keys).map((key) => html`<kbd>${key}</kbd>`)}</span>`}
    </li>
  `;
  return html`
    <${Dialog} title=${t("Commands")} class="palette" onClose=${onClose} plain>
      <div class="palette-search">
        <${Icon} name="search" />
        <input
          class="input"
          role="combobox"
          aria-label=${t("Find a command or a session")}
          aria-expanded="true"
          aria-controls="palette-list"
          aria-activedescendant=${rows[at] ? `palette-${at}` : undefined}
          placeholder=${t("Find a command or a session")}
          autofocus
          value=${words}
          onInput=${type}
          onKeyDown=${press}
        />
      </div>
      <ul id="palette-list" class="palette-list" role="listbox" aria-label=${t("Found")} ref=${list}>
        ${rows.map(option)}
        ${!rows.length && html`<li class="muted palette-none">${t("No matches.")}</li>`}
      </ul>
    <//>
  `;
}

/**
 * @param {string} words
 * @param {Binding[]} commands
 * @param {SessionRow[]} sessions
 * @returns {Row[]}
 */
function matchingRows(words, commands, sessions) {
  const parts = words.toLowerCase().split(/\s+/).filter(Boolean);
  /** @param {string} text */
  const fits = (text) => parts.every((part) => text.toLowerCase().includes(part));
  const seen = new Set();
  const found = commands
    .filter((one) => !one.hidden && !seen.has(one.label) && seen.add(one.label))
    .filter((one) => fits(`${one.label} ${one.group ?? ""}`))
    .map((one) => ({ ...one, id: `c ${one.label}`, note: "" }));
  const talks = sessions
    .filter((one) => fits(`${one.title} ${one.id} ${one.cwd}`))
    .map((one) => ({
      id: `s ${one.id}`,
      label: one.title || t("Untitled"),
      icon: "chat",
      note: ago(one.updated),
      run: () => navigate(pathTo("chat", one.id)),
    }));
  return [...found, ...talks].slice(0, MOST);
}
