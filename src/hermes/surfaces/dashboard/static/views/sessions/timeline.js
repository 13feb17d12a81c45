// The timeline of a session: scrub, step or play through what was said, done and asked, with what it had cost by then.
/** @import { Player } from "./player.js" */
/** @import { StepLog } from "./steps.js" */
/** @import { Child, Route, Step } from "../../types/page.d.ts" */
import { api, sessionPath } from "../../app/api.js";
import { isWithin, useKeys } from "../../app/keys.js";
import { Empty, Loading, Problem } from "../../app/parts/basics.js";
import { clock } from "../../app/parts/format.js";
import { navigate, pathTo } from "../../app/router.js";
import { t } from "../../app/translation.js";
import { html, useEffect, useMemo, useRef, useState } from "../../app/ui.js";
import { useLoaded } from "../loading.js";
import { Rows } from "../rows.js";
import { Controls, Kinds } from "./controls.js";
import { Details } from "./details.js";
import { Head } from "./head.js";
import { wordsOf } from "./highlighted_words.js";
import { usePlayer } from "./player.js";
import { useSteps } from "./step_feed.js";
import { Strip } from "./strip.js";

/**
 * @typedef {object} StepsProps
 * @property {Step[]} steps
 * @property {Step} step
 * @property {StepLog} log
 * @property {Player} player
 * @property {Child} kinds
 * @property {RegExp | null} pattern
 */

const ROW_PX = 52; // pixels
const LONGEST_CHARS = 200; // characters of a step that its row shows
const SETTLE_MS = 400; // milliseconds before the place is in the address

/** @param {{ id: string, route: Route }} props */
export function Timeline({ id, route }) {
  const { log, version, state, gone } = useSteps(id);
  const turns = useLaterTurns(log, state);
  const about = useLoaded(() => api.get(sessionPath(id)), [id, turns]);
  const children = useLoaded(
    async () => (await api.get(sessionPath(id, "children"))).sessions,
    [id, turns],
  );
  const [hidden, setHidden] = useState(() => new Set());
  const steps = useMemo(
    () => log.steps.filter((step) => !hidden.has(step.kind)),
    [version, hidden],
  );
  const player = usePlayer(steps, {
    ready: state !== "replaying",
    seq: Number(route.query.get("at")) || 0,
  });
  const step = steps[player.at];
  usePlaceInAddress(id, route, step, player.moved);
  useTimelineKeys(player, log, steps);
  if (gone) return html`<${SessionDeleted} />`;
  if (about.error && !about.value) {
    return html`<div class="page"><${Problem} error=${about.error} retry=${about.again} /></div>`;
  }
  /** @param {string} kind */
  const toggle = (kind) => setHidden((was) => toggled(was, kind));
  const kinds = html`<${Kinds} log=${log} hidden=${hidden} toggle=${toggle} />`;
  const parts = { steps, step, log, player, kinds, pattern: wordsOf(route.query.get("q") ?? "") };
  return html`
    <div class="page timeline">
      <${Head} id=${id} about=${about} log=${log} children=${children.value ?? []} />
      ${
        step
          ? html`<${Steps} ...${parts} />`
          : html`<${NoSteps} isLoading=${state === "replaying"} kinds=${kinds} />`
      }
    </div>
  `;
}

/**
 * Changes with each turn that begins or ends while the timeline is shown; what it opened with counts as nothing new.
 * @param {StepLog} log
 * @param {string} state
 */
function useLaterTurns(log, state) {
  const known = useRef(/** @type {string | null} */ (null));
  if (state === "replaying") return "";
  const turns = `${log.turns.length} ${log.turns.at(-1)?.reason}`;
  known.current ??= turns;
  return turns === known.current ? "" : turns;
}

function SessionDeleted() {
  return html`
    <${Empty} icon="trash" title=${t("This session is gone")}>
      ${t("It was deleted.")} <a href="#/sessions">${t("Back to the sessions")}</a>
    <//>
  `;
}

/** @param {{ isLoading: boolean, kinds: Child }} props */
function NoSteps({ isLoading, kinds }) {
  if (isLoading) return html`<${Loading} />`;
  return html`
    ${kinds}
    <${Empty} icon="sessions" title=${t("Nothing to show")}>
      ${t("Nothing happened here yet, or everything is hidden.")}
    <//>
  `;
}

