// Search results by session: each leads into the timeline.
/** @import { SessionStore } from "./session_store.js" */
/** @import { Search } from "./list.js" */
/** @import { SearchHit, SessionQuery, SessionRow } from "../../types/page.d.ts" */
import { api, sessionPath } from "../../app/api.js";
import { Empty, Icon, Loading, Problem, Time } from "../../app/parts/basics.js";
import { linkTo } from "../../app/router.js";
import { t } from "../../app/translation.js";
import { html, useEffect, useMemo, useState } from "../../app/ui.js";
import { titleOf } from "./actions.js";
import { Marked, wordsOf } from "./highlighted_words.js";
import { Row } from "./row.js";
import { passes } from "./session_store.js";

/**
 * @typedef {object} SearchResultsProps
 * @property {string} query
 * @property {Search} found
 * @property {SessionQuery} filters
 * @property {SessionStore} store
 */

/** @type {Record<string, [string, string]>} */
const ROLES = {
  user: ["user", t("You")],
  assistant: ["thought", "Hermes"],
  tool: ["tool", t("A tool")],
};
const NAMED = 5; // sessions that are shown for their name

/** @param {SearchResultsProps} props */
export function SearchResults({ query, found, filters, store }) {
  const pattern = useMemo(() => wordsOf(query), [query]);
  const known = useSessionsById(found.value?.hits ?? [], store.sessions);
  const named = store.matching.filter(
    (one) => one.title && pattern && one.title.search(pattern) >= 0,
  );
  if (found.error) return html`<${Problem} error=${found.error} retry=${found.again} />`;
  if (!found.value) return html`<${Loading} label=${t("Searching")} />`;
  /** @param {SessionRow | undefined} session */
  const isWanted = (session) => !session || passes(session, filters, store.now);
  const groups = grouped(found.value.hits).filter(([id]) => isWanted(known.get(id)));
  if (!groups.length && !named.length) return found.fresh && html`<${NoResults} />`;
  const hits = groups.reduce((sum, [, list]) => sum + list.length, 0);
  const count = groups.length;
  const matches = t("{count} match in {sessions}", "{count} matches in {sessions}", {
    count: hits,
    sessions: t("{count} session", "{count} sessions", { count }),
  });
  const title = t("In messages of one session", "In messages of {count} sessions", { count });
  return html`
    <p class="unseen" role="status">${matches}</p>
    ${
      named.length > 0 &&
      html`
      <h2 class="section-title">${t("In titles")}</h2>
      <ul class="session-list">
        ${named.slice(0, NAMED).map((one) => html`<${Row} key=${one.id} session=${one} store=${store} />`)}
      </ul>
    `
    }
    ${groups.length > 0 && html`<h2 class="section-title">${title}</h2>`}
    <ul class="hit-groups" aria-busy=${found.busy}>
      ${groups.map(([id, list]) => {
        const session = known.get(id) ?? { id, title: list[0].title };
        return html`<${Group} key=${id} session=${session} list=${list} query=${query} pattern=${pattern} />`;
      })}
    </ul>
  `;
}

function NoResults() {
  return html`
    <${Empty} icon="search" title=${t("Nothing found")}>
      ${t("No message contains all of these words. Whole words and beginnings of words are found.")}
    <//>
  `;
}

/**
 * @param {{ session: { id: string, title: string }, list: SearchHit[], query: string, pattern: RegExp | null }} props
 */
function Group({ session, list, query, pattern }) {
  return html`
    <li class="hit-group">
      <a class="hit-title" href=${linkTo("sessions", session.id)}>${titleOf(session)}</a>
      <ul>${list.map((hit) => html`<${Hit} key=${hit.seq} hit=${hit} query=${query} pattern=${pattern} />`)}</ul>
    </li>
  `;
}

/** @param {{ hit: SearchHit, query: string, pattern: RegExp | null }} props */
function Hit({ hit, query, pattern }) {
  const [icon, who] = ROLES[hit.role] ?? ["info", hit.role];
  const place = new URLSearchParams({ at: String(hit.seq), q: query });
  return html`
    <li>
      <a class="hit" href=${`${linkTo("sessions", hit.session)}?${place}`}>
        <${Icon} name=${icon} size=${16} label=${who} />
        <span class="hit-text"><${Marked} text=${hit.snippet} pattern=${pattern} /></span>
        <${Time} at=${hit.ts} />
      </a>
    </li>
  `;
}

/**
 * Sessions by id: those of the list, and those that only the search knows of.
 * @param {SearchHit[]} hits
 * @param {SessionRow[]} sessions
 */
function useSessionsById(hits, sessions) {
  const [fetched, setFetched] = useState(/** @type {Map<string, SessionRow>} */ (new Map()));
  const known = useMemo(() => new Map([...fetched, ...byId(sessions)]), [fetched, sessions]);
  const missing = [...new Set(hits.map((hit) => hit.session))]
    .filter((id) => !known.has(id))
    .join("\n");
  useEffect(() => {
    if (!missing) return undefined;
    let wanted = true;
    Promise.all(missing.split("\n").map(sessionOf)).then((list) => {
      if (wanted)
        setFetched((was) => new Map([...was, ...byId(list.filter((one) => one !== null))]));
    });
    return () => {
      wanted = false;
    };
  }, [missing]);
  return known;
}

/**
 * A session, or null where it can't be had.
 * @param {string} id
 */
function sessionOf(id) {
  return api.get(sessionPath(id)).then(
    (answer) => answer.session,
    () => null,
  );
}

/** @param {SearchHit[]} hits */
function grouped(hits) {
  /** @type {Map<string, SearchHit[]>} */
  const groups = new Map();
  for (const hit of hits) groups.set(hit.session, [...(groups.get(hit.session) ?? []), hit]);
  return [...groups];
}

/**
 * @param {SessionRow[]} sessions
 * @returns {[string, SessionRow][]}
 */
function byId(sessions) {
  return sessions.map((one) => [one.id, one]);
}
