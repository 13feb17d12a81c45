// Two small charts, drawn as SVG: stacked bars by day, and an area of what came together. Tables say the same in words.
import { html, useLayoutEffect, useMemo, useRef, useState } from "../../app/ui.js";

const HEIGHT = 190;
const LEFT = 52;
const BOTTOM = 22;
const TOP = 8;

/** Classes for series, in this order; further ones share the last. */
export const SERIES = ["s0", "s1", "s2", "s3", "s4", "s5"];

export function seriesClass(index) {
  return SERIES[Math.min(index, SERIES.length - 1)];
}

/** `days` is [{day, parts: [number, ...]}], one part for each series; `names` names those. */
export function Bars({ days, names, format, label }) {
  const [box, width] = useWidth();
  const most = niceTop(Math.max(...days.map((one) => sum(one.parts)), 0));
  const step = (width - LEFT) / Math.max(days.length, 1);
  const wide = Math.min(Math.max(step * 0.7, 1), 44);
  const y = (value) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / most);
  return html`<svg ref=${box} class="chart" role="img" aria-label=${label} viewBox=${`0 0 ${width} ${HEIGHT}`} height=${HEIGHT}>
    <${Axis} most=${most} format=${format} width=${width} y=${y} /><${Dates} days=${days} step=${step} />
    ${days.map((one, index) => html`<g key=${one.day} class="bar-day"><title>${tell(one, names, format)}</title><rect class="bar-hit" x=${LEFT + index * step} y=${TOP} width=${step} height=${HEIGHT - TOP - BOTTOM} />
      ${stacked(one.parts).map(([from, to], part) => to > from && html`<rect key=${part} class=${seriesClass(part)} x=${LEFT + index * step + (step - wide) / 2} y=${y(to)} width=${wide} height=${Math.max(y(from) - y(to), 0.5)} rx=${Math.min(2, wide / 3)} />`)}</g>`)}
  </svg>`;
}

/** What came together, day by day. */
export function Area({ days, format, label }) {
  const [box, width] = useWidth();
  const totals = useMemo(() => {
    let so = 0;
    return days.map((one) => (so += sum(one.parts)));
  }, [days]);
  const most = niceTop(totals.at(-1) ?? 0);
  const step = (width - LEFT) / Math.max(days.length, 1);
  const y = (value) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / most);
  const points = totals.map((value, index) => `${LEFT + (index + 0.5) * step},${y(value).toFixed(1)}`);
  const edges = `L${LEFT + (totals.length - 0.5) * step},${y(0)}L${LEFT + 0.5 * step},${y(0)}z`;
  return html`<svg ref=${box} class="chart" role="img" aria-label=${label} viewBox=${`0 0 ${width} ${HEIGHT}`} height=${HEIGHT}>
    <${Axis} most=${most} format=${format} width=${width} y=${y} /><${Dates} days=${days} step=${step} />
    ${points.length > 0 && html`<path class="area" d=${`M${points.join("L")}${edges}`} /><path class="area-line" d=${`M${points.join("L")}`} />`}
    ${days.map((one, index) => html`<rect key=${one.day} class="bar-hit" x=${LEFT + index * step} y=${TOP} width=${step} height=${HEIGHT - TOP - BOTTOM}><title>${one.day}: ${format(totals[index])} so far</title></rect>`)}
  </svg>`;
}

function Axis({ most, format, width, y }) {
  return [0, 0.5, 1].map((part) => html`<g key=${part}><line class="grid" x1=${LEFT} x2=${width} y1=${y(most * part)} y2=${y(most * part)} /><text class="tick" x=${LEFT - 6} y=${y(most * part) + 4} text-anchor="end">${format(most * part)}</text></g>`);
}

function Dates({ days, step }) {
  const every = Math.max(1, Math.ceil(64 / Math.max(step, 0.01)));
  return days.map((one, index) => index % every === 0 && html`<text key=${one.day} class="tick" x=${LEFT + (index + 0.5) * step} y=${HEIGHT - 6} text-anchor=${index === 0 && step < 40 ? "start" : "middle"}>${short(one.day)}</text>`);
}

function useWidth() {
  const box = useRef();
  const [width, setWidth] = useState(640);
  useLayoutEffect(() => {
    const watcher = new ResizeObserver(([entry]) => setWidth(Math.max(entry.contentRect.width, 200)));
    watcher.observe(box.current);
    return () => watcher.disconnect();
  }, []);
  return [box, width];
}

const sum = (parts) => parts.reduce((so, value) => so + value, 0);

function stacked(parts) {
  let from = 0;
  return parts.map((value) => [from, (from += value)]);
}

function tell(one, names, format) {
  const parts = one.parts.map((value, index) => [value, names[index]]).filter(([value]) => value > 0);
  return `${one.day}: ${format(sum(one.parts))}${parts.length > 1 ? `\n${parts.map(([value, name]) => `${name}: ${format(value)}`).join("\n")}` : ""}`;
}

/** The next round number. */
function niceTop(value) {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((step) => step * power).find((top) => top >= value);
}

function short(day) {
  return new Date(`${day}T12:00:00`).toLocaleDateString("en", { month: "short", day: "numeric" });
}
