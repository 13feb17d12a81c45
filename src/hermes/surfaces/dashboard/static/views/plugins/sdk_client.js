// How plugins for the original agent talk to the dashboard: the helpers of their SDK, over our routes.
import { address, api, profile, signedOut } from "../../app/api.js";
import { ago } from "../../app/parts/format.js";

/**
 * JSON from a route; an error with status and text otherwise.
 * @param {string} url
 * @param {RequestInit} [init]
 * @param {{ allowUnauthorized?: boolean }} [options]
 */
export async function fetchJSON(url, init, options) {
  const answer = await authedFetch(url, init);
  const text = await answer.text();
  if (answer.status === 401 && !options?.allowUnauthorized) signedOut.set(true);
  if (!answer.ok) throw new Error(`${answer.status}: ${text}`);
  return text ? JSON.parse(text) : null;
}

/**
 * A request of this browser: its cookie says who it is, so a plugin needs no token.
 * @param {string} url
 * @param {RequestInit} [init]
 */
export function authedFetch(url, init) {
  return fetch(url, { ...init, credentials: "same-origin" });
}

/** @returns {Promise<[string, string]>} */
export async function buildWsAuthParam() {
  return ["ticket", await api.ticket()];
}

/**
 * The address of a WebSocket, with a ticket that works once.
 * @param {string} path
 * @param {Record<string, string>} [params]
 */
export async function buildWsUrl(path, params = {}) {
  const [name, ticket] = await buildWsAuthParam();
  const url = new URL(address(path, { ...params, [name]: ticket }), location.href);
  url.protocol = url.protocol.replace("http", "ws");
  return url.href;
}

export const utils = {
  /** @param {number} time seconds, or milliseconds */
  timeAgo: (time) => ago(time > 1e11 ? time / 1000 : time),
  /** @param {string} iso */
  isoTimeAgo: (iso) => ago(Date.parse(iso) / 1000),
};

/** @param {Record<string, any>} one */
function sessionRow(one) {
  return {
    id: one.id,
    title: one.title,
    source: one.surface,
    model: one.model,
    started_at: one.created,
    last_active: one.updated,
    message_count: one.turns,
    is_active: one.running,
    preview: one.title,
  };
}

/** What the original's client has and ours has an answer for. */
const METHODS = {
  async getStatus() {
    const status = await /** @type {Promise<Record<string, any>>} */ (api.get("/api/status"));
    return { ...status, gateway_running: Boolean(status.gateway) };
  },
  async getSessions(limit = 20) {
    const { sessions } = await /** @type {Promise<any>} */ (api.get("/api/sessions", { limit }));
    return { sessions: sessions.map(sessionRow), total: sessions.length, limit, offset: 0 };
  },
  getPlugins: async () => (await api.get("/api/plugins")).plugins,
  getConfig: () => api.get("/api/settings"),
  getCronJobs: () => api.get("/api/schedules"),
  getSkills: () => api.get("/api/skills"),
};

/** A method that we don't have fails with a sentence, not with "undefined is not a function". */
export const client = new Proxy(/** @type {Record<string, any>} */ (METHODS), {
  get: (methods, name) =>
    methods[String(name)] ??
    (() => Promise.reject(new Error(`This dashboard has no SDK.api.${String(name)}.`))),
});

/** The profile switcher of the original, as far as we have one: it never changes while the page is open. */
export const profileScope = {
  get profile() {
    return "";
  },
  get currentProfile() {
    return profile.value;
  },
  get profiles() {
    return Object.freeze([profile.value]);
  },
  /** @param {() => void} callback */
  subscribe(callback) {
    callback();
    return profile.watch(callback);
  },
};
