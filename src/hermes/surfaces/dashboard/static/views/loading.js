// Loads the data of a view: the value, the error, and reloading without clearing the screen.
/** @import { Child, Failure } from "../types/page.d.ts" */
import { asFailure, Latest } from "../app/api.js";
import { Loading, Problem } from "../app/parts/basics.js";
import { html, useCallback, useEffect, useState } from "../app/ui.js";

/**
 * @template T
 * @typedef {object} LoadedValue
 * @property {T | undefined} value
 * @property {Failure | null} error
 * @property {boolean} busy
 * @property {() => Promise<void>} again
 * @property {(value: T) => void} put
 */

/**
 * The result of `load`, loaded again whenever `inputs` change. Outdated responses are ignored.
 * @template T
 * @param {() => Promise<T>} load
 * @param {unknown[]} inputs
 * @returns {LoadedValue<T>}
 */
export function useLoaded(load, inputs) {
  const [state, setState] = useState(
    /** @type {{ value: T | undefined, error: Failure | null, busy: boolean }} */ ({
      value: undefined,
      error: null,
      busy: true,
    }),
  );
  const [requests] = useState(() => new Latest());
  const again = useCallback(async () => {
    const isLatest = requests.begin();
    setState((was) => ({ ...was, busy: true }));
    try {
      const value = await load();
      if (isLatest()) setState({ value, error: null, busy: false });
    } catch (error) {
      if (isLatest()) setState((was) => ({ ...was, error: asFailure(error), busy: false }));
    }
  }, inputs);
  const put = useCallback((/** @type {T} */ value) => {
    requests.begin();
    setState({ value, error: null, busy: false });
  }, []);
  useEffect(() => {
    again();
    return () => {
      requests.begin();
    };
  }, [again]);
  return { ...state, again, put };
}

/**
 * Draws the value once it is there; before that a placeholder, or the error.
 * @template T
 * @param {LoadedValue<T>} loaded
 * @param {(value: T) => Child} draw
 */
export function whenLoaded({ value, error, again }, draw) {
  const problem = error && html`<${Problem} error=${error} retry=${again} />`;
  if (value === undefined) return problem || html`<${Loading} />`;
  return html`${problem}${draw(value)}`;
}
