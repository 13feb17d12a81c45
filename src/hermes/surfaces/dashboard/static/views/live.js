// Live: the event inspector. The stream with a pattern, a pause and details; counters; publishers and drops.
/** @import { useInspector as UseInspector } from "./live/inspector.js" */
/** @import { BufferedEvent, FeedState, Ref, Route } from "../types/page.d.ts" */
import { isWithin, useKeys } from "../app/keys.js";
import { Button, Empty, Tag } from "../app/parts/basics.js";
import { inFull } from "../app/parts/format.js";
import { navigate } from "../app/router.js";
import { t } from "../app/translation.js";
import {
  html,
  PHONE,
  useEffect,
  useElement,
  useMedia,
  useMemo,
  useState,
  useStyle,
} from "../app/ui.js";
import { Chips } from "./inputs.js";
import { EventDetails, EventRow, textOf } from "./live/event.js";
import { useInspector, useSeconds } from "./live/inspector.js";
import { matcher, parsePatterns } from "./live/pattern.js";
import { rate, Sources, Topics } from "./live/tables.js";
import { Rows } from "./rows.js";
import { Tabs } from "./tabs.js";

/** @typedef {ReturnType<typeof UseInspector>} InspectorState */

/** @typedef {{ events: BufferedEvent[], received: number, shifted: number }} Paused */

/**
 * @typedef {object} FiltersProps
 * @property {Ref<HTMLInputElement>} input
 * @property {string} text
 * @property {string} problem
 * @property {string} words
 * @property {(words: string) => void} setWords
 */

/**
 * @typedef {object} StreamProps
 * @property {BufferedEvent[]} shown
 * @property {number} shifted
 * @property {boolean} stick
 * @property {BufferedEvent | null} chosen
 * @property {(event: BufferedEvent) => void} pick
 */

/**
 * @typedef {object} LiveKeys
 * @property {Ref<HTMLInputElement>} input
 * @property {BufferedEvent[]} shown
 * @property {BufferedEvent | null} chosen
 * @property {(event: BufferedEvent) => void} pick
 * @property {() => void} toggle
 * @property {() => void} clear
 */

const EVERYTHING = "**";
const PRESETS = [
  [EVERYTHING, t("Everything")],
  ["agent.**", t("Agent")],
  ["agent.tool.*", t("Tools")],
  ["tui.**", t("Terminal")],
  ["gateway.**", t("Gateway")],
  ["session.*", t("Sessions")],
];
/** @type {Record<FeedState, [string, string]>} */
const STATES = {
  connecting: ["warn", t("connecting")],
  live: ["good", t("live")],
  waiting: ["warn", t("reconnecting")],
  closed: ["bad", t("closed")],
};
const ROW_PX = 30; // pixels
const TALL_ROW = 50; // on narrow screens, where it has two lines
const REST_MS = 250; // milliseconds without a key before a pattern counts

/** @param {{ route: Route }} props */
export default function Live({ route }) {
  const ready = useStyle("views/live.css");
  return ready && html`<${Inspector} text=${route.query.get("pattern") ?? ""} />`;
}

