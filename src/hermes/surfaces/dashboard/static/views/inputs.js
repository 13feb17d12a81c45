// Fields that several views have: searching, picking one of a few, and the options of a select.
import { Icon } from "../app/parts/basics.js";
import { html } from "../app/ui.js";

/** A field to search with; `onInput` gets the text, `field` is a ref to the input. */
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

/** One of a few, as pressed buttons. `choices` is [[name, label]]. */
export function Chips({ label, choices, value, onPick }) {
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

/** The options of a select. `choices` is [[name, label]]. */
export function Options({ choices, value }) {
  return choices.map(
    ([name, text]) =>
      html`<option key=${name} value=${name} selected=${name === value}>${text}</option>`,
  );
}

/** What was wrong with what was entered. */
export function FieldError({ error, id }) {
  return html`<p id=${id} class="field-error" role="alert">${error.message} ${error.hint}</p>`;
}
