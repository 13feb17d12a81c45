// Where the user is: the part of the address behind `#`.
/** @import { Route } from "../types/page.d.ts" */
import { Store, useStore } from "./ui.js";

/**
 * A route: `view`, further `parts`, `query`, and the whole `path`.
 * @param {string} hash
 * @returns {Route}
 */
export function parse(hash) {
  const [path, search = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const [view, ...parts] = path.split("/").filter(Boolean).map(decoded);
  return { view: view ?? "chat", parts, query: new URLSearchParams(search), path: `/${path}` };
}

/** @param {string} part */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export const route = new Store(parse(location.hash));
addEventListener("hashchange", () => route.set(parse(location.hash)));

export function useRoute() {
  return useStore(route);
}

/**
 * Goes to a path such as `/chat/<session>`; with `replace`, without a history entry.
 * @param {string} path
 */
export function navigate(path, { replace = false } = {}) {
  const hash = `#${path.startsWith("/") ? path : `/${path}`}`;
  if (location.hash === hash) return;
  if (replace) {
    history.replaceState(null, "", hash);
    route.set(parse(hash));
  } else {
    location.hash = hash;
  }
}

/**
 * A path of parts, each made safe.
 * @param {...string} parts
 */
export function pathTo(...parts) {
  return `/${parts.map(encodeURIComponent).join("/")}`;
}

/**
 * The same, as the address of a link.
 * @param {...string} parts
 */
export function linkTo(...parts) {
  return `#${pathTo(...parts)}`;
}
