// What a search found, by session: each place leads into the timeline.
import { api } from "../../app/api.js";
import { Empty, Icon, Loading, Problem, Time } from "../../app/parts/basics.js";
import { plural } from "../../app/parts/format.js";
import { linkTo } from "../../app/router.js";
import { html, useEffect, useMemo, useState } from "../../app/ui.js";
import { addressOf, titleOf } from "./actions.js";
import { Marked, wordsOf } from "./marked.js";
import { Row } from "./row.js";
import { passes } from "./shelf.js";

const ROLES = { user: ["user", "You"], assistant: ["thought", "Hermes"], tool: ["tool", "A tool"] };
const NAMED = 5; // sessions that are shown for their name

export function Hits({ query, found, filters, shelf }) {
  const pattern = useMemo(() => wordsOf(query), [query]);
  const known = useKnown(found.value?.hits ?? [], shelf.sessions);
  const named = shelf.matching.filter(
    (one) => one.title && pattern && one.title.search(pattern) >= 0,
  );
  if (found.error) return html`<${Problem} error=${found.error} retry=${found.again} />`;
  if (!found.value) return html`<${Loading} label="Searching" />`;
  const isWanted = (session) => !session || passes(session, filters, shelf.now);
  const groups = grouped(found.value.hits).filter(([id]) => isWanted(known.get(id)));
  if (!groups.length && !named.length) return found.fresh && html`<${Nothing} />`;
  const hits = groups.reduce((sum, [, list]) => sum + list.length, 0);
  const sessions = groups.length === 1 ? "one session" : `${groups.length} sessions`;
  return html`
    <p class="unseen" role="status">${plural(hits, "place")} in ${plural(groups.length, "session")}</p>
    ${
      named.length > 0 &&
      html`
      <h2 class="section-title">Named so</h2>
      <ul class="session-list">
        ${named.slice(0, NAMED).map((one) => html`<${Row} key=${one.id} session=${one} shelf=${shelf} />`)}
      </ul>
    `
    }
    ${groups.length > 0 && html`<h2 class="section-title">Said in ${sessions}</h2>`}
    <ul class="hit-groups" aria-busy=${found.busy}>
      ${groups.map(([id, list]) => {
        const session = known.get(id) ?? { id, title: list[0].title };
        return html`<${Group} key=${id} session=${session} list=${list} query=${query} pattern=${pattern} />`;
      })}
    </ul>
  `;
}

function Nothing() {
  return html`
    <${Empty} icon="search" title="Nothing found">
      No message holds all of these words. Whole words and their beginnings are found.
    <//>
  `;
}

function Group({ session, list, query, pattern }) {
  return html`
    <li class="hit-group">
      <a class="hit-title" href=${linkTo("sessions", session.id)}>${titleOf(session)}</a>
      <ul>${list.map((hit) => html`<${Hit} key=${hit.seq} hit=${hit} query=${query} pattern=${pattern} />`)}</ul>
    </li>
  `;
}

function Hit({ hit, query, pattern }) {
  const [icon, who] = ROLES[hit.role] ?? ["info", hit.role];
  const place = `${linkTo("sessions", hit.session)}?${new URLSearchParams({ at: hit.seq, q: query })}`;
  return html`
    <li>
      <a class="hit" href=${place}>
        <${Icon} name=${icon} size=${16} label=${who} />
        <span class="hit-text"><${Marked} text=${hit.snippet} pattern=${pattern} /></span>
        <${Time} at=${hit.ts} />
      </a>
    </li>
  `;
}

/** Sessions by id: those of the list, and those that only the search knows of. */
function useKnown(hits, sessions) {
  const [fetched, setFetched] = useState(new Map());
  const known = useMemo(
    () => new Map([...fetched, ...sessions.map((one) => [one.id, one])]),
    [fetched, sessions],
  );
  const missing = [...new Set(hits.map((hit) => hit.session))]
    .filter((id) => !known.has(id))
    .join("\n");
  useEffect(() => {
    if (!missing) return undefined;
    let wanted = true;
    Promise.all(missing.split("\n").map(sessionOf)).then((list) => {
      if (wanted)
        setFetched((was) => new Map([...was, ...list.filter(Boolean).map((one) => [one.id, one])]));
    });
    return () => {
      wanted = false;
    };
  }, [missing]);
  return known;
}

/** A session, or null where it can't be had. */
function sessionOf(id) {
  return api.get(addressOf({ id })).then(
    (answer) => answer.session,
    () => null,
  );
}

function grouped(hits) {
  const groups = new Map();
  for (const hit of hits) groups.set(hit.session, [...(groups.get(hit.session) ?? []), hit]);
  return [...groups];
}
