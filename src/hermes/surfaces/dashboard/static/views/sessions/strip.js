// The strip: every step as a mark in its lane, turns as bands behind them, what was spent as a curve below.
/** @import { StepLog } from "./steps.js" */
/** @import { Ref, Step, Turn } from "../../types/page.d.ts" */
import { t } from "../../app/translation.js";
import { html, useMemo } from "../../app/ui.js";
import { useWidth } from "../width.js";
import { KINDS, LANES } from "./steps.js";

const LANE = 16; // units of height
const CURVE = 26;
const LEAST_PX = 3; // pixels that a mark is wide
const MOST = 14;
const CORNER_PX = 3;

/**
 * One path for each kind, so that ten thousand marks are eight nodes; moving the cursor draws none of them again.
 * @param {{ steps: Step[], log: StepLog, at: number, onMove: (index: number) => void }} props
 */
export function Strip({ steps, log, at, onMove }) {
  const [box, width] = useWidth(800, 100);
  const unit = width / steps.length;
  const picture = useMemo(
    () => html`<${Picture} steps=${steps} turns=${log.turns} width=${width} unit=${unit} />`,
    [steps, log, width],
  );
  /** @param {PointerEvent} event */
  const move = (event) => {
    if (event.buttons !== 1 && event.type !== "pointerdown") return;
    if (event.type === "pointerdown") box.current.setPointerCapture(event.pointerId);
    const { left } = box.current.getBoundingClientRect();
    onMove(Math.floor((event.clientX - left) / unit));
  };
  const cursor = { transform: `translateX(${at * unit + unit / 2 - 1}px)` };
  return html`
    <div class="strip">
      <div class="lanes" aria-hidden="true">
        ${LANES.map((lane) => html`<span key=${lane}>${lane}</span>`)}
        <span class="lane-cost">${t("Cost")}</span>
      </div>
      <div ref=${box} class="strip-marks" aria-hidden="true" onPointerDown=${move} onPointerMove=${move}>
        ${picture}
        <i class="cursor" style=${cursor} />
      </div>
    </div>
  `;
}

/** @param {{ steps: Step[], turns: Turn[], width: number, unit: number }} props */
function Picture({ steps, turns, width, unit }) {
  const height = LANES.length * LANE;
  return html`
    <svg viewBox=${`0 0 ${width} ${height + CURVE}`} height=${height + CURVE}>
      ${Object.entries(bandsOf(steps, turns, unit, height)).map(
        ([reason, path]) => html`<path key=${reason} class=${`band end-${reason}`} d=${path} />`,
      )}
      ${Object.entries(marksOf(steps, unit)).map(
        ([kind, path]) => html`<path key=${kind} class=${`mark kind-${kind}`} d=${path} />`,
      )}
      <path class="curve" d=${curveOf(steps, unit)} />
    </svg>
  `;
}

/**
 * @param {Step[]} steps
 * @param {number} unit
 */
function marksOf(steps, unit) {
  /** @type {Record<string, string[]>} */
  const paths = {};
  const wide = Math.max(LEAST_PX, Math.min(unit - 1, MOST));
  steps.forEach((step, index) => {
    const y = KINDS[step.kind].lane * LANE + 3;
    const x = (index * unit + (unit - wide) / 2).toFixed(1);
    paths[step.kind] ??= [];
    paths[step.kind].push(`M${x} ${y}h${wide.toFixed(1)}v${LANE - 6}h-${wide.toFixed(1)}z`);
  });
  return Object.fromEntries(Object.entries(paths).map(([kind, parts]) => [kind, parts.join("")]));
}

/**
 * @param {Step[]} steps
 * @param {number} unit
 */
function curveOf(steps, unit) {
  const by = steps.at(-1)?.cost ? "cost" : "tokens";
  const most = steps.at(-1)?.[by] || 1;
  const base = LANES.length * LANE + CURVE;
  const points = steps.map((step, index) => {
    const y = base - (step[by] / most) * (CURVE - 4);
    return `V${y.toFixed(1)}H${((index + 1) * unit).toFixed(1)}`;
  });
  return `M0 ${base}${points.join("")}V${base}z`;
}

/**
 * Where each turn begins and ends among the steps that are shown, as one path for each way to end. Turns and steps both
 * go forward only, so one walk is enough.
 * @param {Step[]} steps
 * @param {Turn[]} turns
 * @param {number} unit
 * @param {number} height
 */
function bandsOf(steps, turns, unit, height) {
  /** @type {Record<string, string[]>} */
  const paths = {};
  let next = 0;
  for (const turn of turns) {
    while (next < steps.length && steps[next].index < turn.from) next += 1;
    const from = next;
    while (next < steps.length && (turn.to === null || steps[next].index <= turn.to)) next += 1;
    if (next === from) continue;
    const reason = turn.reason || "open";
    paths[reason] ??= [];
    paths[reason].push(bandPath(from * unit, (next - from) * unit, height));
  }
  return Object.fromEntries(
    Object.entries(paths).map(([reason, parts]) => [reason, parts.join("")]),
  );
}

/**
 * A rectangle with round corners, as far as there is room for them.
 * @param {number} x
 * @param {number} width
 * @param {number} height
 */
function bandPath(x, width, height) {
  const r = Math.min(CORNER_PX, width / 2);
  const arc = (/** @type {number} */ dx, /** @type {number} */ dy) =>
    `a${r} ${r} 0 0 1 ${dx} ${dy}`;
  const across = (width - 2 * r).toFixed(1);
  const down = height - 2 * r;
  return (
    `M${(x + r).toFixed(1)} 0h${across}${arc(r, r)}v${down}${arc(-r, r)}` +
    `h-${across}${arc(-r, -r)}v-${down}${arc(r, -r)}z`
  );
}
