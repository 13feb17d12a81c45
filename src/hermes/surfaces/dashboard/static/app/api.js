// Speaks with the server: JSON in and out, one kind of error, tickets for sockets.
import { Store } from "./ui.js";

/** What went wrong, in words for a person. `status` is 0 when the dashboard could not be reached. */
export class ApiError extends Error {
  constructor(status, message, hint = "") {
    super(message);
    this.name = "ApiError";
    this.status = status;
    this.hint = hint;
  }

  /** Both sentences. */
  get words() {
    return this.hint ? `${this.message} ${this.hint}` : this.message;
  }
}

/** True once the server no longer knows this browser. */
export const signedOut = new Store(false);

/** Scopes of this browser; null until they are known. */
export const scopes = new Store(null);

/** Whether this browser may do that. The server decides; this only hides what it would refuse. */
export function may(scope) {
  const known = scopes.value;
  return !scope || known === null || known.includes(scope) || known.includes("admin");
}

export const api = {
  get: (path, params) => call("GET", address(path, params)),
  post: (path, body = {}) => call("POST", path, body),
  put: (path, body = {}) => call("PUT", path, body),
  patch: (path, body = {}) => call("PATCH", path, body),
  delete: (path) => call("DELETE", path),
  ticket: async () => (await call("POST", "/api/auth/tickets", {})).ticket,
};

/** A path with its parameters; those that are undefined, null or empty are left out. */
export function address(path, params = {}) {
  const given = Object.entries(params).filter(
    ([, value]) => value !== undefined && value !== null && value !== "",
  );
  return given.length ? `${path}?${new URLSearchParams(given)}` : path;
}

/** A WebSocket with a fresh ticket. Resolves before it is open. */
export async function openSocket(path, params) {
  const ticket = await api.ticket();
  const url = new URL(address(path, params), location.href);
  url.protocol = url.protocol.replace("http", "ws");
  return new WebSocket(url, ["hermes.v1", `ticket.${ticket}`]);
}

async function call(method, path, body) {
  const headers = { accept: "application/json" };
  if (body !== undefined) headers["content-type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    throw new ApiError(0, "The dashboard can't be reached.", "Is it still running?");
  }
  const text = await answer.text();
  const content = parsed(text);
  if (answer.ok) return content;
  if (answer.status === 401) signedOut.set(true);
  throw new ApiError(
    answer.status,
    content?.error ?? `The dashboard answered ${answer.status}.`,
    content?.hint ?? "",
  );
}

function parsed(text) {
  try {
    return text ? JSON.parse(text) : null;
  } catch {
    return null;
  }
}

/** Requests of one kind that may overtake one another: an answer counts only while no newer request has begun. */
export class Latest {
  #number = 0;

  /** Begins a request; the function it returns says whether that request is still the newest. */
  begin() {
    const number = ++this.#number;
    return () => number === this.#number;
  }
}
