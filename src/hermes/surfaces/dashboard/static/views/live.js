// Live: the event inspector. The stream with a pattern, a pause and details; counters; publishers and drops.
import { useKeys } from "../app/keys.js";
import { Button, Empty, Tag } from "../app/parts/basics.js";
import { navigate } from "../app/router.js";
import { html, useEffect, useMemo, useRef, useState, useStyle } from "../app/ui.js";
import { EventDetails, EventRow, textOf } from "./live/event.js";
import { useInspector, useSeconds } from "./live/inspector.js";
import { matcher, parsePatterns } from "./live/pattern.js";
import { Sources, Topics, rate } from "./live/tables.js";
import { Rows } from "./rows.js";
import { Tabs } from "./tabs.js";

const PRESETS = [["**", "Everything"], ["agent.**", "Agent"], ["agent.tool.*", "Tools"], ["tui.**", "Terminal"], ["gateway.**", "Gateway"], ["session.*", "Sessions"]];
const STATES = { connecting: ["warn", "connecting"], live: ["good", "live"], waiting: ["warn", "connecting again"], closed: ["bad", "closed"] };

export default function Live({ route }) {
  const ready = useStyle("views/live.css");
  return ready && html`<${Inspector} text=${route.query.get("pattern") ?? ""} />`;
}

