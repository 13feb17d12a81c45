// What every view needs to draw: preact, its hooks and htm; and stores, values that views can watch.

/** @import { Child } from "../types/page.d.ts" */
import htm from "/static/vendor/htm-3.1.1/htm.js";
import {
  useCallback,
  useContext,
  useEffect,
  useLayoutEffect,
  useMemo,
  useReducer,
  useRef,
  useState,
} from "/static/vendor/preact-11.2.0/hooks.js";
import {
  Component,
  createContext,
  Fragment,
  h,
  render,
} from "/static/vendor/preact-11.2.0/preact.js";

export const PHONE = "(max-width: 719px)"; // as in the style sheets
export const html = /** @type {import("../types/page.d.ts").Html} */ (htm.bind(h));
export {
  createContext,
  Fragment,
  h,
  render,
  useCallback,
  useContext,
  useEffect,
  useLayoutEffect,
  useMemo,
  useReducer,
  useRef,
  useState,
};

/**
 * The address of a file of this version of the page; a browser keeps it for good.
 * @param {string} name below `static`
 */
export function fileAddress(name) {
  return `${document.documentElement.dataset.files}/${name}`;
}

/**
 * Loads a module ahead of its import, without running it.
 * @param {string} name of the bundle
 */
export function preloadModule(name) {
  const href = fileAddress(name);
  if (document.head.querySelector(`link[href="${href}"]`)) return;
  const link = document.createElement("link");
  link.rel = "modulepreload";
  link.href = href;
  document.head.append(link);
}

/**
 * A component that is drawn again only when one of its properties changes. Nodes kept from an earlier drawing would do
 * the same, but each of them keeps the whole tree of its drawing in memory.
 * @template {object} P
 * @param {(props: P) => Child} draw
 */
export function memo(draw) {
  /** @extends {Component<P>} */
  return class extends Component {
    /** @param {P} next */
    shouldComponentUpdate(next) {
      const names = /** @type {(keyof P)[]} */ (Object.keys({ ...this.props, ...next }));
      return names.some((name) => this.props[name] !== next[name]);
    }

    render() {
      return draw(this.props);
    }
  };
}

/** @typedef {{ ready: boolean, loaded: Promise<void> }} Sheet */

/**
 * A value with listeners.
 * @template T
 */
export class Store {
  /** @type {Set<(value: T) => unknown>} */
  #listeners = new Set();

  /** @param {T} value */
  constructor(value) {
    this.value = value;
  }

  /** @param {T} value */
  set(value) {
    if (Object.is(value, this.value)) return;
    this.value = value;
    for (const listener of [...this.#listeners]) listener(value);
  }

  /**
   * @param {(value: T) => unknown} listener
   * @returns {() => boolean}
   */
  watch(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

/**
 * Returns a ref for an element of the template. It is set in effects and handlers, not while drawing.
 * @template T
 * @returns {{ current: T }}
 */
export function useElement() {
  return useRef(/** @type {T} */ (/** @type {unknown} */ (null)));
}

/**
 * The value of a store; the component is drawn again when it changes.
 * @template T
 * @param {Store<T>} store
 */
export function useStore(store) {
  const [value, set] = useState(store.value);
  useLayoutEffect(() => {
    set(store.value);
    return store.watch(set);
  }, [store]);
  return value;
}

/** @type {Map<string, Sheet>} */
const sheets = new Map();

/**
 * Loads a style sheet of a view once; true when it is there. `path` is below static/style.
 * @param {string} path
 */
export function useStyle(path) {
  const [ready, setReady] = useState(() => sheets.get(path)?.ready ?? false);
  useEffect(() => {
    loadStyle(path).loaded.then(() => setReady(true));
  }, [path]);
  return ready;
}

/**
 * Begins to load a style sheet, so that it comes along with the module that needs it.
 * @param {string} path
 */
export function loadStyle(path) {
  const sheet = sheets.get(path) ?? addSheet(path);
  sheets.set(path, sheet);
  return sheet;
}

/**
 * How many entries of a list are drawn: a screenful first, so that it is there at once, and the rest right after.
 * @param {number} total
 * @param {number} first
 */
export function useScreenfulFirst(total, first) {
  const [isWhole, setIsWhole] = useState(false);
  const isCut = total > first && !isWhole;
  useEffect(() => {
    return isCut ? afterFrame(() => setIsWhole(true)) : undefined;
  }, [isCut]);
  return isCut ? first : total;
}

/**
 * What is drawn a frame later, in a task of its own: all of a view at once would keep a slow phone from answering.
 * @param {{ children?: Child }} props
 */
export function Soon({ children = null }) {
  const [isDue, setIsDue] = useState(false);
  useLayoutEffect(() => afterFrame(() => setIsDue(true)), []);
  return isDue ? children : null;
}

/**
 * Whether the window fits a media query; the component is drawn again when that changes.
 * @param {string} query
 */
export function useMedia(query) {
  const media = useMemo(() => matchMedia(query), [query]);
  const [fits, setFits] = useState(media.matches);
  useEffect(() => {
    const look = () => setFits(media.matches);
    look();
    media.addEventListener("change", look);
    return () => media.removeEventListener("change", look);
  }, [media]);
  return fits;
}

/**
 * Does something behind the next frame, in a task of its own. Returns a function that takes it back.
 * @param {() => void} act
 */
export function afterFrame(act) {
  let timer = 0;
  const later = () => {
    timer = setTimeout(act);
  };
  const frame = document.hidden ? 0 : requestAnimationFrame(later);
  if (document.hidden) later(); // it has no frames
  return () => {
    cancelAnimationFrame(frame);
    clearTimeout(timer);
  };
}

/**
 * @param {string} path
 * @returns {Sheet}
 */
function addSheet(path) {
  const link = document.createElement("link");
  link.rel = "stylesheet";
  link.href = path.startsWith("/") ? path : fileAddress(`style/${path}`);
  const sheet = { ready: false, loaded: Promise.resolve() };
  sheet.loaded = new Promise((resolve) => {
    // If a style sheet can't be loaded, the view still works, without its style.
    link.onload = link.onerror = () => {
      sheet.ready = true;
      resolve();
    };
  });
  document.head.append(link);
  return sheet;
}

/** Values stored in this browser; if storage is forbidden, they last as long as the page. */
export const kept = {
  /**
   * @param {string} name
   * @returns {string | null}
   */
  get(name) {
    try {
      return localStorage.getItem(`hermes.${name}`);
    } catch {
      return null;
    }
  },
  /**
   * @param {string} name
   * @param {string | null} value
   */
  set(name, value) {
    try {
      if (value === null || value === "") localStorage.removeItem(`hermes.${name}`);
      else localStorage.setItem(`hermes.${name}`, value);
      return true;
    } catch {
      return false; // Full or forbidden.
    }
  },
};

/**
 * Whether the `<details>` element of a toggle event is open.
 * @param {Event} event
 */
export function isOpen(event) {
  return event.target instanceof HTMLDetailsElement && event.target.open;
}
