// Rows of usage, added up by day and by model. A row is what one model took on one day.
/** @import { UsageRow, UsageTotal } from "../../types/page.d.ts" */
import { t } from "../../app/translation.js";

const MOST_DAYS = 400; // drawn; older ones are in the table
const MOST_MODELS = 6; // told apart in a chart
const DAY = 86_400_000;
/** @type {(keyof UsageTotal)[]} */
const NUMBERS = [
  "calls",
  "input_tokens",
  "output_tokens",
  "cache_read_tokens",
  "reasoning_tokens",
  "cost_usd",
  "unpriced_calls",
];

/**
 * Days without a hole, and models by what they make up; those beyond five become one. `of` is what is counted.
 * @param {UsageRow[]} rows
 * @param {number} range
 * @param {(row: UsageTotal) => number} of
 */
export function usageByDay(rows, range, of) {
  const all = byName(rows, nameOf)
    .map(([name, total]) => ({ name, value: of(total) }))
    .sort((a, b) => b.value - a.value);
  const models = groupSmallModels(all);
  const place = new Map(all.map((one, index) => [one.name, Math.min(index, models.length - 1)]));
  const days = daysOf(rows, range).map((day) => ({ day, parts: models.map(() => 0) }));
  const found = new Map(days.map((one) => [one.day, one]));
  for (const row of rows) {
    const day = found.get(row.day);
    if (day) day.parts[place.get(nameOf(row)) ?? 0] += of(row);
  }
  return { days, models };
}

/** @param {{ name: string, value: number }[]} models */
function groupSmallModels(models) {
  if (models.length <= MOST_MODELS) return models;
  const rest = models.slice(MOST_MODELS - 1);
  const value = rest.reduce((so, one) => so + one.value, 0);
  return [...models.slice(0, MOST_MODELS - 1), { name: t("others"), value }];
}

/**
 * Every day from the first that is asked for, or used, to the last.
 * @param {UsageRow[]} rows
 * @param {number} range
 */
function daysOf(rows, range) {
  const earliest = Math.max(Date.parse(rows[0].day), daysBack(MOST_DAYS));
  const last = Math.max(Date.now(), Date.parse(rows[rows.length - 1].day));
  const days = [];
  for (let at = Date.parse(dayOf(range ? daysBack(range) : earliest)); at <= last; at += DAY)
    days.push(dayOf(at));
  return days;
}

/**
 * The first of so many days, of which today is the last.
 * @param {number} range
 */
export function firstDay(range) {
  return dayOf(daysBack(range));
}

/** @param {number} range */
function daysBack(range) {
  return Date.now() - (range - 1) * DAY;
}

/**
 * A day as the log names it: in UTC.
 * @param {number} at
 */
function dayOf(at) {
  return new Date(at).toISOString().slice(0, 10);
}

/**
 * @param {UsageRow[]} rows
 * @returns {UsageTotal}
 */
export function sumOf(rows) {
  const sums = NUMBERS.map((name) => [name, rows.reduce((so, row) => so + row[name], 0)]);
  return Object.fromEntries(sums);
}

/**
 * [[name, sum]] for each name that `name(row)` gives.
 * @param {UsageRow[]} rows
 * @param {(row: UsageRow) => string} name
 * @returns {[string, UsageTotal][]}
 */
export function byName(rows, name) {
  const groups = new Map();
  for (const row of rows) groups.set(name(row), [...(groups.get(name(row)) ?? []), row]);
  return [...groups].map(([key, list]) => [key, sumOf(list)]);
}

/** @param {UsageRow} row */
export function nameOf(row) {
  return row.model ? `${row.provider}:${row.model}` : row.provider || t("unknown");
}