/** @param {{ text: string }} props */
function Inspector({ text }) {
  const [words, setWords] = useState("");
  const [parsed, problem] = useMemo(() => parsePatterns(text), [text]);
  const patterns = useDebounced(parsed, problem);
  const inspector = useInspector(patterns);
  const { ring, counters, version } = inspector;
  const [paused, setPaused] = useState(/** @type {Paused | null} */ (null));
  const [chosen, setChosen] = useState(/** @type {BufferedEvent | null} */ (null));
  const [tab, setTab] = useState("details");
  const source = paused?.events ?? ring.events;
  const shown = useMemo(
    () => filterEvents(source, patterns, words),
    [source, version, patterns, words],
  );
  const input = /** @type {Ref<HTMLInputElement>} */ (useElement());
  const held = () => ({ events: [...ring.events], received: ring.received, shifted: ring.evicted });
  const toggle = () => setPaused(paused ? null : held());
  /** @param {BufferedEvent} kept */
  const pick = (kept) => {
    setChosen(kept);
    setTab("details");
  };
  const clear = () => {
    inspector.clear();
    setPaused(null);
    setChosen(null);
  };
  useLiveKeys({ input, shown, chosen, pick, toggle, clear });
  const isFiltered = Boolean(words) || patterns.join(" ") !== EVERYTHING;
  const tabs = [
    [
      "details",
      t("Event"),
      () => html`<${EventDetails} kept=${chosen} onClose=${() => setChosen(null)} />`,
    ],
    ["topics", t("Topics"), () => html`<${Topics} counters=${counters} onPick=${goTo} />`],
    ["sources", t("Sources"), () => html`<${Sources} />`],
  ];
  return html`
    <div class="inspector">
      <header class="live-head">
        <${Bar} inspector=${inspector} paused=${paused} toggle=${toggle} clear=${clear} />
        <${Filters} input=${input} text=${text} problem=${problem} words=${words} setWords=${setWords} />
        <${PatternHelp} problem=${problem} />
      </header>
      <div class="live-parts">
        <div class="live-stream card">
          ${shown.length === 0 && html`<${NoEvents} isFiltered=${isFiltered} />`}
          <${Stream}
            shown=${shown}
            shifted=${paused?.shifted ?? ring.evicted}
            stick=${!paused}
            chosen=${chosen}
            pick=${pick}
          />
        </div>
        <div class="live-side card">
          <${Tabs} label=${t("Details")} current=${tab} onPick=${setTab} tabs=${tabs} />
        </div>
      </div>
    </div>
  `;
}

/**
 * @param {{ inspector: InspectorState, paused: Paused | null, toggle: () => void, clear: () => void }} props
 */
function Bar({ inspector, paused, toggle, clear }) {
  const [kind, state] = STATES[inspector.state];
  return html`
    <div class="row">
      <h1>${t("Live")}</h1>
      <${Tag} kind=${kind}>${state}<//>
      <${EventTotals} inspector=${inspector} paused=${paused} />
      <span class="spring" />
      <${Button}
        icon=${paused ? "play" : "pause"}
        kind=${paused ? "primary" : ""}
        aria-pressed=${paused ? "true" : "false"}
        onClick=${toggle}
      >
        ${paused ? t("Resume") : t("Pause")}
      <//>
      <${Button} kind="quiet" icon="trash" label=${t("Clear the stream (c)")} onClick=${clear} />
    </div>
  `;
}

/** @param {{ inspector: InspectorState, paused: Paused | null }} props */
function EventTotals({ inspector: { ring, counters }, paused }) {
  useSeconds();
  const received = numbered(ring.received);
  const since = numbered(ring.received - (paused?.received ?? 0));
  const kept = numbered(ring.events.length);
  const missed = t("{number} missed", "{number} missed", numbered(ring.missed));
  const more = t("paused, {number} more since", "paused, {number} more since", since);
  return html`
    <p class="live-sum" role="status">
      <span>${t("{number} event", "{number} events", received)}</span>
      <span>${t("{rate} per second", { rate: rate(counters.rate(Date.now())) })}</span>
      ${ring.missed > 0 && html`<span class="bad">${missed}</span>`}
      ${paused && html`<span class="warn">${more}</span>`}
      ${
        !paused &&
        ring.evicted > 0 &&
        html`<span>${t("the last {number} is kept", "the last {number} are kept", kept)}</span>`
      }
    </p>
  `;
}

/**
 * A count for a sentence: the number that chooses its form, and how it is shown.
 * @param {number} count
 */
function numbered(count) {
  return { count, number: inFull(count) };
}

/** @param {FiltersProps} props */
function Filters({ input, text, problem, words, setWords }) {
  /** @param {string} pattern */
  const pick = (pattern) => goTo(pattern === EVERYTHING ? "" : pattern);
  return html`
    <div class="live-filters">
      <label class="field">
        <span>${t("Pattern")}</span>
        <input
          ref=${input}
          class="input mono"
          value=${text}
          placeholder=${EVERYTHING}
          spellcheck=${false}
          autocapitalize="off"
          autocomplete="off"
          aria-invalid=${problem ? "true" : undefined}
          aria-describedby="pattern-help"
          onInput=${(event) => goTo(event.target.value)}
        />
      </label>
      <label class="field">
        <span>${t("Containing")}</span>
        <input
          class="input"
          type="search"
          value=${words}
          placeholder=${t("any text")}
          onInput=${(event) => setWords(event.target.value)}
        />
      </label>
      <${Chips} label=${t("Patterns")} choices=${PRESETS} value=${text || EVERYTHING} onPick=${pick} />
    </div>
  `;
}

