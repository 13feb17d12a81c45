// How plugins for the original agent talk to the dashboard: the helpers of their SDK, over our routes.
import { address, api, profile, signedOut } from "../../app/api.js";
import { ago } from "../../app/parts/format.js";
import { METHODS } from "./sdk_api.js";

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

/** A method that we don't have fails with a sentence, not with "undefined is not a function". */
export const client = new Proxy(/** @type {Record<string, any>} */ ({ ...METHODS, buildWsUrl }), {
  get: (methods, name) =>
    methods[String(name)] ??
    (() => Promise.reject(new Error(`This dashboard has no SDK.api.${String(name)}.`))), // not translated: for plugins
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
