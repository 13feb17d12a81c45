// One typed setting, edited in place. The server judges what was typed, and says when it holds.
/** @import { Failure, FieldEvent, Saving, SettingRow } from "../../types/page.d.ts" */
import { api, asFailure, may } from "../../app/api.js";
import { Button, Tag, Words } from "../../app/parts/basics.js";
import { toast } from "../../app/parts/toast.js";
import { t } from "../../app/translation.js";
import { html, useEffect, useState } from "../../app/ui.js";
import { FieldError, Options } from "../inputs.js";
import { settingLabel } from "./setting_words.js";

/**
 * @typedef {object} ControlProps
 * @property {SettingRow} one
 * @property {string} text
 * @property {(text: string) => void} setText
 * @property {(value: string) => void} save
 * @property {() => void} reset
 * @property {boolean} fixed
 * @property {string} typed
 * @property {boolean} busy
 * @property {Failure | null} error
 */

/** @typedef {Omit<ControlProps, "fixed" | "error"> & { shared: object }} FieldProps */

/** @type {Record<string, string>} */
const WHEN = {
  now: t("Saved. It takes effect now."),
  restart: t(
    "Saved. It takes effect when this dashboard and other Hermes processes are restarted.",
  ),
};
const TALLEST_LINES = 14; // lines of a field

/** @param {{ one: SettingRow, showsKey: boolean, again: () => Promise<void> }} props */
export function Setting({ one, showsKey, again }) {
  const isList = isTextList(one);
  const typed = isList ? /** @type {string[]} */ (one.value).join("\n") : asTyped(one.value);
  const [text, setText] = useState(typed);
  const [state, setState] = useState(/** @type {Saving} */ ({ busy: false, error: null }));
  useEffect(() => setText(typed), [typed]);
  const fixed = !may("admin") || isVariable(one) || one.masked;
  /** @param {() => Promise<{ applies: string }>} work */
  const run = async (work) => {
    setState({ busy: true, error: null });
    try {
      const { applies } = await work();
      await again();
      setState({ busy: false, error: null });
      toast(WHEN[applies] ?? t("Saved."), "good");
    } catch (error) {
      setState({ busy: false, error: asFailure(error) });
    }
  };
  /** @type {`/api/settings/${string}`} */
  const address = `/api/settings/${encodeURIComponent(one.key)}`;
  /** @param {string} value */
  const save = (value) => run(() => api.put(address, { value: isList ? asList(value) : value }));
  const restore = () => run(() => api.delete(address));
  const reset = () => {
    setText(typed);
    setState({ busy: false, error: null });
  };
  const control = { one, text, setText, save, reset, fixed, typed, ...state };
  return html`
    <div class="setting" data-key=${one.key}>
      <div class="setting-about">
        <label class="setting-label" for=${`set-${one.key}`}>${settingLabel(one.key)}</label>
        ${showsKey && html`<code class="setting-key">${one.key}</code>`}
        <p class="muted" id=${`about-${one.key}`}><${Words} text=${one.description} /></p>
      </div>
      <div class="setting-value">
        <${Control} ...${control} />
        ${state.error && html`<${FieldError} id=${`wrong-${one.key}`} error=${state.error} />`}
        <${Origin} one=${one} busy=${state.busy} restore=${restore} />
      </div>
    </div>
  `;
}

/**
 * Where the value comes from, and the way back to the default.
 * @param {{ one: SettingRow, busy: boolean, restore: () => void }} props
 */
function Origin({ one, busy, restore }) {
  const canRestore = one.origin !== "default" && !isVariable(one) && may("admin");
  return html`
    <p class="setting-origin">
      <${Source} one=${one} />
      ${one.masked && html`<span>${t("Contains a secret. Edit it in the file.")}</span>`}
      ${
        canRestore &&
        html`
        <${Button} kind="quiet" icon="undo" class="slim" disabled=${busy} onClick=${restore}>
          <span class="unseen">${t("Restore the default of {setting}", { setting: settingLabel(one.key) })}, </span>
          ${t("default: {value}", { value: asTyped(one.default) || t("empty") })}
        <//>
      `
      }
    </p>
  `;
}

