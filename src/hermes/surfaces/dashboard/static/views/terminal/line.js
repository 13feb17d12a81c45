// The line to one terminal: bytes both ways over a WebSocket that comes back by itself. It counts what arrived, so that
// nothing is lost or doubled, and holds the program back to the pace of the screen.
import { openSocket } from "../../app/api.js";

const WINDOW = 384 * 1024; // bytes on their way that the screen has not shown yet
const ACK = 48 * 1024; // bytes shown before the server is told, while more are coming
const PIECE = 64 * 1024; // bytes of input in one frame
const FIRST_PAUSE = 200; // milliseconds before the second attempt
const LONGEST_PAUSE = 8000;
const GONE = 4004;

export class Line {
  #id;
  #handlers;
  #socket = null;
  #attempt = 0;
  #timer = 0;
  #pause = 0;
  #position = null; // the next byte; null before there was one
  #early = []; // typed before there was a connection
  #pending = 0; // bytes received, not yet shown
  #shown = 0; // bytes shown, not yet acknowledged
  #closed = false;

  /**
   * `handlers`: onReady(ready), onData(bytes, done), onResized({cols, rows}), onEnded(code), and onState(state) with
   * "connecting" | "live" | "waiting" | "ended" | "gone".
   */
  constructor(id, handlers) {
    this.#id = id;
    this.#handlers = handlers;
    addEventListener("online", this.#now);
    document.addEventListener("visibilitychange", this.#seen);
    queueMicrotask(() => this.#connect());
  }

  get position() {
    return this.#position;
  }

  /** What was typed. It is kept until the first connection, but not over a break: nobody might expect it any more. */
  send(bytes) {
    if (this.#position === null) return void this.#early.push(bytes);
    if (this.#socket?.readyState !== WebSocket.OPEN) return;
    for (let at = 0; at < bytes.length; at += PIECE)
      this.#socket.send(bytes.subarray(at, at + PIECE));
  }

  resize(cols, rows) {
    this.#order({ op: "resize", cols, rows });
  }

  /** Ends the line; the terminal lives on. */
  close() {
    this.#closed = true;
    clearTimeout(this.#timer);
    removeEventListener("online", this.#now);
    document.removeEventListener("visibilitychange", this.#seen);
    this.#drop();
  }

  async #connect() {
    if (this.#closed) return;
    clearTimeout(this.#timer);
    this.#drop();
    const attempt = ++this.#attempt;
    let socket;
    try {
      socket = await openSocket("/api/pty", {
        id: this.#id,
        after: this.#position,
        window: WINDOW,
      });
    } catch (error) {
      if (attempt !== this.#attempt || this.#closed) return;
      if (error.status === 401 || error.status === 403) this.#end("gone");
      else this.#again();
      return;
    }
    if (attempt !== this.#attempt || this.#closed) return socket.close();
    this.#socket = socket;
    this.#pending = this.#shown = 0;
    socket.binaryType = "arraybuffer";
    socket.onmessage = ({ data }) => this.#socket === socket && this.#take(socket, data);
    socket.onclose = ({ code }) => this.#socket === socket && this.#lost(code);
  }

  #take(socket, data) {
    if (typeof data === "string") return this.#note(JSON.parse(data));
    this.#position += data.byteLength;
    this.#pending += data.byteLength;
    this.#handlers.onData(
      new Uint8Array(data),
      () => this.#socket === socket && this.#show(data.byteLength),
    );
  }

  #note(note) {
    if (note.type === "pty.ready") {
      this.#position = note.position;
      this.#pause = 0;
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

  /** The screen has shown so much; the server may send as much again. */
  #show(count) {
    this.#pending -= count;
    this.#shown += count;
    if (this.#shown < ACK && this.#pending) return;
    this.#order({ op: "ack", bytes: this.#shown });
    this.#shown = 0;
  }

  #order(order) {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(order));
  }

  #lost(code) {
    this.#socket = null;
    if (code === GONE) this.#end("gone");
    else this.#again();
  }

  #end(state) {
    this.close();
    this.#handlers.onState(state);
  }

  #drop() {
    const socket = this.#socket;
    this.#socket = null;
    socket?.close();
  }

  #again() {
    this.#handlers.onState("waiting");
    this.#timer = setTimeout(() => this.#connect(), this.#pause * (0.75 + Math.random() / 2));
    this.#pause = Math.min(Math.max(this.#pause * 2, FIRST_PAUSE), LONGEST_PAUSE);
  }

  #now = () => {
    this.#pause = 0;
    if (this.#socket?.readyState !== WebSocket.OPEN) this.#connect();
  };

  #seen = () => {
    if (!document.hidden) this.#now();
  };
}
