// The list of sessions: search in what was said, filters, and what can be done with each.
/** @import { SessionStore } from "./session_store.js" */
/** @import { Ref, Route, SessionQuery, SessionRow } from "../../types/page.d.ts" */
import { api, may, sessionPath } from "../../app/api.js";
import { useKeys } from "../../app/keys.js";
import { Button, Empty, Icon, Problem } from "../../app/parts/basics.js";
import { navigate, pathTo } from "../../app/router.js";
import { t } from "../../app/translation.js";
import { html, useEffect, useElement, useMemo, useScreenfulFirst, useState } from "../../app/ui.js";
import { Options, SearchBox } from "../inputs.js";
import { useLoaded } from "../loading.js";
import { Row, removeRow, renameRow } from "./row.js";
import { SearchResults } from "./search_results.js";
import { COSTS, DATES, STATES, useSessionStore } from "./session_store.js";

/** @typedef {ReturnType<typeof useSearch>} Search */

const PAUSE_MS = 80; // milliseconds without a key before a search begins
const MOST_HITS = 100;
const SCREENFUL = 14; // sessions
const FILTERS = /** @type {const} */ (["surface", "state", "cost", "date"]);
const NO_FILTERS = { surface: "", state: "", cost: "", date: "" };

/** @param {{ route: Route }} props */
export function SessionList({ route }) {
  const given = useMemo(() => readQuery(route.query), [route.query]);
  const filters = useMemo(
    () => given,
    FILTERS.map((name) => given[name]),
  );
  const store = useSessionStore(filters);
  const found = useSearch(given.q);
  const search = /** @type {Ref<HTMLInputElement>} */ (useElement());
  const list = /** @type {Ref<HTMLElement>} */ (useElement());
  /** @param {Partial<SessionQuery>} more */
  const change = (more) => navigate(withQuery({ ...given, ...more }), { replace: true });
  useSessionKeys({ search, list, store });
  const isNarrowed = FILTERS.some((name) => given[name]);
  return html`
    <div class="page sessions">
      <header class="page-head">
        <h1>${t("Sessions")}</h1>
        ${may("chat") && html`<a class="button primary" href="#/chat"><${Icon} name="plus" />${t("New chat")}</a>`}
      </header>
      <div class="toolbar" role="search">
        <${SearchBox}
          field=${search}
          label=${t("Search messages")}
          value=${given.q}
          onInput=${(/** @type {string} */ q) => change({ q })}
        />
        <${Filters} given=${given} change=${change} sessions=${store.sessions} />
        ${
          isNarrowed &&
          html`
          <${Button} kind="quiet" icon="close" onClick=${() => change(NO_FILTERS)}>${t("Clear filters")}<//>
        `
        }
      </div>
      ${store.error && html`<${Problem} error=${store.error} retry=${store.refresh} />`}
      <div ref=${list}>
        ${
          given.q.trim()
            ? html`<${SearchResults} query=${given.q} found=${found} filters=${filters} store=${store} />`
            : html`<${All} store=${store} isNarrowed=${isNarrowed} />`
        }
      </div>
    </div>
  `;
}

/**
 * @param {{ given: SessionQuery, change: (more: Partial<SessionQuery>) => void, sessions: SessionRow[] }} props
 */
function Filters({ given, change, sessions }) {
  const surfaces = [...new Set(sessions.map((one) => one.surface).filter(Boolean))].sort();
  /**
   * @param {keyof SessionQuery} name
   * @param {string} label
   * @param {string[][]} choices
   */
  const select = (name, label, choices) => html`
    <select
      class="input"
      aria-label=${label}
      value=${given[name]}
      onChange=${(event) => change({ [name]: event.target.value })}
    >
      <${Options} choices=${choices} value=${given[name]} />
    </select>
  `;
  return html`
    <div class="filters">
      ${select("surface", t("Started in"), [["", t("Anywhere")], ...surfaces.map((one) => [one, one])])}
      ${select("state", t("State"), STATES)}
      ${select("cost", t("Cost"), COSTS)}
      ${select("date", t("Last used"), DATES)}
    </div>
  `;
}