/** @param {{ problem: string }} props */
function PatternHelp({ problem }) {
  if (problem) return html`<p id="pattern-help" class="field-error" role="alert">${problem}</p>`;
  return html`
    <p id="pattern-help" class="unseen">
      ${t("One star matches one segment of a topic; two stars match any number.")}
    </p>
  `;
}

/** @param {{ isFiltered: boolean }} props */
function NoEvents({ isFiltered }) {
  if (isFiltered) {
    return html`
      <${Empty} icon="live" title=${t("No matching events yet")}>
        ${t("Events that match the pattern appear here as they happen.")}
      <//>
    `;
  }
  return html`
    <${Empty} icon="live" title=${t("No events yet")}>
      ${t("Events of this and other Hermes processes appear here as they happen.")}
    <//>
  `;
}

/** @param {StreamProps} props */
function Stream({ shown, shifted, stick, chosen, pick }) {
  const isNarrow = useMedia(PHONE);
  /** @param {BufferedEvent} kept */
  const row = (kept) => html`
    <${EventRow} key=${kept.number} kept=${kept} current=${kept === chosen} onPick=${() => pick(kept)} />
  `;
  return html`
    <${Rows}
      items=${shown}
      row=${row}
      height=${isNarrow ? TALL_ROW : ROW_PX}
      stick=${stick}
      shifted=${shifted}
      reveal=${chosen ? shown.indexOf(chosen) : -1}
      mark=${chosen?.number}
      label=${t("Stream of events")}
    />
  `;
}

/** @param {LiveKeys} view */
function useLiveKeys({ input, shown, chosen, pick, toggle, clear }) {
  const group = t("Live");
  /** @param {Event} event */
  const pause = (event) => (isWithin(event, "button:not(.event-row), a") ? false : toggle());
  /** @param {number} step */
  const move = (step) => () => {
    const at = chosen ? shown.indexOf(chosen) : -1;
    const last = shown.length - 1;
    const next = shown[at < 0 ? last : Math.min(Math.max(at + step, 0), last)];
    if (next) pick(next);
  };
  useKeys([
    { keys: " ", label: t("Pause or resume"), group, run: pause },
    { keys: "/", label: t("Change the pattern"), group, run: () => input.current.select() },
    { keys: "j", label: t("Next event"), group, run: move(1) },
    { keys: "k", label: t("Previous event"), group, run: move(-1) },
    { keys: "Alt+c", label: t("Clear the stream"), group, run: clear },
  ]);
}

/**
 * Puts a pattern into the address, from where the view takes it.
 * @param {string} pattern
 */
function goTo(pattern) {
  navigate(pattern ? `/live?${new URLSearchParams({ pattern })}` : "/live", { replace: true });
}

/**
 * @param {BufferedEvent[]} events
 * @param {string[]} patterns
 * @param {string} words
 */
function filterEvents(events, patterns, words) {
  const fits = matcher(patterns);
  const wanted = words.trim().toLowerCase();
  return events.filter(
    (kept) =>
      (fits(kept.event.type) || kept.event.type === "gap") &&
      (!wanted || textOf(kept).includes(wanted)),
  );
}

/**
 * The patterns once the user rests, so that each key does not make a new connection; the last good ones meanwhile.
 * @param {string[]} parsed
 * @param {string} problem
 */
function useDebounced(parsed, problem) {
  const [patterns, setPatterns] = useState(problem ? [EVERYTHING] : parsed);
  useEffect(() => {
    if (problem) return undefined;
    const timer = setTimeout(
      () => setPatterns((was) => (was.join(" ") === parsed.join(" ") ? was : parsed)),
      REST_MS,
    );
    return () => clearTimeout(timer);
  }, [parsed, problem]);
  return patterns;
}
