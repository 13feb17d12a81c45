// Loading what a view shows: the value, what went wrong, and doing it again without losing what is on the screen.
import { Latest } from "../app/api.js";
import { Loading, Problem } from "../app/parts/basics.js";
import { html, useCallback, useEffect, useRef, useState } from "../app/ui.js";

/** What `load` gives, again whenever `inputs` change. An answer that comes too late is not taken. */
export function useLoaded(load, inputs) {
  const [state, setState] = useState({ value: undefined, error: null, busy: true });
  const requests = useRef(null);
  requests.current ??= new Latest();
  const again = useCallback(async () => {
    const isLatest = requests.current.begin();
    setState((was) => ({ ...was, busy: true }));
    try {
      const value = await load();
      if (isLatest()) setState({ value, error: null, busy: false });
    } catch (error) {
      if (isLatest()) setState((was) => ({ ...was, error, busy: false }));
    }
  }, inputs);
  const put = useCallback((value) => {
    requests.current.begin();
    setState({ value, error: null, busy: false });
  }, []);
  useEffect(() => {
    again();
    return () => {
      requests.current.begin();
    };
  }, [again]);
  return { ...state, again, put };
}

/** The children, given the value once it is there; before that a placeholder, or what went wrong. */
export function Loaded({ of: { value, error, again }, children }) {
  const problem = error && html`<${Problem} error=${error} retry=${again} />`;
  if (value === undefined) return problem || html`<${Loading} />`;
  return html`${problem}${children(value)}`;
}
