// The connection to one terminal: bytes both ways over a WebSocket that reconnects by itself. It counts the bytes that
// arrived, so that none is lost or shown twice, and lets the server send no faster than the screen can show.
import { ReconnectingSocket } from "../../app/reconnect.js";

const WINDOW_BYTES = 384 * 1024; // sent by the server and not yet shown
const ACK_BYTES = 48 * 1024; // shown before the server is told, while more are coming
const FRAME_BYTES = 64 * 1024; // of input in one message

/** @typedef {{ cols: number, rows: number }} Size */

/** @typedef {Size & { position: number, shown: number, fresh: boolean, viewers: number }} Ready */

/** @typedef {"connecting" | "live" | "waiting" | "ended" | "gone"} ConnectionState */

/**
 * @typedef {{ type: "pty.ready" } & Ready
 *   | { type: "pty.resized" } & Size
 *   | { type: "pty.ended", exit_code: number | null }} Note
 */

/**
 * @typedef {object} ConnectionHandlers
 * @property {(ready: Ready) => void} onReady
 * @property {(bytes: Uint8Array, done: () => void) => void} onData
 * @property {(size: Size) => void} onResized
 * @property {(code: number | null) => void} onEnded
 * @property {(state: ConnectionState) => void} onState
 */

export class TerminalConnection {
  #handlers;
  #socket;
  /** @type {number | null} */
  #position = null; // of the next byte; null before the first connection
  /** @type {Uint8Array<ArrayBuffer>[]} */
  #early = []; // typed before the first connection
  #pending = 0; // bytes received, not yet shown
  #shown = 0; // bytes shown, not yet acknowledged

  /**
   * @param {string} id
   * @param {ConnectionHandlers} handlers
   */
  constructor(id, handlers) {
    this.#handlers = handlers;
    this.#socket = new ReconnectingSocket({
      target: () => ["/api/pty", { id, after: this.#position, window: WINDOW_BYTES }],
      onMessage: (data, socket) => this.#receive(data, socket),
      onWaiting: () => handlers.onState("waiting"),
      onGone: () => this.#end("gone"),
    });
  }

  get position() {
    return this.#position;
  }

  /**
   * Sends what was typed. Before the first connection it is kept; while reconnecting it is dropped, because nobody may
   * expect it any more.
   * @param {Uint8Array<ArrayBuffer>} bytes
   */
  send(bytes) {
    if (this.#position === null) {
      this.#early.push(bytes);
      return;
    }
    for (let at = 0; at < bytes.length; at += FRAME_BYTES) {
      this.#socket.send(bytes.subarray(at, at + FRAME_BYTES));
    }
  }

  /**
   * @param {number} cols
   * @param {number} rows
   */
  resize(cols, rows) {
    this.#command({ op: "resize", cols, rows });
  }

  /** Closes the connection; the terminal goes on. */
  close() {
    this.#socket.close();
  }

  /**
   * @param {string | ArrayBuffer} data
   * @param {WebSocket} socket
   */
  #receive(data, socket) {
    if (typeof data === "string") return this.#note(JSON.parse(data));
    const count = data.byteLength;
    this.#position = (this.#position ?? 0) + count;
    this.#pending += count;
    const done = () => this.#socket.isCurrent(socket) && this.#acknowledge(count);
    this.#handlers.onData(new Uint8Array(data), done);
  }

  /** @param {Note} note */
  #note(note) {
    if (note.type === "pty.ready") {
      this.#position = note.position;
      this.#pending = this.#shown = 0;
      this.#socket.resetPause();
      this.#handlers.onReady(note);
      this.#handlers.onState("live");
      for (const bytes of this.#early.splice(0)) this.send(bytes);
    } else if (note.type === "pty.resized") {
      this.#handlers.onResized(note);
    } else if (note.type === "pty.ended") {
      this.#end("ended");
      this.#handlers.onEnded(note.exit_code);
    }
  }

  /**
   * Counts bytes that the screen has shown; the server may send as many again.
   * @param {number} count
   */
  #acknowledge(count) {
    this.#pending -= count;
    this.#shown += count;
    if (this.#shown < ACK_BYTES && this.#pending) return;
    this.#command({ op: "ack", bytes: this.#shown });
    this.#shown = 0;
  }

  /** @param {object} command */
  #command(command) {
    this.#socket.send(JSON.stringify(command));
  }

  /** @param {"ended" | "gone"} state */
  #end(state) {
    this.close();
    this.#handlers.onState(state);
  }
}
