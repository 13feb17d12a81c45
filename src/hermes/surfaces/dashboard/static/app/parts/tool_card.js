// A tool call as a card: a one-line summary, its state, and inside its arguments and output.
/** @import { Child, Ref, ToolCall } from "../../types/page.d.ts" */
import { t } from "../translation.js";
import { html, useEffect, useElement, useState } from "../ui.js";
import { Ansi } from "./ansi.js";
import { Icon } from "./basics.js";
import { argumentsOf } from "./call_arguments.js";
import { Code } from "./code.js";
import { Copy } from "./copy.js";
import { Diff } from "./diff.js";
import { duration, inFull } from "./format.js";
import { languageOfFile } from "./highlight.js";

/** @type {Record<string, string>} */
const ICON = {
  terminal: "terminal",
  exec_command: "terminal",
  run_python: "terminal",
  process: "terminal",
  read_file: "file",
  write_file: "edit",
  edit_file: "edit",
  apply_patch: "edit",
  list_files: "folder",
  search_files: "search",
  web_search: "globe",
  web_fetch: "globe",
  ask_user: "question",
  delegate: "people",
  delegate_task: "people",
  memory: "learning",
  skill: "learning",
  todo: "check",
  vision_analyze: "image",
  image_generate: "image",
};
const BULKY = new Set(["content", "old_text", "new_text", "items", "patch", "code"]);
/** @type {Record<string, [string, string]>} */
const STATE = {
  planned: ["clock", t("planned")],
  waiting: ["bell", t("waiting for you")],
  running: ["", t("running")],
  done: ["check", t("done")],
  failed: ["warn", t("failed")],
  unknown: ["question", t("outcome unknown")],
};
const TAIL_CHARS = 20_000; // characters of output that are shown
const LINES = 12;

const PATCHED = /^(?:\*\*\* (?:Add|Update|Delete) File:|\+\+\+ (?:b\/)?)\s*(\S.*?)\s*$/gm;

/**
 * The files that a patch is about, each once.
 * @param {string} patch
 */
export function patched(patch) {
  return [...new Set([...patch.matchAll(PATCHED)].map((found) => found[1]))];
}

/**
 * A call in one line.
 * @param {string} name
 * @param {string} text
 */
export function summaryOf(name, text) {
  const values = argumentsOf(text);
  if (!values) return text ?? "";
  if (name === "apply_patch") return patched(String(values.patch ?? "")).join(" ");
  return Object.entries(values)
    .filter(([key]) => !BULKY.has(key))
    .map(([, value]) => inOneLine(value))
    .filter(Boolean)
    .join(" ");
}

/** @param {unknown} value */
function inOneLine(value) {
  if (typeof value !== "string") return value === null ? "" : JSON.stringify(value);
  return value.split("\n")[0] + (value.includes("\n") ? " …" : "");
}

/**
 * Lines with a sign before each.
 * @param {string} sign
 * @param {string} text
 */
function signed(sign, text) {
  return String(text)
    .replace(/\n$/, "")
    .split("\n")
    .map((line) => `${sign}${line}\n`)
    .join("");
}

/**
 * What a change to a file would look like, from the arguments of the call; "" for other calls.
 * @param {string} name
 * @param {string} text
 */
export function diffOf(name, text) {
  const values = argumentsOf(text) ?? {};
  const { path, patch, old_text: before, new_text: after, content } = values;
  if (name === "apply_patch" && typeof patch === "string") return patch;
  if (name === "edit_file" && typeof after === "string") {
    return `--- a/${path}\n+++ b/${path}\n@@ -1 +1 @@\n${before ? signed("-", before) : ""}${signed("+", after)}`;
  }
  if (name === "write_file" && typeof content === "string") {
    return `--- /dev/null\n+++ b/${path}\n@@ -0,0 +1 @@\n${signed("+", content)}`;
  }
  return "";
}

/**
 * The arguments of a call, in the most readable form.
 * @param {{ name: string, text: string }} props
 */
export function CallInput({ name, text }) {
  const values = argumentsOf(text);
  const diff = diffOf(name, text);
  if (!values)
    return html`<${Code} text=${text ?? ""} name=${t("arguments as the model wrote them")} />`;
  if (diff) return html`<${Diff} text=${diff} label=${values.path ?? t("Patch")} />`;
  const rest = Object.entries(values).filter(([key]) => !["command", "code", "cmd"].includes(key));
  const command = values.command ?? values.cmd;
  /** @param {[string, unknown]} fact */
  const fact = ([key, value]) => html`
    <dt>${key}</dt>
    <dd>${typeof value === "string" ? value : JSON.stringify(value)}</dd>
  `;
  return html`
    <div class="stack tight">
      ${typeof command === "string" && html`<${Code} text=${command} language="bash" name=${t("command")} />`}
      ${typeof values.code === "string" && html`<${Code} text=${values.code} language="python" name="python" />`}
      ${rest.length > 0 && html`<dl class="facts">${rest.map(fact)}</dl>`}
    </div>
  `;
}

