// Instants and outcomes in words.
/** @import { JobRun } from "../../types/page.d.ts" */
import { duration } from "../../app/parts/format.js";
import { language, t } from "../../app/translation.js";

/** @type {Record<string, string>} */
export const KINDS = {
  done: "good",
  failed: "bad",
  missed: "warn",
  skipped: "warn",
  running: "accent",
};
/** @type {Record<string, string>} */
export const STATES = {
  done: t("done"),
  failed: t("failed"),
  missed: t("missed"),
  skipped: t("skipped"),
  running: t("running"),
};
/** @type {Record<string, string>} */
export const CATCH_UP = {
  once: t("run the last one late"),
  all: t("run up to ten of them late"),
  skip: t("skip them"),
};
/** @type {Record<string, string>} */
export const OUTCOMES = {
  done: t("finished"),
  failed: t("failed or was stopped"),
  missed: t("no scheduler was running then"),
  skipped: t("was no longer due, or the previous run was still in progress"),
  running: t("running now"),
};

const LOCALE = language === "en" ? "en-GB" : language;

/**
 * An instant as the clock on the wall there shows it.
 * @param {number} at
 * @param {string} zone
 */
export function localTime(at, zone) {
  const day = new Date(at * 1000);
  const near = Math.abs(at * 1000 - Date.now()) < 180 * 86_400_000;
  /** @type {Intl.DateTimeFormatOptions} */
  const options = {
    weekday: "short",
    day: "numeric",
    month: "short",
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
    numberingSystem: "latn",
    ...(near ? {} : { year: "numeric" }),
  };
  try {
    // Throws for a zone that this browser does not know.
    return day.toLocaleString(LOCALE, { ...options, timeZone: zone });
  } catch {
    return `${day.toLocaleString(LOCALE, { ...options, timeZone: "UTC" })} UTC`;
  }
}

/**
 * Where results go.
 * @param {string} deliver
 */
export function placeOf(deliver) {
  if (deliver === "none") return t("stays in its session");
  return deliver.startsWith("file:") ? deliver.slice(5) : deliver;
}

/**
 * What became of a result.
 * @param {JobRun} run
 */
export function deliveryOf(run) {
  if (run.delivery === "waiting") return t("the result waits for a gateway to deliver it");
  return !run.delivery || run.not_delivered
    ? run.not_delivered
    : t("sent to {place}", { place: placeOf(run.delivery) });
}

/**
 * How long a run took.
 * @param {JobRun} run
 */
export function durationOf(run) {
  return run.began && run.ended > run.began ? duration(run.ended - run.began) : "";
}
