// The list of sessions beside the chat: newest first, searchable by title and content.
/** @import { SearchHit, SessionRow } from "../../types/page.d.ts" */
import { api } from "../../app/api.js";
import { Button, Icon, Loading, Time } from "../../app/parts.js";
import { changes, waiting } from "../../app/pending_requests.js";
import { pathTo } from "../../app/router.js";
import { html, useCallback, useEffect, useState, useStore } from "../../app/ui.js";

const PAGE = 40;
const PAUSE_MS = 200; // milliseconds

/**
 * @typedef {object} DrawerProps
 * @property {string} current
 * @property {boolean} open
 * @property {() => void} onClose
 * @property {string} words
 * @property {(words: string) => void} setWords
 */

/** @param {DrawerProps} props */
export function Drawer({ current, open, onClose, words, setWords }) {
  const [sessions, setSessions] = useState(/** @type {SessionRow[] | null} */ (null));
  const [more, setMore] = useState(false);
  const [hits, setHits] = useState(/** @type {SearchHit[] | null} */ (null));
  const changed = useStore(changes);
  const asking = useStore(waiting);
  const load = useCallback(async (/** @type {number | undefined} */ before = undefined) => {
    try {
      const answer = await api.get("/api/sessions", { limit: PAGE, before });
      setSessions((now) =>
        before ? [...(now ?? []), ...answer.sessions] : merged(answer.sessions, now),
      );
      setMore(answer.more);
    } catch {
      setSessions((now) => now ?? []);
    }
  }, []);
  useEffect(() => {
    const timer = setTimeout(() => load(), sessions ? PAUSE_MS : 0);
    return () => clearTimeout(timer);
  }, [changed]);
  useEffect(() => {
    if (words.trim().length < 2) return setHits(null);
    let wanted = true; // until other words are typed
    /** @param {SearchHit[]} found */
    const show = (found) => wanted && setHits(found);
    const search = () =>
      api.get("/api/search", { q: words, limit: 30 }).then(
        (answer) => show(answer.hits),
        () => show([]),
      );
    const timer = setTimeout(search, PAUSE_MS);
    return () => {
      wanted = false;
      clearTimeout(timer);
    };
  }, [words]);
  const wanted = words.trim().toLowerCase();
  const shown = (sessions ?? []).filter(
    (one) =>
      (one.kind !== "child" || one.id === current) &&
      (!wanted || `${one.title} ${one.cwd}`.toLowerCase().includes(wanted)),
  );
  return html`<aside class=${`drawer ${open ? "open" : ""}`} aria-label="Sessions">
    <div class="drawer-head"><a class="button primary" href="#/chat" onClick=${onClose}><${Icon}
      name="plus" />New chat</a><${Button} kind="quiet" class="drawer-close" icon="close" label="Close the list"
        onClick=${onClose} /></div>
    <input class="input" type="search" placeholder="Search" aria-label="Search sessions" value=${words}
      onInput=${(event) => setWords(event.target.value)} />
    <nav class="drawer-list" aria-label="Recent sessions">
      ${
        sessions === null
          ? html`<${Loading} />`
          : shown.map(
              (one) => html`<${Row} key=${one.id} session=${one} current=${current}
          asks=${asking.some((ask) => ask.session_id === one.id || ask.root_session_id === one.id)}
            onClick=${onClose} />`,
            )
      }
      ${
        hits &&
        html`<h3 class="drawer-part">In messages</h3>
        ${hits.map(
          (hit) => html`<a key=${`${hit.session} ${hit.seq}`} class="drawer-row"
          href=${`#${pathTo("chat", hit.session)}?at=${hit.seq}`} onClick=${onClose}><span class="drawer-title">
            <span>${hit.title || "Untitled"}</span></span><span class="drawer-snippet">${hit.snippet}</span></a>`,
        )}
              ${!hits.length && html`<p class="muted">No matches.</p>`}`
      }
      ${
        sessions &&
        !shown.length &&
        !hits &&
        html`<p class="muted drawer-none">${wanted ? "No matching titles." : "No sessions yet."}</p>`
      }
      ${
        more &&
        !wanted &&
        html`<${Button} kind="quiet" onClick=${() => load(sessions?.at(-1)?.updated)}>Show older<//>`
      }
    </nav>
  </aside>`;
}

/** @param {{ session: SessionRow, current: string, asks: boolean, onClick: () => void }} props */
function Row({ session, current, asks, onClick }) {
  const here = session.id === current;
  return html`<a class=${`drawer-row ${here ? "current" : ""}`} href=${`#${pathTo("chat", session.id)}`}
    aria-current=${here ? "page" : undefined} onClick=${onClick}>
    <span class="drawer-title">${
      asks &&
      html`<span class="dot warn" role="img"
      aria-label="waiting for you" />`
    }<span>${session.title || "Untitled"}</span></span>
    <span class="drawer-note"><${Time} at=${session.updated} />
      ${session.surface && session.surface !== "dashboard" && html`<span>${session.surface}</span>`}</span></a>`;
}

/**
 * A newer first page over what was listed before.
 * @param {SessionRow[]} first
 * @param {SessionRow[] | null} before
 */
function merged(first, before) {
  const known = new Set(first.map((one) => one.id));
  const oldest = first[first.length - 1]?.updated ?? 0;
  return [...first, ...(before ?? []).filter((one) => !known.has(one.id) && one.updated < oldest)];
}
