// Formulas: Temml writes them as MathML, which the browser lays out. It is loaded with the first formula.
/** @import { Ref } from "../../types/page.d.ts" */
import { t } from "../translation.js";
import { html, useEffect, useElement, useLayoutEffect, useState, useStyle } from "../ui.js";

const HOME = "/static/vendor/temml-0.13.5";
const LIMITS = {
  maxExpand: 500, // macros, so that a formula can't run for ever
  maxSize: [40, 40], // em, so that it can't cover the page
};

/**
 * The part of Temml that is used here.
 * @typedef {{ render: (text: string, place: Element, options: object) => void }} Engine
 */

/** @type {Promise<Engine> | null} */
let loading = null;
/** @type {Engine | null} */
let loaded = null;

function load() {
  loading ??= import(`${HOME}/temml.js`).then(
    ({ default: temml }) => {
      loaded = temml;
      return temml;
    },
    (error) => {
      loading = null; // the next formula tries again
      throw error;
    },
  );
  return loading;
}

/**
 * A formula in TeX. One that can't be read is shown as its source, with the reason.
 * @param {{ text: string, display?: boolean }} props
 */
export function Formula({ text, display = false }) {
  const place = /** @type {Ref<HTMLElement>} */ (useElement());
  const [engine, setEngine] = useState(() => loaded);
  const [problem, setProblem] = useState("");
  useStyle(`${HOME}/temml.css`);
  useEffect(() => {
    if (!engine)
      load().then(
        (one) => setEngine(() => one),
        () => setProblem(t("The formula could not be laid out: its library did not load.")),
      );
  }, []);
  useLayoutEffect(() => {
    if (!engine) return;
    try {
      const options = { displayMode: display, throwOnError: true, annotate: true, ...LIMITS };
      engine.render(text, place.current, options);
      setProblem("");
    } catch (error) {
      place.current.replaceChildren();
      setProblem(reasonOf(error));
    }
  }, [engine, text, display]);
  return html`
    <span class=${`formula ${display ? "formula-display" : ""}`}>
      <span ref=${place} />
      ${(!engine || problem) && html`<code>${text.trim()}</code>`}
      ${problem && html`<span class="formula-problem">${problem}</span>`}
    </span>
  `;
}

/** @param {unknown} error */
function reasonOf(error) {
  const text = error instanceof Error ? error.message : String(error);
  const reason = text.replace(/^(?:ParseError|Temml parse error):\s*/i, "").split("\n")[0];
  return t("This formula can't be read: {reason}", { reason: reason.trim().slice(0, 160) });
}