/** @param {{ store: SessionStore, isNarrowed: boolean }} props */
function All({ store, isNarrowed }) {
  const drawn = useScreenfulFirst(store.shown.length, SCREENFUL);
  if (!store.shown.length && !store.busy && !store.error)
    return html`<${NoSessions} isNarrowed=${isNarrowed} />`;
  return html`
    <ul class="session-list" aria-busy=${store.busy}>
      ${store.shown
        .slice(0, drawn)
        .map((session) => html`<${Row} key=${session.id} session=${session} store=${store} />`)}
    </ul>
    ${
      store.hasMore &&
      html`
      <div class="row center"><${Button} busy=${store.busy} onClick=${store.loadMore}>${t("Show more")}<//></div>
    `
    }
  `;
}

/** @param {{ isNarrowed: boolean }} props */
function NoSessions({ isNarrowed }) {
  if (isNarrowed)
    return html`<${Empty} icon="filter" title=${t("No matches")}>${t("No session matches these filters.")}<//>`;
  return html`
    <${Empty} icon="sessions" title=${t("No sessions yet")}>
      ${t("Your conversations with Hermes, here, in the terminal or in a chat app, appear here.")}
    <//>
  `;
}

/**
 * What was found, a moment after the last key.
 * @param {string} query
 */
function useSearch(query) {
  const [settled, setSettled] = useState(query.trim());
  useEffect(() => {
    const timer = setTimeout(() => setSettled(query.trim()), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [query]);
  const found = useLoaded(async () => {
    if (!settled) return { query: settled, hits: [] };
    const { hits } = await api.get("/api/search", { q: settled, limit: MOST_HITS });
    return { query: settled, hits };
  }, [settled]);
  return { ...found, fresh: settled === query.trim() && found.value?.query === settled };
}

/**
 * Rows are gone through with j and k or the arrows; the other keys act on the one that has the focus.
 * @param {{ search: Ref<HTMLInputElement>, list: Ref<HTMLElement>, store: SessionStore }} view
 */
function useSessionKeys({ search, list, store }) {
  const focused = () => {
    const id = document.activeElement?.closest("[data-session]")?.getAttribute("data-session");
    return store.sessions.find((session) => session.id === id);
  };
  /** @param {number} step */
  const move = (step) => () => {
    const links = /** @type {HTMLElement[]} */ ([
      ...list.current.querySelectorAll(".session-main, .hit"),
    ]);
    const last = links.length - 1;
    const at = links.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    const first = step > 0 ? 0 : last;
    links[at < 0 ? first : Math.min(Math.max(at + step, 0), last)]?.focus();
  };
  /** @param {(session: SessionRow) => unknown} work */
  const withFocused = (work) => () => {
    const session = focused();
    return session ? void work(session) : false;
  };
  /** @param {Event} event */
  const down = (event) => (event.target instanceof HTMLSelectElement ? false : move(1)());
  const chat = withFocused((session) => navigate(pathTo("chat", session.id)));
  const rename = withFocused((session) => may("chat") && renameRow(session, store));
  const download = withFocused((session) => location.assign(sessionPath(session.id, "export")));
  const remove = withFocused((session) => may("admin") && removeRow(session, store));
  const group = t("Sessions");
  useKeys([
    { keys: "/", label: t("Search sessions"), group, run: () => search.current.focus() },
    { keys: "j", label: t("Next session"), group, run: move(1) },
    { keys: "k", label: t("Previous session"), group, run: move(-1) },
    { keys: "ArrowDown", label: t("Next session"), group, hidden: true, typing: true, run: down },
    { keys: "ArrowUp", label: t("Previous session"), group, hidden: true, run: move(-1) },
    { keys: "o", label: t("Open the session in chat"), group, run: chat },
    { keys: "r", label: t("Rename the session"), group, run: rename },
    { keys: "x", label: t("Export the session"), group, run: download },
    { keys: "Delete", label: t("Delete the session"), group, run: remove },
  ]);
}

/**
 * @param {URLSearchParams} query
 * @returns {SessionQuery}
 */
function readQuery(query) {
  const read = (/** @type {string} */ name) => query.get(name) ?? "";
  return {
    q: read("q"),
    surface: read("surface"),
    state: read("state"),
    cost: read("cost"),
    date: read("date"),
  };
}

/** @param {SessionQuery} given */
function withQuery(given) {
  const set = Object.entries(given).filter(([, value]) => value);
  return set.length ? `/sessions?${new URLSearchParams(set)}` : "/sessions";
}
