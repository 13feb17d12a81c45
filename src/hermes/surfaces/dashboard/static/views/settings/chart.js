// Two small charts, drawn as SVG: stacked bars by day, and an area of what came together. Tables say the same in words.
/** @import { Child, Ref } from "../../types/page.d.ts" */
import { language, t } from "../../app/translation.js";
import { html, useMemo } from "../../app/ui.js";
import { useWidth } from "../width.js";

/** @typedef {{ day: string, parts: number[] }} Day */

/** @typedef {(value: number) => string} Format */

/**
 * @typedef {object} Scale
 * @property {number} step
 * @property {(value: number) => number} y
 * @property {(index: number) => number} middle
 * @property {(index: number) => object} column
 */

const HEIGHT = 190;
const LEFT = 52;
const BOTTOM = 22;
const TOP = 8;
const ROOM = HEIGHT - TOP - BOTTOM; // what is left for the values
const WIDEST = 44; // of a bar
const DATE = 64; // that a date takes

/** Classes for series, in this order; further ones share the last. */
export const SERIES = ["s0", "s1", "s2", "s3", "s4", "s5"];

/** @param {number} index */
export function seriesClass(index) {
  return SERIES[Math.min(index, SERIES.length - 1)];
}

/**
 * `days` is [{day, parts: [number, ...]}], one part for each series; `names` names those.
 * @param {{ days: Day[], names: string[], format: Format, label: string }} props
 */
export function Bars({ days, names, format, label }) {
  const most = niceTop(Math.max(...days.map((one) => sum(one.parts)), 0));
  /** @param {Scale} scale */
  const draw = (scale) =>
    days.map(
      (one, index) => html`
      <g key=${one.day} class="bar-day">
        <title>${dayTooltip(one, names, format)}</title>
        <rect class="bar-hit" ...${scale.column(index)} />
        <${Bar} parts=${one.parts} index=${index} scale=${scale} />
      </g>
    `,
    );
  return html`<${Chart} days=${days} most=${most} format=${format} label=${label} draw=${draw} />`;
}

/** @param {{ parts: number[], index: number, scale: Scale }} props */
function Bar({ parts, index, scale: { step, y } }) {
  const width = Math.min(Math.max(step * 0.7, 1), WIDEST);
  const x = LEFT + index * step + (step - width) / 2;
  const round = Math.min(2, width / 3);
  return stackedRanges(parts).map(([from, to], part) => {
    const height = Math.max(y(from) - y(to), 0.5);
    return (
      to > from &&
      html`
      <rect key=${part} class=${seriesClass(part)} x=${x} y=${y(to)} width=${width} height=${height} rx=${round} />
    `
    );
  });
}

/**
 * What came together, day by day.
 * @param {{ days: Day[], format: Format, label: string }} props
 */
export function Area({ days, format, label }) {
  const totals = useMemo(() => {
    let total = 0;
    return days.map((one) => {
      total += sum(one.parts);
      return total;
    });
  }, [days]);
  /** @param {Scale} scale */
  const draw = (scale) => html`
    ${totals.length > 0 && html`<${AreaChart} totals=${totals} scale=${scale} />`}
    ${days.map(
      (one, index) => html`
      <rect key=${one.day} class="bar-hit" ...${scale.column(index)}>
        <title>${t("{day}: {amount} so far", { day: one.day, amount: format(totals[index]) })}</title>
      </rect>
    `,
    )}
  `;
  return html`
    <${Chart} days=${days} most=${niceTop(totals.at(-1) ?? 0)} format=${format} label=${label} draw=${draw} />
  `;
}

/** @param {{ totals: number[], scale: Scale }} props */
function AreaChart({ totals, scale: { middle, y } }) {
  const line = `M${totals.map((value, index) => `${middle(index)},${y(value).toFixed(1)}`).join("L")}`;
  const ground = `L${middle(totals.length - 1)},${y(0)}L${middle(0)},${y(0)}z`;
  return html`
    <path class="area" d=${line + ground} />
    <path class="area-line" d=${line} />
  `;
}

/**
 * The ground of both: axes and dates; `draw(scale)` draws the values.
 * @param {{ days: Day[], most: number, format: Format, label: string, draw: (scale: Scale) => Child }} props
 */
function Chart({ days, most, format, label, draw }) {
  const [box, width] = useWidth(640, 200);
  const step = (width - LEFT) / Math.max(days.length, 1);
  /** @type {Scale} */
  const scale = {
    step,
    y: (value) => TOP + ROOM * (1 - value / most),
    middle: (index) => LEFT + (index + 0.5) * step,
    column: (index) => ({ x: LEFT + index * step, y: TOP, width: step, height: ROOM }),
  };
  const view = `0 0 ${width} ${HEIGHT}`;
  return html`
    <svg ref=${box} class="chart" role="img" aria-label=${label} viewBox=${view} height=${HEIGHT}>
      <${Axis} most=${most} format=${format} width=${width} y=${scale.y} />
      <${Dates} days=${days} scale=${scale} />
      ${draw(scale)}
    </svg>
  `;
}

/** @param {{ most: number, format: Format, width: number, y: Scale["y"] }} props */
function Axis({ most, format, width, y }) {
  return [0, 0.5, 1].map((part) => {
    const value = most * part;
    const at = y(value);
    return html`
      <g key=${part}>
        <line class="grid" x1=${LEFT} x2=${width} y1=${at} y2=${at} />
        <text class="tick" x=${LEFT - 6} y=${at + 4} text-anchor="end">${format(value)}</text>
      </g>
    `;
  });
}

/** @param {{ days: Day[], scale: Scale }} props */
function Dates({ days, scale: { step, middle } }) {
  const every = Math.max(1, Math.ceil(DATE / Math.max(step, 0.01)));
  return days.map((one, index) => {
    if (index % every !== 0) return false;
    const anchor = index === 0 && step < 40 ? "start" : "middle";
    return html`
      <text key=${one.day} class="tick" x=${middle(index)} y=${HEIGHT - 6} text-anchor=${anchor}>
        ${shortDate(one.day)}
      </text>
    `;
  });
}

/** @param {number[]} parts */
const sum = (parts) => parts.reduce((so, value) => so + value, 0);

/** @param {number[]} parts */
function stackedRanges(parts) {
  let to = 0;
  return parts.map((value) => {
    to += value;
    return [to - value, to];
  });
}

/**
 * @param {Day} one
 * @param {string[]} names
 * @param {Format} format
 */
function dayTooltip(one, names, format) {
  const total = `${one.day}: ${format(sum(one.parts))}`;
  const parts = one.parts
    .map((value, index) => ({ value, name: names[index] }))
    .filter((part) => part.value > 0);
  if (parts.length <= 1) return total;
  return [total, ...parts.map(({ value, name }) => `${name}: ${format(value)}`)].join("\n");
}

/**
 * The next round number.
 * @param {number} value
 */
function niceTop(value) {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((step) => step * power).find((top) => top >= value);
}

/** @param {string} day */
function shortDate(day) {
  return new Date(`${day}T12:00:00`).toLocaleDateString(language, {
    month: "short",
    day: "numeric",
    numberingSystem: "latn",
  });
}