/** @param {StepsProps} props */
function Steps({ steps, step, log, player, kinds, pattern }) {
  /**
   * @param {Step} one
   * @param {number} index
   */
  const row = (one, index) => html`
    <${StepRow} key=${one.seq} step=${one} current=${index === player.at} onPick=${() => player.go(index)} />
  `;
  return html`
    <section class="card scrubber" aria-label=${t("Timeline")}>
      <${Strip} steps=${steps} log=${log} at=${player.at} onMove=${player.go} />
      <${Controls} player=${player} steps=${steps} step=${step} log=${log} />
      ${kinds}
    </section>
    <div class="timeline-parts">
      <${Rows}
        class="card step-rows"
        items=${steps}
        row=${row}
        height=${ROW_PX}
        reveal=${player.at}
        label=${t("Steps of the session")}
      />
      <${Details} step=${step} pattern=${pattern} />
    </div>
  `;
}

/** @param {{ step: Step, current: boolean, onPick: () => void }} props */
function StepRow({ step, current, onPick }) {
  return html`
    <button
      type="button"
      class=${`step-row kind-${step.kind}`}
      aria-current=${current ? "step" : undefined}
      tabindex=${current ? 0 : -1}
      onClick=${onPick}
    >
      <i aria-hidden="true" />
      <span class="step-title">${step.title}</span>
      <time>${clock(step.ts)}</time>
      <span class="step-text">${step.text.slice(0, LONGEST_CHARS)}</span>
    </button>
  `;
}

/**
 * @param {Set<string>} set
 * @param {string} one
 */
function toggled(set, one) {
  return set.has(one) ? new Set([...set].filter((other) => other !== one)) : new Set([...set, one]);
}

/**
 * Keeps the place in the address, once it has been moved to and rests.
 * @param {string} id
 * @param {Route} route
 * @param {Step | undefined} step
 * @param {boolean} moved
 */
function usePlaceInAddress(id, route, step, moved) {
  const query = useRef(route.query);
  query.current = route.query;
  useEffect(() => {
    if (!step || !moved) return undefined;
    const timer = setTimeout(() => {
      const next = new URLSearchParams(query.current);
      next.set("at", String(step.seq));
      navigate(`${pathTo("sessions", id)}?${next}`, { replace: true });
    }, SETTLE_MS);
    return () => clearTimeout(timer);
  }, [step?.seq, moved]);
}

/**
 * @param {Player} player
 * @param {StepLog} log
 * @param {Step[]} steps
 */
function useTimelineKeys(player, log, steps) {
  const group = t("Timeline");
  const last = steps.length - 1;
  const starts = log.turns.map((one) => one.from);
  const here = steps[player.at]?.index ?? 0;
  /** @param {number} by */
  const step = (by) => () => player.go(player.at + by);
  /**
   * @param {number | undefined} from
   * @param {number} otherwise
   */
  const toStart = (from, otherwise) =>
    player.go(from === undefined ? otherwise : steps.findIndex((one) => one.index >= from));
  const before = () =>
    toStart(
      starts.findLast((from) => from < here),
      0,
    );
  const after = () =>
    toStart(
      starts.find((from) => from > here),
      last,
    );
  /** @param {Event} event */
  const play = (event) => (isWithin(event, "button, a") ? false : player.toggle());
  useKeys([
    { keys: " ", label: t("Play or pause"), group, run: play },
    { keys: "ArrowLeft", label: t("Step back"), group, run: step(-1) },
    { keys: "ArrowRight", label: t("Step forward"), group, run: step(1) },
    { keys: "k", label: t("Step back"), group, hidden: true, run: step(-1) },
    { keys: "j", label: t("Step forward"), group, hidden: true, run: step(1) },
    { keys: "Shift+ArrowLeft", label: t("Previous turn"), group, run: before },
    { keys: "Shift+ArrowRight", label: t("Next turn"), group, run: after },
    { keys: "Home", label: t("Go to the beginning"), group, run: () => player.go(0) },
    { keys: "End", label: t("Go to the end"), group, run: () => player.go(last) },
  ]);
}
