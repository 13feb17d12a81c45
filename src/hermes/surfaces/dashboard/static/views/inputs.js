// Fields that several views have: searching, picking one of a few, and the options of a select.
/** @import { Failure, Ref } from "../types/page.d.ts" */
import { inSentences } from "../app/api.js";
import { Icon } from "../app/parts/basics.js";
import { html } from "../app/ui.js";

/**
 * @typedef {object} SearchBoxProps
 * @property {string} label
 * @property {string} [placeholder]
 * @property {string} value
 * @property {(text: string) => void} onInput
 * @property {Ref<HTMLInputElement>} [field]
 */

/**
 * A field to search with; `onInput` gets the text, `field` is a ref to the input.
 * @param {SearchBoxProps} props
 */
export function SearchBox({ label, placeholder = label, value, onInput, field }) {
  return html`
    <label class="search-box">
      <${Icon} name="search" />
      <span class="unseen">${label}</span>
      <input
        ref=${field}
        class="input"
        type="search"
        placeholder=${placeholder}
        value=${value}
        onInput=${(event) => onInput(event.target.value)}
      />
    </label>
  `;
}

/**
 * One of a few, as pressed buttons. `choices` is [[name, label]].
 * @param {{ label: string, choices: string[][], value: string, onPick: (name: string) => void }} props
 */
export function Chips({ label, choices, value, onPick }) {
  /** @param {string[]} choice */
  const chip = ([name, text]) => html`
    <button
      key=${name}
      type="button"
      class="chip"
      aria-pressed=${String(name === value)}
      onClick=${() => onPick(name)}
    >
      ${text}
    </button>
  `;
  return html`<div class="chips" role="group" aria-label=${label}>${choices.map(chip)}</div>`;
}

/**
 * The options of a select. `choices` is [[name, label]].
 * @param {{ choices: string[][], value: string }} props
 */
export function Options({ choices, value }) {
  return choices.map(
    ([name, text]) =>
      html`<option key=${name} value=${name} selected=${name === value}>${text}</option>`,
  );
}

/**
 * What was wrong with what was entered.
 * @param {{ error: Failure, id?: string }} props
 */
export function FieldError({ error, id }) {
  return html`<p id=${id} class="field-error" role="alert">${inSentences(error)}</p>`;
}
