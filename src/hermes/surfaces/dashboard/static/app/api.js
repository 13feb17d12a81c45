// The client of the server's API: JSON in and out, one error type, tickets for WebSockets.
/** @import { Answer, Query, RequestBody, SessionPath } from "../types/page.d.ts" */
import { t } from "./translation.js";
import { Store } from "./ui.js";

/** An error with a message for the user. `status` is 0 if the dashboard could not be reached. */
export class ApiError extends Error {
  /**
   * @param {number} status
   * @param {string} message
   */
  constructor(status, message, hint = "") {
    super(message);
    this.name = "ApiError";
    this.status = status;
    this.hint = hint;
  }

  /** Whether the server declined to do it. After another error it may have done it. */
  get isRefusal() {
    return this.status >= 400 && this.status < 500;
  }

  /** Both sentences. */
  get words() {
    return inSentences(this);
  }
}

/**
 * What happened and what to do about it, one sentence after the other.
 * @param {{ message: string, hint?: string }} failure
 */
export function inSentences({ message, hint }) {
  if (!hint) return message;
  return `${message}${/[.!?:;…]$/.test(message) ? "" : "."} ${hint}`;
}

/**
 * The error message for the user.
 * @param {unknown} error
 */
export function errorText(error) {
  if (error instanceof ApiError) return error.words;
  return error instanceof Error ? error.message : String(error);
}

/**
 * An error as views show it.
 * @param {unknown} error
 * @returns {{ message: string, hint?: string }}
 */
export function asFailure(error) {
  return error instanceof Error ? error : { message: String(error) };
}

/** True once the server no longer knows this browser. */
export const signedOut = new Store(false);

/** Whether several machines may use the store. */
export const sharedStore = new Store(false);

/** The profile that is shown; empty for the default one. */
export const profile = new Store("");

/** Scopes of this browser; null until they are known. */
export const scopes = new Store(/** @type {string[] | null} */ (null));

/**
 * Whether this browser may do that. The server decides; this only hides what it would refuse.
 * @param {string} [scope]
 */
export function may(scope) {
  const known = scopes.value;
  return !scope || known === null || known.includes(scope) || known.includes("admin");
}

export const api = {
  /**
   * @template {string} A
   * @param {A} path
   * @param {Query} [params]
   * @returns {Promise<Answer<"GET", A>>}
   */
  get: (path, params) => call("GET", address(path, params)),
  /**
   * @template {string} A
   * @param {A} path
   * @param {RequestBody<"POST", A>} [body]
   * @returns {Promise<Answer<"POST", A>>}
   */
  post: (path, body) => call("POST", path, body ?? {}),
  /**
   * @template {string} A
   * @param {A} path
   * @param {RequestBody<"PUT", A>} body
   * @returns {Promise<Answer<"PUT", A>>}
   */
  put: (path, body) => call("PUT", path, body),
  /**
   * @template {string} A
   * @param {A} path
   * @param {RequestBody<"PATCH", A>} body
   * @returns {Promise<Answer<"PATCH", A>>}
   */
  patch: (path, body) => call("PATCH", path, body),
  /**
   * @template {string} A
   * @param {A} path
   * @returns {Promise<Answer<"DELETE", A>>}
   */
  delete: (path) => call("DELETE", path),
  /**
   * Sends a file as it is.
   * @template {string} A
   * @param {A} path
   * @param {Query} params
   * @param {Blob} file
   * @returns {Promise<Answer<"POST", A>>}
   */
  upload: (path, params, file) => call("POST", address(path, params), file),
  ticket: async () => (await api.post("/api/auth/tickets")).ticket,
};

/**
 * A path with its parameters; those that are undefined, null or empty are left out.
 * @param {string} path
 * @param {Query} [params]
 */
export function address(path, params = {}) {
  const given = Object.entries(params).filter(
    ([, value]) => value !== undefined && value !== null && value !== "",
  );
  return given.length
    ? `${path}?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}`
    : path;
}

/**
 * The path of a session, or of something below it.
 * @template {string[]} P
 * @param {string} id
 * @param {P} parts
 * @returns {SessionPath<P>}
 */
export function sessionPath(id, ...parts) {
  const path = ["/api/sessions", ...[id, ...parts].map(encodeURIComponent)].join("/");
  return /** @type {SessionPath<P>} */ (path);
}

/**
 * A WebSocket with a fresh ticket. Resolves before it is open.
 * @param {string} path
 * @param {Query} [params]
 */
export async function openSocket(path, params) {
  const ticket = await api.ticket();
  const url = new URL(address(path, params), location.href);
  url.protocol = url.protocol.replace("http", "ws");
  return new WebSocket(url, ["hermes.v1", `ticket.${ticket}`]);
}

/**
 * @param {string} method
 * @param {string} path
 * @param {unknown} [body]
 */
async function call(method, path, body) {
  /** @type {Record<string, string>} */
  const headers = { accept: "application/json" };
  const isFile = body instanceof Blob;
  if (isFile) headers["content-type"] = "application/octet-stream";
  else if (body !== undefined) headers["content-type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, {
      method,
      headers,
      body: body === undefined || isFile ? body : JSON.stringify(body),
    });
  } catch {
    throw new ApiError(0, t("The dashboard can't be reached."), t("Is it still running?"));
  }
  const text = await answer.text();
  const content = parsed(text);
  if (answer.ok) return content;
  if (answer.status === 401) signedOut.set(true);
  throw new ApiError(
    answer.status,
    content?.error ?? t("The dashboard answered {status}.", { status: answer.status }),
    content?.hint ?? "",
  );
}

/** @param {string} text */
function parsed(text) {
  try {
    return text ? JSON.parse(text) : null;
  } catch {
    return null;
  }
}

/** Requests of one kind that may overtake one another: a response is ignored if a newer request has started. */
export class Latest {
  #number = 0;

  /** Starts a request. Returns a function that tells whether it is still the newest. */
  begin() {
    const number = ++this.#number;
    return () => number === this.#number;
  }
}