/** @param {{ one: SettingRow }} props */
function Source({ one }) {
  if (one.origin === "default") return html`<${Tag}>${t("default")}<//>`;
  if (!isVariable(one)) return html`<${Tag} kind="accent">${one.origin}<//>`;
  return html`<${Tag} kind="warn" title=${t("An environment variable overrides the file.")}>${one.origin}<//>`;
}

/**
 * What a setting is changed with, by what it holds: a switch, a choice, or text.
 * @param {ControlProps} props
 */
function Control({ one, text, setText, save, reset, fixed, typed, busy, error }) {
  const shared = {
    id: `set-${one.key}`,
    disabled: fixed || busy,
    "aria-describedby": `about-${one.key}${error ? ` wrong-${one.key}` : ""}`,
    "aria-invalid": error ? "true" : undefined,
  };
  if (typeof one.value === "boolean") {
    /** @param {FieldEvent} event */
    const onChange = (event) => save(String(event.target.checked));
    return html`
      <input ...${shared} type="checkbox" class="switch" role="switch" checked=${one.value} onChange=${onChange} />
    `;
  }
  if (one.choices.length) {
    return html`
      <select ...${shared} class="input" value=${typed} onChange=${(event) => save(event.target.value)}>
        <${Options} choices=${one.choices.map((choice) => [choice, choice])} value=${typed} />
      </select>
    `;
  }
  return html`<${Field} ...${{ one, shared, text, setText, save, reset, typed, busy }} />`;
}

/** @param {FieldProps} props */
function Field({ one, shared, text, setText, save, reset, typed, busy }) {
  const isChanged = text !== typed;
  /** @param {KeyboardEvent & FieldEvent} event */
  const onKeyDown = (event) => {
    const saves =
      event.key === "Enter" && (event.target.tagName === "INPUT" || event.ctrlKey || event.metaKey);
    if (event.key === "Escape") reset();
    else if (saves && isChanged) save(text);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const field = {
    ...shared,
    value: text,
    placeholder: isTextList(one) ? t("one per line") : one.kind,
    spellcheck: false,
    autocomplete: "off",
    onInput: (/** @type {FieldEvent} */ event) => setText(event.target.value),
    onKeyDown,
  };
  const isTable = one.value !== null && typeof one.value === "object";
  const lines = Math.min(text.split("\n").length, TALLEST_LINES);
  return html`
    <div class="setting-edit">
      ${
        isTable
          ? html`<textarea ...${field} class="input mono" rows=${lines} />`
          : html`<input ...${field} class="input" />`
      }
      ${
        isChanged &&
        html`
        <span class="row">
          <${Button} kind="primary" busy=${busy} onClick=${() => save(text)}>${t("Save")}<//>
          <${Button} kind="quiet" onClick=${reset}>${t("Cancel")}<//>
        </span>
      `
      }
    </div>
  `;
}

/**
 * Whether it holds lines of text, which people write one below the other.
 * @param {SettingRow} one
 */
function isTextList(one) {
  const isText = Array.isArray(one.value) && one.value.every((part) => typeof part === "string");
  return isText && one.kind.startsWith("a list");
}

/**
 * Lines as the server reads a list.
 * @param {string} lines
 */
function asList(lines) {
  if (lines.trim().startsWith("[")) return lines; // somebody writes it as the file has it
  const parts = lines.split("\n").map((line) => line.trim());
  return JSON.stringify(parts.filter(Boolean));
}

/** @param {SettingRow} one */
function isVariable(one) {
  return one.origin === one.variable;
}

/**
 * A value as a person would type it. Lists and tables are JSON, which is YAML too.
 * @param {unknown} value
 */
export function asTyped(value) {
  if (value === null) return "null";
  if (typeof value !== "object") return String(value);
  const isShort = JSON.stringify(value).length < 60;
  return JSON.stringify(value, null, isShort ? 0 : 2);
}