function Inspector({ text }) {
  const [words, setWords] = useState("");
  const [parsed, problem] = useMemo(() => parsePatterns(text), [text]);
  const patterns = useRested(parsed, problem);
  const inspector = useInspector(patterns);
  const { ring, counters, version } = inspector;
  const [paused, setPaused] = useState(null); // {events, received, shifted}
  const [chosen, setChosen] = useState(null);
  const [tab, setTab] = useState("details");
  const source = paused?.events ?? ring.events;
  const shown = useMemo(() => sifted(source, patterns, words), [source, version, patterns, words]);
  const input = useRef();
  const toggle = () => setPaused(paused ? null : { events: [...ring.events], received: ring.received, shifted: ring.evicted });
  const pick = (kept) => {
    setChosen(kept);
    setTab("details");
  };
  const move = (step) => () => {
    const at = shown.indexOf(chosen);
    const next = shown[at < 0 ? shown.length - 1 : Math.min(Math.max(at + step, 0), shown.length - 1)];
    if (next) pick(next);
  };
  const clear = () => {
    inspector.clear();
    setPaused(null);
    setChosen(null);
  };
  const change = (next) => navigate(next ? `/live?${new URLSearchParams({ pattern: next })}` : "/live", { replace: true });
  useKeys([
    { keys: " ", label: "Pause or go on", group: "Live", run: (event) => (event.target.closest?.("button:not(.event-row), a") ? false : toggle()) },
    { keys: "/", label: "Change the pattern", group: "Live", run: () => input.current.select() },
    { keys: "j", label: "Next event", group: "Live", run: move(1) },
    { keys: "k", label: "Event before", group: "Live", run: move(-1) },
    { keys: "c", label: "Clear the stream", group: "Live", run: clear },
  ]);
  const row = (kept) => html`<${EventRow} key=${kept.number} kept=${kept} current=${kept === chosen} onPick=${() => pick(kept)} />`;
  const isTall = useTall();
  const isFiltered = Boolean(words) || !(patterns.length === 1 && patterns[0] === "**");
  return html`<div class="inspector">
    <header class="live-head">
      <div class="row"><h1>Live</h1><${Tag} kind=${STATES[inspector.state][0]}>${STATES[inspector.state][1]}<//><${Sum} inspector=${inspector} paused=${paused} /><span class="spring" />
        <${Button} icon=${paused ? "play" : "pause"} kind=${paused ? "primary" : ""} onClick=${toggle} aria-pressed=${paused ? "true" : "false"}>${paused ? "Go on" : "Pause"}<//>
        <${Button} kind="quiet" icon="trash" label="Clear the stream (c)" onClick=${clear} /></div>
      <div class="live-filters">
        <label class="field"><span>Pattern</span><input ref=${input} class="input mono" value=${text} placeholder="**" spellcheck="false" autocapitalize="off" autocomplete="off"
          aria-invalid=${problem ? "true" : undefined} aria-describedby="pattern-help" onInput=${(event) => change(event.target.value)} /></label>
        <label class="field"><span>Containing</span><input class="input" type="search" value=${words} placeholder="any text" onInput=${(event) => setWords(event.target.value)} /></label>
        <div class="chips" role="group" aria-label="Patterns">${PRESETS.map(([pattern, label]) => html`<button key=${pattern} type="button" class="chip" aria-pressed=${String((text || "**") === pattern)} onClick=${() => change(pattern === "**" ? "" : pattern)}>${label}</button>`)}</div>
      </div>
      <p id="pattern-help" class=${problem ? "field-error" : "unseen"} role=${problem ? "alert" : undefined}>${problem || "A star is one word of a topic, two stars are any number of words."}</p>
    </header>
    <div class="live-parts">
      <div class="live-stream card">
        ${shown.length === 0 && html`<${Empty} icon="live" title=${isFiltered ? "Nothing of that kind yet" : "Quiet"}>${isFiltered ? "What fits the pattern appears here as it happens." : "What Hermes does, here and in other processes, appears here as it happens."}<//>`}
        <${Rows} items=${shown} row=${row} height=${isTall ? 50 : 30} stick=${!paused} shifted=${paused ? paused.shifted : ring.evicted} reveal=${shown.indexOf(chosen)} mark=${chosen?.number} label="Stream of events" />
      </div>
      <div class="live-side card"><${Tabs} label="Beside the stream" current=${tab} onPick=${setTab} tabs=${[
        ["details", "Event", () => html`<${EventDetails} kept=${chosen} onClose=${() => setChosen(null)} />`],
        ["topics", "Topics", () => html`<${Topics} counters=${counters} onPick=${change} />`],
        ["sources", "Sources", () => html`<${Sources} />`],
      ]} /></div>
    </div>
  </div>`;
}

function Sum({ inspector: { ring, counters }, paused }) {
  useSeconds();
  const since = paused ? ring.received - paused.received : 0;
  return html`<p class="live-sum" role="status"><span>${ring.received.toLocaleString("en")} events</span><span>${rate(counters.rate(Date.now()))} per second</span>
    ${ring.missed > 0 && html`<span class="bad">${ring.missed.toLocaleString("en")} missed</span>`}
    ${paused && html`<span class="warn">paused, ${since.toLocaleString("en")} more since</span>`}
    ${!paused && ring.evicted > 0 && html`<span>the last ${ring.events.length.toLocaleString("en")} are kept</span>`}</p>`;
}

function sifted(events, patterns, words) {
  const fits = matcher(patterns);
  const wanted = words.trim().toLowerCase();
  return events.filter((kept) => (fits(kept.event.type) || kept.event.type === "gap") && (!wanted || textOf(kept).includes(wanted)));
}

/** The patterns once the user rests, so that each key does not make a new connection; the last good ones meanwhile. */
function useRested(parsed, problem) {
  const [patterns, setPatterns] = useState(problem ? ["**"] : parsed);
  useEffect(() => {
    if (problem) return undefined;
    const timer = setTimeout(() => setPatterns((was) => (was.join(" ") === parsed.join(" ") ? was : parsed)), 250);
    return () => clearTimeout(timer);
  }, [parsed, problem]);
  return patterns;
}

function useTall() {
  const query = useMemo(() => matchMedia("(max-width: 719px)"), []);
  const [tall, setTall] = useState(query.matches);
  useEffect(() => {
    const look = () => setTall(query.matches);
    query.addEventListener("change", look);
    return () => query.removeEventListener("change", look);
  }, []);
  return tall;
}
