// What a search found, by session: each place leads into the timeline.
import { api } from "../../app/api.js";
import { Empty, Icon, Loading, Problem, Time } from "../../app/parts/basics.js";
import { plural } from "../../app/parts/format.js";
import { pathTo } from "../../app/router.js";
import { html, useEffect, useMemo, useState } from "../../app/ui.js";
import { addressOf, titleOf } from "./actions.js";
import { Marked, wordsOf } from "./marked.js";
import { Row } from "./row.js";
import { passes } from "./shelf.js";

const ROLES = { user: ["user", "You"], assistant: ["thought", "Hermes"], tool: ["tool", "A tool"] };

export function Hits({ query, found, filters, shelf }) {
  const pattern = useMemo(() => wordsOf(query), [query]);
  const known = useKnown(found.value?.hits ?? [], shelf.sessions);
  const named = shelf.matching.filter((one) => one.title && pattern && one.title.search(pattern) >= 0);
  if (found.error) return html`<${Problem} error=${found.error} retry=${found.again} />`;
  if (!found.value) return html`<${Loading} label="Searching" />`;
  const groups = grouped(found.value.hits).filter(([id]) => !known.get(id) || passes(known.get(id), filters, shelf.now));
  const hits = groups.reduce((sum, [, list]) => sum + list.length, 0);
  if (!groups.length && !named.length) {
    return found.fresh && html`<${Empty} icon="search" title="Nothing found">No message holds all of these words. Whole words and their beginnings are found.<//>`;
  }
  return html`<p class="unseen" role="status">${plural(hits, "place")} in ${plural(groups.length, "session")}</p>
    ${named.length > 0 && html`<h2 class="section-title">Named so</h2>
      <ul class="session-list">${named.slice(0, 5).map((session) => html`<${Row} key=${session.id} session=${session} shelf=${shelf} />`)}</ul>`}
    ${groups.length > 0 && html`<h2 class="section-title">Said in ${groups.length === 1 ? "one session" : `${groups.length} sessions`}</h2>`}
    <ul class="hit-groups" aria-busy=${found.busy}>${groups.map(([id, list]) => html`<li key=${id} class="hit-group">
      <a class="hit-title" href=${`#${pathTo("sessions", id)}`}>${titleOf(known.get(id) ?? { id, title: list[0].title })}</a>
      <ul>${list.map((hit) => html`<${Hit} key=${hit.seq} hit=${hit} query=${query} pattern=${pattern} />`)}</ul>
    </li>`)}</ul>`;
}

function Hit({ hit, query, pattern }) {
  const [icon, who] = ROLES[hit.role] ?? ["info", hit.role];
  const place = `#${pathTo("sessions", hit.session)}?${new URLSearchParams({ at: hit.seq, q: query })}`;
  return html`<li><a class="hit" href=${place}><${Icon} name=${icon} size=${16} label=${who} /><span class="hit-text"><${Marked} text=${hit.snippet} pattern=${pattern} /></span><${Time} at=${hit.ts} /></a></li>`;
}

/** Sessions by id: those of the list, and those that only the search knows of. */
function useKnown(hits, sessions) {
  const [fetched, setFetched] = useState(new Map());
  const known = useMemo(() => new Map([...fetched, ...sessions.map((one) => [one.id, one])]), [fetched, sessions]);
  const missing = [...new Set(hits.map((hit) => hit.session))].filter((id) => !known.has(id)).join("\n");
  useEffect(() => {
    if (!missing) return undefined;
    let wanted = true;
    Promise.all(missing.split("\n").map((id) => api.get(addressOf({ id })).then((answer) => answer.session, () => null))).then((list) => {
      if (wanted) setFetched((was) => new Map([...was, ...list.filter(Boolean).map((one) => [one.id, one])]));
    });
    return () => {
      wanted = false;
    };
  }, [missing]);
  return known;
}

function grouped(hits) {
  const groups = new Map();
  for (const hit of hits) groups.set(hit.session, [...(groups.get(hit.session) ?? []), hit]);
  return [...groups];
}
