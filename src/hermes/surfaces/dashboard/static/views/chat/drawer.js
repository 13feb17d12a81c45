// The list of sessions beside the chat: pinned, by date, in folders; searchable by title and content; several at once.
/** @import { Ref, SearchHit, SessionRow } from "../../types/page.d.ts" */
import { may } from "../../app/api.js";
import { Button, Dialog, Icon, Loading } from "../../app/parts.js";
import { waiting } from "../../app/pending_requests.js";
import { pathTo } from "../../app/router.js";
import { t } from "../../app/translation.js";
import {
  html,
  useEffect,
  useElement,
  useScreenfulFirst,
  useState,
  useStore,
} from "../../app/ui.js";
import { archive, download, FORMATS, move, removeAll } from "../sessions/filing.js";
import { DrawerRow } from "./drawer_row.js";
import { ARCHIVE, byDate, useFound, useListed } from "./drawer_store.js";

const SCREENFUL = 14; // sessions

/**
 * @typedef {object} DrawerProps
 * @property {string} current
 * @property {boolean} open
 * @property {boolean} isOver whether it lies over the chat
 * @property {() => void} onClose
 * @property {string} words
 * @property {(words: string) => void} setWords
 */

/** @param {DrawerProps} props */
export function Drawer({ current, open, isOver, onClose, words, setWords }) {
  const box = /** @type {Ref<HTMLElement>} */ (useElement());
  useEffect(() => (isOver ? borrowFocus(box.current) : undefined), [isOver]);
  /** @param {KeyboardEvent} event */
  const press = (event) => {
    if (event.key !== "Escape" || !isOver || isInDialog(event)) return;
    event.preventDefault(); // here it does not stop a turn
    onClose();
  };
  const [place, setPlace] = useState("");
  const [selected, setSelected] = useState(/** @type {Set<string> | null} */ (null));
  const { listed, load } = useListed(place);
  const found = useFound(words);
  const asking = useStore(waiting);
  const folders = listed?.folders ?? [];
  useEffect(() => {
    if (place && place !== ARCHIVE && listed && !folders.includes(place)) setPlace("");
  }, [listed]);
  /** @param {SessionRow} session */
  const toggle = (session) => {
    const now = new Set(selected);
    if (!now.delete(session.id)) now.add(session.id);
    setSelected(now);
  };
  /** @param {SessionRow} one */
  const row = (one) => html`<${DrawerRow} key=${one.id} session=${one} current=${current}
    runs=${listed?.running.has(one.id) ?? false} selected=${selected} onSelect=${toggle} onClick=${onClose}
    asks=${asking.some((ask) => ask.session_id === one.id || ask.root_session_id === one.id)} />`;
  const all = [...(listed?.pinned ?? []), ...(listed?.sessions ?? []), ...(found?.sessions ?? [])];
  const chosen = [...new Map(all.map((one) => [one.id, one])).values()].filter((one) =>
    selected?.has(one.id),
  );
  return html`<aside ref=${box} class=${`drawer ${open ? "open" : ""}`} aria-label=${t("Sessions")} onKeyDown=${press}>
    <div class="drawer-head"><a class="button primary" href="#/chat" onClick=${onClose}><${Icon}
      name="plus" />${t("New chat")}</a><${Button} kind="quiet" class="drawer-close" icon="close"
        label=${t("Close the list")}
        onClick=${onClose} /></div>
    <input class="input" type="search" placeholder=${t("Search")} aria-label=${t("Search sessions")} value=${words}
      onInput=${(event) => setWords(event.target.value)} />
    <div class="drawer-tools">
      <select class="input" aria-label=${t("Show")} value=${place} onChange=${(event) => setPlace(event.target.value)}>
        <option value="">${t("All sessions")}</option>
        ${folders.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}
        <option value=${ARCHIVE}>${t("Archived")}</option>
      </select>
      <${Button} kind="quiet" aria-pressed=${String(selected !== null)}
        onClick=${() => setSelected(selected ? null : new Set())}>${selected ? t("Done") : t("Select")}<//>
    </div>
    <nav class="drawer-list" aria-label=${t("Recent sessions")}>
      ${
        listed === null
          ? html`<${Loading} />`
          : words.trim()
            ? html`<${Found} found=${found} row=${row} words=${words} listed=${listed.sessions} onClose=${onClose} />`
            : html`<${Groups} pinned=${place ? [] : listed.pinned} sessions=${listed.sessions} row=${row}
                isEmpty=${Boolean(place)} />`
      }
      ${
        listed?.more &&
        !words.trim() &&
        html`<${Button} kind="quiet" onClick=${() => load(listed.sessions.at(-1)?.updated)}>${t("Show older")}<//>`
      }
    </nav>
    ${
      selected &&
      html`<${Bulk} sessions=${chosen} isArchive=${place === ARCHIVE} onDone=${() => setSelected(null)} />`
    }
  </aside>`;
}

/** @param {Event} event */
function isInDialog({ target }) {
  return target instanceof Element && target.closest("dialog") !== null;
}

/**
 * Takes the focus to a list that lies over the chat. Returns a function that gives it back.
 * @param {HTMLElement} list
 */
function borrowFocus(list) {
  const before = document.activeElement;
  list.querySelector(/** @type {"button"} */ (".drawer-close"))?.focus();
  return () => {
    if (before instanceof HTMLElement && before.isConnected) before.focus();
  };
}

/**
 * @typedef {object} GroupsProps
 * @property {SessionRow[]} pinned
 * @property {SessionRow[]} sessions
 * @property {(session: SessionRow) => unknown} row
 * @property {boolean} isEmpty
 */

/** @param {GroupsProps} props */
function Groups({ pinned, sessions, row, isEmpty }) {
  const top = new Set(pinned.map((one) => one.id));
  const drawn = useScreenfulFirst(sessions.length, SCREENFUL);
  const others = sessions.filter((one) => one.kind !== "child" && !top.has(one.id)).slice(0, drawn);
  /** @type {[string, SessionRow[]][]} */
  const groups = pinned.length ? [[t("Pinned"), pinned], ...byDate(others)] : byDate(others);
  if (!groups.length)
    return html`<p class="muted drawer-none">${isEmpty ? t("Nothing here.") : t("No sessions yet.")}</p>`;
  return groups.map(
    ([name, list]) => html`<section key=${name} aria-label=${name}>
      <h3 class="drawer-part">${name}</h3>${list.map(row)}</section>`,
  );
}

/**
 * @typedef {object} FoundProps
 * @property {{ sessions: SessionRow[], hits: SearchHit[] } | null} found
 * @property {(session: SessionRow) => unknown} row
 * @property {string} words
 * @property {SessionRow[]} listed
 * @property {() => void} onClose
 */

/** @param {FoundProps} props */
function Found({ found, row, words, listed, onClose }) {
  const wanted = words.trim().toLowerCase();
  const titles =
    found?.sessions ??
    listed.filter((one) => `${one.title} ${one.cwd}`.toLowerCase().includes(wanted));
  const hits = found?.hits ?? [];
  if (found && !titles.length && !hits.length)
    return html`<p class="muted drawer-none">${t("No matches.")}</p>`;
  return html`${titles.map(row)}
    ${hits.length > 0 && html`<h3 class="drawer-part">${t("In messages")}</h3>`}
    ${hits.map(
      (hit) => html`<a key=${`${hit.session} ${hit.seq}`} class="drawer-row"
        href=${`#${pathTo("chat", hit.session)}?at=${hit.seq}`} onClick=${onClose}><span class="drawer-title">
          <span>${hit.title || t("Untitled")}</span></span><span class="drawer-snippet">${hit.snippet}</span></a>`,
    )}`;
}

/**
 * What can be done with the selected sessions.
 * @param {{ sessions: SessionRow[], isArchive: boolean, onDone: () => void }} props
 */
function Bulk({ sessions, isArchive, onDone }) {
  const [exporting, setExporting] = useState(false);
  const none = !sessions.length;
  /** @param {() => Promise<boolean>} work */
  const act = (work) => async () => (await work()) && onDone();
  return html`<div class="drawer-bulk" role="toolbar" aria-label=${t("Selected sessions")}>
    <span class="muted" role="status">
      ${t("{count} selected", "{count} selected", { count: sessions.length })}</span>
    ${
      may("chat") &&
      html`<${Button} icon="archive" kind="quiet" disabled=${none}
        label=${isArchive ? t("Take out of the archive") : t("Archive")}
        onClick=${act(() => archive(sessions, !isArchive))} />
      <${Button} icon="folder" kind="quiet" disabled=${none} label=${t("Move to a folder")}
        onClick=${act(() => move(sessions))} />`
    }
    <${Button} icon="download" kind="quiet" disabled=${none} label=${t("Export")} onClick=${() => setExporting(true)} />
    ${
      may("admin") &&
      html`<${Button} icon="trash" kind="quiet" disabled=${none} label=${t("Delete")}
        onClick=${act(() => removeAll(sessions))} />`
    }
    ${
      exporting &&
      html`<${Dialog} title=${t("Export")} class="sheet" onClose=${() => setExporting(false)}><ul class="more">
        ${FORMATS.map(
          ([format, label]) =>
            html`<li key=${format}><button type="button" class="more-row" onClick=${() => {
              setExporting(false);
              download(sessions, format);
            }}><${Icon} name="download" />${label}</button></li>`,
        )}</ul><//>`
    }
  </div>`;
}
