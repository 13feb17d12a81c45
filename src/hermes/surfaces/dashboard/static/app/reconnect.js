// A WebSocket that reconnects by itself: with a growing pause, and at once when the network or the page comes back.
/** @import { Query } from "../types/page.d.ts" */
import { ApiError, openSocket } from "./api.js";

const FIRST_PAUSE_MS = 200; // before the second attempt
const LONGEST_PAUSE_MS = 8000;
const LONG_AWAY_MS = 30_000; // after this long hidden or asleep, a connection may be dead without having closed
const CLOCK_CHECK_MS = 5000; // a much longer interval means that the machine slept
const GONE_CODES = new Set([4003, 4004]); // close codes after which reconnecting does not help
const REFUSED_STATUSES = new Set([401, 403, 404]);

/**
 * @typedef {object} SocketHandlers
 * @property {() => Promise<[string, Query]> | [string, Query]} target path and parameters for the next attempt
 * @property {(data: string | ArrayBuffer, socket: WebSocket) => void} onMessage gets each message of the current socket
 * @property {() => void} onWaiting the connection was lost; another attempt follows
 * @property {() => void} onGone the server refused the connection permanently
 */

export class ReconnectingSocket {
  #handlers;
  /** @type {WebSocket | null} */
  #socket = null;
  #timer = 0;
  #pause = 0;
  #attempt = 0;
  #closed = false;
  #waiting = false;
  #hiddenAt = 0;
  #clockTimer = 0;
  #checkedAt = Date.now();

  /** @param {SocketHandlers} handlers */
  constructor(handlers) {
    this.#handlers = handlers;
    addEventListener("online", this.#reconnect);
    document.addEventListener("visibilitychange", this.#onVisibility);
    this.#clockTimer = setInterval(this.#checkClock, CLOCK_CHECK_MS);
    // Later, so that the owner can finish its own constructor.
    queueMicrotask(() => this.#connect());
  }

  /** Resets the pause. Call it when the server has greeted. */
  resetPause() {
    this.#pause = 0;
  }

  /** @param {WebSocket} socket */
  isCurrent(socket) {
    return this.#socket === socket;
  }

  get isOpen() {
    return this.#socket?.readyState === WebSocket.OPEN;
  }

  /**
   * Sends a message; does nothing while there is no connection.
   * @param {string | Uint8Array<ArrayBuffer>} data
   */
  send(data) {
    if (this.isOpen) this.#socket?.send(data);
  }

  close() {
    this.#closed = true;
    clearTimeout(this.#timer);
    clearInterval(this.#clockTimer);
    removeEventListener("online", this.#reconnect);
    document.removeEventListener("visibilitychange", this.#onVisibility);
    this.#drop();
  }

  #drop() {
    const socket = this.#socket;
    this.#socket = null;
    if (socket) closeSocket(socket);
  }

  async #connect() {
    if (this.#closed) return;
    clearTimeout(this.#timer);
    this.#drop();
    const attempt = ++this.#attempt;
    const isStale = () => attempt !== this.#attempt || this.#closed;
    let socket;
    try {
      socket = await openSocket(...(await this.#handlers.target()));
    } catch (error) {
      if (isStale()) return;
      if (error instanceof ApiError && REFUSED_STATUSES.has(error.status)) this.#handlers.onGone();
      else this.#retry();
      return;
    }
    if (isStale()) return closeSocket(socket);
    this.#socket = socket;
    this.#waiting = false;
    socket.binaryType = "arraybuffer";
    socket.onmessage = ({ data }) =>
      this.isCurrent(socket) && this.#handlers.onMessage(data, socket);
    socket.onclose = ({ code }) => this.isCurrent(socket) && this.#lost(code);
  }

  /** @param {number} code */
  #lost(code) {
    this.#socket = null;
    if (GONE_CODES.has(code)) this.#handlers.onGone();
    else this.#retry();
  }

  #retry() {
    this.#waiting = true;
    this.#handlers.onWaiting();
    this.#timer = setTimeout(() => this.#connect(), this.#pause * (0.75 + Math.random() / 2));
    this.#pause = Math.min(Math.max(this.#pause * 2, FIRST_PAUSE_MS), LONGEST_PAUSE_MS);
  }

  #reconnect = () => {
    this.#pause = 0;
    this.#connect();
  };

  #checkClock = () => {
    const slept = Date.now() - this.#checkedAt > LONG_AWAY_MS;
    this.#checkedAt = Date.now();
    if (slept && !document.hidden) this.#reconnect();
  };

  #onVisibility = () => {
    if (document.hidden) {
      this.#hiddenAt = Date.now();
      return;
    }
    const wasLongHidden = this.#hiddenAt && Date.now() - this.#hiddenAt > LONG_AWAY_MS;
    if (this.#waiting || wasLongHidden) this.#reconnect();
  };
}

/**
 * Closes a socket. One that is still connecting is closed once it is open: browsers log an error otherwise.
 * @param {WebSocket} socket
 */
function closeSocket(socket) {
  if (socket.readyState === WebSocket.CONNECTING) socket.onopen = () => socket.close();
  else socket.close();
}
