// The sessions that are known to the page: loaded page by page, kept fresh by what happens, narrowed by filters.
/** @import { Failure, SessionQuery, SessionRow } from "../../types/page.d.ts" */
import { api, asFailure } from "../../app/api.js";
import { changes, waiting } from "../../app/pending_requests.js";
import { t } from "../../app/translation.js";
import { useEffect, useMemo, useRef, useState, useStore } from "../../app/ui.js";

/** @typedef {ReturnType<typeof useSessionStore>} SessionStore */

const PAGE = 100;
const ENOUGH = 50; // matching sessions that are looked for before the user asks for more
const SETTLE_MS = 400; // milliseconds in which changes are gathered
const DAY = 86_400;

export const COSTS = [
  ["", t("Any cost")],
  ["0.01", t("over {amount}", { amount: "$0.01" })],
  ["0.1", t("over {amount}", { amount: "$0.10" })],
  ["1", t("over {amount}", { amount: "$1" })],
  ["10", t("over {amount}", { amount: "$10" })],
];
export const DATES = [
  ["", t("Any time")],
  ["1", t("Last 24 hours")],
  ["7", t("Last 7 days")],
  ["30", t("Last 30 days")],
  ["365", t("Last year")],
];
export const STATES = [
  ["", t("Any state")],
  ["running", t("Running")],
  ["waiting", t("Waiting for you")],
];

/**
 * Whether a session passes the filters. `now` holds who is at work and who waits.
 * @param {SessionRow} session
 * @param {SessionQuery} filters
 * @param {{ running: Set<string>, waiting: Set<string> }} now
 */
export function passes(session, filters, now) {
  if (filters.surface && session.surface !== filters.surface) return false;
  if (filters.cost && session.cost_usd <= Number(filters.cost)) return false;
  if (filters.date && session.updated < Date.now() / 1000 - Number(filters.date) * DAY)
    return false;
  if (filters.state === "running" && !now.running.has(session.id)) return false;
  if (filters.state === "waiting" && !now.waiting.has(session.id)) return false;
  return true;
}

/**
 * Everything the list shows: {sessions, matching, more, busy, error, now, loadMore, refresh, replace, drop}.
 * @param {SessionQuery} filters
 */
export function useSessionStore(filters) {
  const [store, setStore] = useState({
    sessions: /** @type {SessionRow[]} */ ([]),
    more: true,
    busy: false,
    error: /** @type {Failure | null} */ (null),
    wanted: ENOUGH,
  });
  const [running, setRunning] = useState(() => /** @type {Set<string>} */ (new Set()));
  const open = useStore(waiting);
  const now = useMemo(() => {
    const asking = open.flatMap((one) => [one.session_id, one.root_session_id]);
    return { running, waiting: new Set(asking) };
  }, [running, open]);
  const latest = useRef(store);
  latest.current = store;
  /** @param {Partial<typeof store>} more */
  const change = (more) => setStore((was) => ({ ...was, ...more }));

  /** @param {number} [before] */
  const loadPage = async (before) => {
    change({ busy: true });
    try {
      const page = await api.get("/api/sessions", { limit: PAGE, before });
      setStore((was) => ({
        ...was,
        sessions: merged(page.sessions, was.sessions),
        more: before ? page.more : was.more && page.more,
        busy: false,
        error: null,
      }));
    } catch (error) {
      change({ busy: false, error: asFailure(error) });
    }
  };
  const refresh = async () => {
    loadPage();
    const status = await api.get("/api/status").catch(() => null); // the list says what is wrong
    if (status) setRunning(new Set(status.running));
  };
  useRefreshOnChange(refresh);

  const matching = useMemo(
    () => store.sessions.filter((one) => passes(one, filters, now)),
    [store.sessions, filters, now],
  );
  useEffect(() => {
    const canLoad = store.more && !store.busy && !store.error && store.sessions.length;
    if (canLoad && matching.length < store.wanted) loadPage(store.sessions.at(-1)?.updated);
  }, [matching.length, store]);
  useEffect(() => change({ wanted: ENOUGH }), [filters]);

  /** @param {(sessions: SessionRow[]) => SessionRow[]} work */
  const edit = (work) => change({ sessions: work(latest.current.sessions) });
  return {
    ...store,
    matching,
    now,
    refresh,
    shown: matching.slice(0, store.wanted),
    hasMore: matching.length > store.wanted || store.more,
    loadMore: () => change({ wanted: store.wanted + ENOUGH }),
    replace: (/** @type {SessionRow} */ session) =>
      edit((list) => list.map((one) => (one.id === session.id ? session : one))),
    drop: (/** @type {SessionRow} */ session) =>
      edit((list) => list.filter((one) => one.id !== session.id)),
  };
}

/**
 * Calls `refresh` now, and soon after something happened to a session.
 * @param {() => void} refresh
 */
function useRefreshOnChange(refresh) {
  const current = useRef(refresh);
  current.current = refresh;
  useEffect(() => {
    let timer = 0;
    const soon = () => {
      clearTimeout(timer);
      timer = setTimeout(() => current.current(), SETTLE_MS);
    };
    current.current();
    const unwatch = changes.watch(soon);
    return () => {
      clearTimeout(timer);
      unwatch();
    };
  }, []);
}

/**
 * Both lists as one, the most recently used first; the fresh one counts.
 * @param {SessionRow[]} fresh
 * @param {SessionRow[]} old
 */
function merged(fresh, old) {
  const all = new Map([...old, ...fresh].map((session) => [session.id, session]));
  return [...all.values()].sort((a, b) => b.updated - a.updated || (a.id < b.id ? 1 : -1));
}
