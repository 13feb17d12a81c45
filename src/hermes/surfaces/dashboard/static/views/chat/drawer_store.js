// What the drawer lists: sessions by page, the pinned ones, the folders, and what search finds.
/** @import { SearchHit, SessionRow } from "../../types/page.d.ts" */

import { api } from "../../app/api.js";
import { month } from "../../app/parts/format.js";
import { changes } from "../../app/pending_requests.js";
import { t } from "../../app/translation.js";
import { useCallback, useEffect, useRef, useState, useStore } from "../../app/ui.js";

const PAGE = 40;
const MOST = 500; // sessions of one request
const SETTLE_MS = 200; // milliseconds in which changes are gathered
const PAUSE_MS = 80; // milliseconds without a key before a search begins
export const ARCHIVE = "\u0000archive";

/**
 * @typedef {object} Listed
 * @property {SessionRow[]} sessions
 * @property {SessionRow[]} pinned
 * @property {string[]} folders
 * @property {Set<string>} running
 * @property {boolean} more
 */

/**
 * The sessions of a place: "" for all, a folder, or `ARCHIVE`. Loaded again whenever something changes.
 * @param {string} place
 */
export function useListed(place) {
  const [listed, setListed] = useState(/** @type {Listed | null} */ (null));
  const changed = useStore(changes);
  const count = useRef(0);
  count.current = listed?.sessions.length ?? 0;
  const load = useCallback(
    async (/** @type {number | undefined} */ before = undefined) => {
      const where =
        place === ARCHIVE ? { archived: true } : place ? { folder: place } : /** @type {{}} */ ({});
      // Everything that is shown is loaded again: any of it may have been renamed, moved or deleted.
      const limit = before ? PAGE : Math.min(Math.max(count.current, PAGE), MOST);
      const query = { limit, before, ...where };
      const answer = await api.get("/api/sessions", query).catch(() => null); // the frame says why
      setListed((now) => joined(answer, now, before !== undefined));
    },
    [place],
  );
  useEffect(() => {
    setListed((now) => now && { ...now, sessions: [], more: false });
    load();
  }, [place]);
  useEffect(() => {
    if (!changed.count) return undefined;
    const timer = setTimeout(() => load(), SETTLE_MS);
    return () => clearTimeout(timer);
  }, [changed]);
  return { listed, load };
}

/**
 * @param {import("../../types/page.d.ts").Answer<"GET", "/api/sessions"> | null} answer
 * @param {Listed | null} now
 * @param {boolean} isOlder
 * @returns {Listed}
 */
function joined(answer, now, isOlder) {
  const before = now ?? { sessions: [], pinned: [], folders: [], running: new Set(), more: false };
  if (!answer) return before;
  if (isOlder)
    return { ...before, sessions: [...before.sessions, ...answer.sessions], more: answer.more };
  const { sessions, pinned, folders, more } = answer;
  return { sessions, pinned, folders, running: new Set(answer.running), more };
}

/**
 * Sessions by title and messages by their words, of all sessions; null while nothing is looked for.
 * @param {string} words
 */
export function useFound(words) {
  const [found, setFound] = useState(
    /** @type {{ sessions: SessionRow[], hits: SearchHit[] } | null} */ (null),
  );
  useEffect(() => {
    if (words.trim().length < 2) return setFound(null);
    let isWanted = true; // until other words are typed
    const search = () =>
      api.get("/api/search", { q: words, limit: 30 }).then(
        (answer) => isWanted && setFound(answer),
        () => isWanted && setFound({ sessions: [], hits: [] }),
      );
    const timer = setTimeout(search, PAUSE_MS);
    return () => {
      isWanted = false;
      clearTimeout(timer);
    };
  }, [words]);
  return found;
}

/**
 * Sessions by when they were last used: Today, Yesterday, Previous 7 days, then by month.
 * @param {SessionRow[]} sessions the most recently used first
 * @param {Date} [now]
 * @returns {[string, SessionRow[]][]}
 */
export function byDate(sessions, now = new Date()) {
  const midnight = new Date(now.getFullYear(), now.getMonth(), now.getDate()).getTime();
  const day = 86_400_000;
  /** @param {SessionRow} one */
  const name = (one) => {
    const at = one.updated * 1000;
    if (at >= midnight) return t("Today");
    if (at >= midnight - day) return t("Yesterday");
    if (at >= midnight - 7 * day) return t("Previous 7 days");
    return month(at);
  };
  /** @type {Map<string, SessionRow[]>} */
  const groups = new Map();
  for (const one of sessions) groups.set(name(one), [...(groups.get(name(one)) ?? []), one]);
  return [...groups];
}