/**
 * The card. `call`: {name, arguments, status, output, text, started, ended, images}. `children` come below, such as a
 * request for approval; `open` shows the inside from the start.
 * @param {{ call: ToolCall, children?: Child, open?: boolean, pictures?: Child }} props
 */
export function ToolCard({ call, children, open = false, pictures = null }) {
  const [shown, setShown] = useState(open);
  const [, words] = STATE[call.status] ?? STATE.planned;
  const output = call.text || call.output || "";
  const isUnfinished = call.status === "running" || call.status === "waiting";
  return html`
    <section class=${`tool ${call.status}`} aria-label=${t("Tool {name}: {state}", { name: call.name, state: words })}>
      <${ToolHead} call=${call} shown=${shown} onClick=${() => setShown(!shown)} />
      ${
        shown &&
        html`
        <div class="tool-body">
          <${CallInput} name=${call.name} text=${call.arguments} />
          ${output && html`<${Output} text=${output} name=${call.name} call=${call} />`}
        </div>
      `
      }
      ${
        !shown &&
        isUnfinished &&
        call.output &&
        html`
        <div class="tool-body">
          <${Output} text=${lastLines(call.output)} name=${call.name} call=${call} live />
        </div>
      `
      }
      ${pictures}
      ${children}
    </section>
  `;
}

/** @param {{ call: ToolCall, shown: boolean, onClick: () => void }} props */
function ToolHead({ call, shown, onClick }) {
  return html`
    <button type="button" class="tool-head" aria-expanded=${shown ? "true" : "false"} onClick=${onClick}>
      <${Icon} name=${ICON[call.name] ?? "tool"} size=${18} />
      <span class="tool-name">${call.name}</span>
      <span class="tool-what">${summaryOf(call.name, call.arguments)}</span>
      <${CallState} call=${call} />
      <${Icon} name=${shown ? "up" : "down"} size=${16} />
    </button>
  `;
}

/**
 * The state of a call. Where the icon is clear, the text is only for screen readers.
 * @param {{ call: ToolCall }} props
 */
function CallState({ call: { status, started, ended } }) {
  const running = status === "running";
  const [icon, words] = STATE[status] ?? STATE.planned;
  const took = started && ended ? duration(ended - started) : "";
  return html`
    <span class=${`tool-state ${status}`}>
      ${running ? html`<span class="spinner" aria-hidden="true" />` : html`<${Icon} name=${icon} size=${16} />`}
      <span class=${status === "done" || running ? "unseen" : ""}>${words}</span>
      ${took && html`<span class="muted">${took}</span>`}
    </span>
  `;
}

/** @param {string} text */
function lastLines(text) {
  return text.slice(-4000).replace(/\n$/, "").split("\n").slice(-LINES).join("\n");
}

/** @param {{ text: string, name: string, call: ToolCall, live?: boolean }} props */
function Output({ text, name, call, live = false }) {
  const box = /** @type {Ref<HTMLElement>} */ (useElement());
  useEffect(() => {
    if (live && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [text, live]);
  const path = argumentsOf(call.arguments)?.path;
  const language = name === "read_file" && path && !live && languageOfFile(path);
  if (/^diff --git |^--- [^\n]*\n\+\+\+ /m.test(text) && /^@@ /m.test(text))
    return html`<${TextThenDiff} text=${text} />`;
  if (language) return html`<${Code} text=${text} language=${language} name=${path} />`;
  const cut = text.length > TAIL_CHARS;
  return html`
    <figure class="output">
      <figcaption>
        <span>${t("output")}</span>
        <${Copy} text=${text} label=${t("Copy output")} />
      </figcaption>
      ${
        cut &&
        html`
        <p class="muted">${t("Showing the last {count} characters. Copying includes all of them.", {
          count: inFull(TAIL_CHARS),
        })}</p>
      `
      }
      <pre ref=${box} tabindex="0" aria-label=${t("Output of {name}", { name })}>
        <${Ansi} text=${cut ? text.slice(-TAIL_CHARS) : text} />
      </pre>
    </figure>
  `;
}

/**
 * A result that contains a diff: the text before it, then the diff.
 * @param {{ text: string }} props
 */
function TextThenDiff({ text }) {
  const at = text.search(/^(diff --git |--- )/m);
  const before = text.slice(0, at).trim();
  return html`
    ${before && html`<p class="tool-words">${before}</p>`}
    <${Diff} text=${text.slice(at)} />
  `;
}
