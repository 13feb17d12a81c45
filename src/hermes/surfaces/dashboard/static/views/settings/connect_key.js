// Connecting a model with an API key: a new one, or one that is set already.
/** @import { Failure, FieldEvent } from "../../types/page.d.ts" */
/** @import { KnownProvider, TriedService } from "../../types/api.d.ts" */
import { api, asFailure, Latest } from "../../app/api.js";
import { t } from "../../app/translation.js";
import { html, useState } from "../../app/ui.js";
import { FieldError } from "../inputs.js";
import { useLoaded } from "../loading.js";
import { ModelPicker, useConnecting } from "./model_picker.js";

/**
 * Tries a service and keeps what it lists.
 */
export function useTrying() {
  const [state, setState] = useState({
    busy: false,
    tried: /** @type {TriedService | null} */ (null),
    error: /** @type {Failure | null} */ (null),
  });
  const [requests] = useState(() => new Latest());
  /** @param {{ key?: string, provider?: string, base_url?: string }} body */
  const attempt = async (body) => {
    const isLatest = requests.begin();
    setState({ busy: true, tried: null, error: null });
    try {
      const tried = await api.post("/api/connections/try", body);
      if (isLatest()) setState({ busy: false, tried, error: null });
    } catch (error) {
      if (isLatest()) setState({ busy: false, tried: null, error: asFailure(error) });
    }
  };
  return { ...state, attempt };
}

/** @param {{ onConnected: () => void }} props */
export function KeyWay({ onConnected }) {
  const [key, setKey] = useState("");
  const choices = useLoaded(() => api.get("/api/connections"), []);
  const { busy, tried, error, attempt } = useTrying();
  const connected = () => {
    setKey("");
    onConnected();
  };
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    attempt({ key });
  };
  /** @param {string} provider */
  const pick = (provider) => attempt({ key, provider });
  return html`
    <div class="stack tight">
      <${Ready} choices=${choices.value} attempt=${attempt} onConnected=${connected} />
      <form class="field-row" onSubmit=${submit}>
        <${KeyField} value=${key} onInput=${setKey} isFirst />
        <button type="submit" class="button primary" disabled=${busy || !key.trim()}>
          ${busy ? t("Trying…") : t("Connect")}
        </button>
      </form>
      <p class="muted small">
        ${t("The key is sent only to its provider. The page never shows it again.")}
      </p>
      ${error && html`<${FieldError} error=${error} />`}
      ${
        tried &&
        tried.candidates.length > 0 &&
        html`<${Whose} candidates=${tried.candidates} pick=${pick} />`
      }
      ${
        tried?.provider &&
        html`<${ModelPicker} label=${tried.label} models=${tried.models}
          service=${{ provider: tried.provider, key }} onConnected=${connected} />`
      }
    </div>
  `;
}

/** @param {HTMLInputElement | null} field */
const focus = (field) => field?.focus();

/** @param {{ value: string, onInput: (text: string) => void, label?: string, isFirst?: boolean }} props */
export function KeyField({ value, onInput, label = t("Key"), isFirst = false }) {
  return html`
    <label class="field">
      <span>${label}</span>
      <input
        ref=${isFirst ? focus : null}
        class="input mono"
        type="password"
        name="hermes-model-key"
        autocomplete="off"
        data-1p-ignore
        data-lpignore="true"
        spellcheck=${false}
        value=${value}
        onInput=${(/** @type {FieldEvent} */ event) => onInput(event.target.value)}
      />
    </label>
  `;
}

/**
 * What needs no new key: keys that are set, and codex's sign-in.
 * @param {object} props
 * @param {{ providers: KnownProvider[], codex_login: boolean } | undefined} props.choices
 * @param {(body: { provider: string }) => void} props.attempt
 * @param {() => void} props.onConnected
 */
function Ready({ choices, attempt, onConnected }) {
  const { busy, error, connect } = useConnecting(onConnected);
  const set = choices?.providers.filter((one) => one.key_set) ?? [];
  if (!set.length && !choices?.codex_login) return null;
  return html`
    <div class="chips" role="group" aria-label=${t("Use what is there")}>
      ${set.map(
        (one) => html`<button key=${one.name} type="button" class="chip"
          onClick=${() => attempt({ provider: one.name })}>
          ${t("{provider} (key already set)", { provider: one.label })}</button>`,
      )}
      ${
        choices?.codex_login &&
        html`<button type="button" class="chip" disabled=${Boolean(busy)}
          onClick=${() => connect({ provider: "codex" })}>${t("Use Codex's sign-in")}</button>`
      }
    </div>
    ${error && html`<${FieldError} error=${error} />`}
  `;
}

/** @param {{ candidates: KnownProvider[], pick: (provider: string) => void }} props */
function Whose({ candidates, pick }) {
  return html`
    <div class="stack tight" role="group" aria-label=${t("Which provider is the key from?")}>
      <p>${t("Several providers use keys like this one. Which provider is it from?")}</p>
      <div class="chips">
        ${candidates.map(
          (one) => html`<button key=${one.name} type="button" class="chip"
            onClick=${() => pick(one.name)}>${one.label}</button>`,
        )}
      </div>
    </div>
  `;
}
