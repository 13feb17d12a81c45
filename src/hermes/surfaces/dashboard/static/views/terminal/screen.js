// One terminal: xterm on a connection. It lives as long as its tab, even while another view is shown.
/** @import { ConnectionState, Ready } from "./connection.js" */
/** @import { TerminalInfo } from "../../types/page.d.ts" */

import { FitAddon } from "/static/vendor/xterm-addon-fit-0.11.0/addon-fit.js";
import { UnicodeGraphemesAddon } from "/static/vendor/xterm-addon-unicode-graphemes-0.4.0/addon-unicode-graphemes.js";
import { Terminal } from "/static/vendor/xterm-xterm-6.0.0/xterm.js";
import { copy } from "../../app/parts/copy.js";
import { kept, Store } from "../../app/ui.js";
import { colors } from "./colors.js";
import { TerminalConnection } from "./connection.js";

const SETTLE_MS = 80; // milliseconds without a change before a new size counts
const LINE = 1.1; // height of a row in boxes of a letter: with 1, underscores would be cut off
const MONO = [
  "ui-monospace",
  '"SF Mono"',
  '"Cascadia Code"',
  '"JetBrains Mono"',
  "Menlo",
  "Consolas",
  '"DejaVu Sans Mono"',
  "monospace",
].join(", ");
// Answers of a terminal to a program's questions: where the cursor is, what it can do, its colors.
const ANSWER = /^\x1b(\[[?>=]?[\d;]*[cRnytu]|\[\?[\d;]*\$y|\][\d;].*|P.*)/;

/** Whether a screen reader is to be told what is written; slower, so it is a choice. */
export const screenReader = new Store(kept.get("terminal.spoken") === "yes");

/** The font size, in pixels. */
export const fontSize = new Store(Number(kept.get("terminal.letters")) || 14);

/**
 * About how many characters fit into the view, so that a program starts with the right size.
 * @param {HTMLElement} place
 */
export function roomFor(place) {
  const probe = document.createElement("span");
  probe.className = "terminal-probe";
  probe.style.font = `${fontSize.value}px ${MONO}`;
  probe.textContent = "W".repeat(50);
  place.append(probe);
  const { width, height } = probe.getBoundingClientRect();
  probe.remove();
  if (!width || !height) return {};
  /**
   * @param {number} room
   * @param {number} one
   */
  const fits = (room, one) => Math.min(500, Math.max(10, Math.floor(room / one)));
  return {
    cols: fits(place.clientWidth - 32, width / 50),
    rows: fits(place.clientHeight - 80, height * LINE),
  };
}

export class Screen {
  #term;
  #fit = new FitAddon();
  #line;
  #encoder = new TextEncoder();
  #replayTo = 0; // up to there it is the past that is shown again
  #written = 0;
  #leads = true; // false while another page decides how large the terminal is, and answers its questions
  #timer = 0;
  #observer = new ResizeObserver(() => this.#settle());
  /** @type {(() => unknown)[]} */
  #unwatch = [];

  /** @param {TerminalInfo} info */
  constructor(info) {
    this.id = info.id;
    this.info = info;
    this.title = new Store("");
    this.state = new Store(/** @type {ConnectionState} */ ("connecting"));
    this.ended = new Store(/** @type {{ code: number | null } | null} */ (null));
    this.ctrl = new Store(false); // the next key is pressed with Ctrl, on phones
    this.#term = new Terminal({
      allowProposedApi: true,
      cursorBlink: true,
      fontFamily: MONO,
      fontSize: fontSize.value,
      lineHeight: LINE,
      scrollback: 10_000,
      minimumContrastRatio: 4.5,
      screenReaderMode: screenReader.value,
      theme: colors.value,
      macOptionIsMeta: true,
      linkHandler: { activate: (event, address) => this.#follow(event, address) },
    });
    this.#term.loadAddon(this.#fit);
    this.#term.loadAddon(new UnicodeGraphemesAddon());
    this.#term.attachCustomKeyEventHandler((event) => this.#press(event));
    this.#term.onTitleChange((title) => this.title.set(title.slice(0, 80)));
    this.#term.onData((text) => this.#typed(text));
    this.#term.onBinary((text) =>
      this.#line.send(Uint8Array.from(text, (letter) => letter.charCodeAt(0))),
    );
    this.#unwatch = [
      colors.watch((theme) => {
        this.#term.options.theme = theme;
      }),
      screenReader.watch((on) => {
        this.#term.options.screenReaderMode = on;
      }),
      fontSize.watch((size) => {
        this.#term.options.fontSize = size;
        this.#settle();
      }),
    ];
    this.#line = new TerminalConnection(info.id, {
      onReady: (ready) => this.#ready(ready),
      onData: (bytes, done) => this.#show(bytes, done),
      onResized: ({ cols, rows }) => this.#followed(cols, rows),
      onEnded: (code) => this.ended.set({ code }),
      onState: (state) => this.state.set(state),
    });
  }

  /**
   * Puts it into an element; it moves if it was in another.
   * @param {HTMLElement} place
   */
  mount(place) {
    if (this.#term.element) place.append(this.#term.element);
    else this.#open(place);
    this.#observer.disconnect();
    this.#observer.observe(place);
    this.#resize();
  }

  /** @param {HTMLElement} place */
  #open(place) {
    this.#term.open(place);
    this.#term.textarea?.addEventListener("focus", () => this.#lead());
  }

  /** Removes it from the page; it keeps running. */
  unmount() {
    clearTimeout(this.#timer);
    this.#observer.disconnect();
    this.#term.element?.remove();
  }

  focus() {
    this.#term.focus();
  }

  /**
   * Text as if it had been typed.
   * @param {string} text
   */
  type(text) {
    this.#term.input(text, true);
  }

  /**
   * Text as if it had been pasted.
   * @param {string} text
   */
  paste(text) {
    this.#term.paste(text);
  }

  get selection() {
    return this.#term.getSelection();
  }

  /** What stands on the screen, for tests and for people who want to copy all of it. */
  get text() {
    const buffer = this.#term.buffer.active;
    const lines = Array.from({ length: buffer.length }, (_, at) => buffer.getLine(at));
    return lines
      .map((line) => (line?.isWrapped ? "" : "\n") + (line?.translateToString(true) ?? ""))
      .join("")
      .trim();
  }

  close() {
    this.unmount();
    this.#line.close();
    for (const stop of this.#unwatch) stop();
    this.#term.dispose();
  }

  /** @param {Ready} ready */
  #ready(ready) {
    this.#written = ready.position;
    this.#replayTo = ready.fresh ? ready.shown : 0;
    if (ready.fresh) this.#term.reset();
    // A page in the background that comes back leaves the size to the one that is used.
    this.#leads = ready.viewers <= 1 || document.hasFocus();
    if (this.#written >= this.#replayTo && this.#leads) this.#caughtUp();
    else this.#term.resize(ready.cols, ready.rows); // what comes is, or was, written for that size
  }

  /**
   * @param {Uint8Array} bytes
   * @param {() => void} done
   */
  #show(bytes, done) {
    this.#term.write(bytes, () => {
      const before = this.#written;
      this.#written += bytes.length;
      if (before < this.#replayTo && this.#written >= this.#replayTo) this.#caughtUp();
      done();
    });
  }

  #caughtUp() {
    this.#replayTo = 0;
    this.#resize(true);
  }

  /**
   * Another page has changed the size: it stays in charge until this one gets the focus.
   * @param {number} cols
   * @param {number} rows
   */
  #followed(cols, rows) {
    this.#leads = false;
    this.#term.resize(cols, rows);
  }

  #lead() {
    if (this.#leads) return;
    this.#leads = true;
    this.#resize(true);
  }

  #settle() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#resize(), SETTLE_MS);
  }

  /** Fits the rows and columns into the place. Not while the past is shown: it was written for another size. */
  #resize(tell = false) {
    if (
      this.#replayTo ||
      !this.#leads ||
      this.state.value === "ended" ||
      !this.#term.element?.isConnected
    )
      return;
    const size = this.#fit.proposeDimensions();
    if (!size?.cols || !size.rows) return;
    const { cols, rows } = size;
    const changed = cols !== this.#term.cols || rows !== this.#term.rows;
    if (changed) this.#term.resize(cols, rows);
    if (changed || tell) this.#line.resize(cols, rows);
  }

  /** @param {string} text */
  #typed(text) {
    // A question in what is only shown again was answered long ago; of several pages, one answers.
    if ((this.#replayTo || !this.#leads) && ANSWER.test(text)) return;
    this.#lead();
    if (this.ctrl.value && text.length === 1) {
      this.ctrl.set(false);
      text = String.fromCharCode(text.toUpperCase().charCodeAt(0) & 31);
    }
    this.#line.send(this.#encoder.encode(text));
  }

  /**
   * Returns false for keys that are not for the program.
   * @param {KeyboardEvent} event
   */
  #press(event) {
    const name = event.key.toLowerCase();
    const mod = event.ctrlKey && event.shiftKey;
    if (mod && name === "v") return false; // the browser pastes
    if ((mod || event.metaKey) && name === "c" && this.#term.hasSelection()) {
      if (event.type === "keydown") copy(this.selection);
      event.preventDefault();
      return false;
    }
    if (mod && name === "x") {
      if (event.type === "keydown") focusTab();
      event.preventDefault();
      return false;
    }
    return true;
  }

  /**
   * @param {MouseEvent} event
   * @param {string} address
   */
  #follow(event, address) {
    if (!/^https?:/i.test(address) || !(event.ctrlKey || event.metaKey)) return;
    window.open(address, "_blank", "noopener,noreferrer");
  }
}

function focusTab() {
  const tab = document.querySelector(".terminal-tabs [aria-selected=true]");
  if (tab instanceof HTMLElement) tab.focus();
}
