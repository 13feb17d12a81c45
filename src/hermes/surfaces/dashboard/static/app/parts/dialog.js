// Dialogs: the browser's own, so focus stays inside, Esc closes, and what is behind is out of reach.
/** @import { Child, FieldEvent, Ref } from "../../types/page.d.ts" */
import { t } from "../translation.js";
import { html, Store, useElement, useLayoutEffect, useState, useStore } from "../ui.js";
import { Button } from "./basics.js";

/**
 * @typedef {object} DialogProps
 * @property {string} title
 * @property {() => unknown} onClose
 * @property {Child} [children]
 * @property {Child} [actions]
 * @property {string} [class]
 * @property {boolean} [plain]
 */

/**
 * @typedef {object} Question
 * @property {string} title
 * @property {string} text
 * @property {string} action
 * @property {boolean} [danger]
 * @property {boolean} [input]
 * @property {string} [label]
 * @property {string} [value]
 * @property {(answer: boolean | string | null) => void} resolve
 */

/**
 * A dialog while it is drawn. `onClose` is called when the user leaves it.
 * @param {DialogProps} props
 */
export function Dialog({ title, onClose, children, actions, class: more = "", plain = false }) {
  const box = /** @type {Ref<HTMLDialogElement>} */ (useElement());
  // Synchronously, so that keys typed right after opening go to the dialog.
  useLayoutEffect(() => {
    const dialog = box.current;
    dialog.showModal();
    return () => dialog.close(); // that gives the focus back; while it is open, nothing behind it can have it
  }, []);
  /** @param {Event} event */
  const outside = (event) => event.target === box.current && onClose();
  /** @param {Event} event */
  const cancel = (event) => {
    event.preventDefault();
    onClose();
  };
  const framed = html`
    <header>
      <h2>${title}</h2>
      <${Button} kind="quiet" icon="close" label=${t("Close")} onClick=${onClose} />
    </header>
    <div class="dialog-body">${children}</div>
    ${actions && html`<footer>${actions}</footer>`}
  `;
  return html`
    <dialog ref=${box} class=${`dialog ${more}`} aria-label=${title} onCancel=${cancel} onMouseDown=${outside}>
      ${plain ? children : framed}
    </dialog>
  `;
}

const asked = new Store(/** @type {Question | null} */ (null));

/**
 * Asks for confirmation before something irreversible. Resolves to the answer.
 * @param {{ title: string, text?: string, action?: string, danger?: boolean }} question
 * @returns {Promise<boolean>}
 */
export function confirm({ title, text = "", action = t("Yes"), danger = false }) {
  return new Promise((resolve) =>
    asked.set({
      title,
      text,
      action,
      danger,
      resolve: (answer) => resolve(answer === true),
    }),
  );
}

/**
 * Asks for a line of text. Resolves to it, or to null.
 * @param {{ title: string, label?: string, value?: string, action?: string, text?: string }} question
 * @returns {Promise<string | null>}
 */
export function ask({ title, label = title, value = "", action = t("Save"), text = "" }) {
  return new Promise((resolve) =>
    asked.set({
      title,
      label,
      value,
      action,
      text,
      input: true,
      resolve: (answer) => resolve(typeof answer === "string" ? answer : null),
    }),
  );
}

/** Where `confirm` and `ask` appear; the frame draws it once. */
export function OpenDialog() {
  const question = useStore(asked);
  return question && html`<${Question} key=${question.title} ...${question} />`;
}

// Before something dangerous, Cancel has the focus, so that an accidental Enter cancels.
/** @param {Question} props */
function Question({ title, text, label, value, action, danger, input, resolve }) {
  const [words, setWords] = useState(value);
  /** @param {boolean | string | null} answer */
  const finish = (answer) => {
    asked.set(null);
    resolve(answer);
  };
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    finish(input ? (words ?? "") : true);
  };
  const cancel = () => finish(input ? null : false);
  /** @param {FieldEvent} event */
  const onInput = (event) => setWords(event.target.value);
  return html`
    <${Dialog} title=${title} onClose=${cancel}>
      <form onSubmit=${submit} class="stack">
        ${text && html`<p>${text}</p>`}
        ${input && html`<input class="input" aria-label=${label} value=${words} autofocus onInput=${onInput} />`}
        <div class="row end">
          <${Button} kind="quiet" autofocus=${danger} onClick=${cancel}>${t("Cancel")}<//>
          <button type="submit" class=${`button ${danger ? "danger" : "primary"}`} autofocus=${!input && !danger}>
            ${action}
          </button>
        </div>
      </form>
    <//>
  `;
}
