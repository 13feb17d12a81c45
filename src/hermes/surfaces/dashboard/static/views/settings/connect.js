// Connecting a model: a key or a sign-in, a server of one's own, or a small local model.
/** @import { Failure, FieldEvent } from "../../types/page.d.ts" */
/** @import { KnownProvider, TriedService } from "../../types/api.d.ts" */
import { api, asFailure, Latest } from "../../app/api.js";
import { Icon } from "../../app/parts/basics.js";
import { html, useState } from "../../app/ui.js";
import { FieldError } from "../inputs.js";
import { useLoaded } from "../loading.js";
import { LocalWay } from "./connect_local.js";
import { ServerWay } from "./connect_server.js";
import { ModelPicker, useConnecting } from "./model_picker.js";

/** @typedef {{ onConnected: () => void }} WayProps */

/** @type {[string, string, string, string, (props: WayProps) => unknown][]} */
const WAYS = [
  [
    "key",
    "key",
    "Use an API key",
    "From Anthropic, OpenAI, OpenRouter, Google or another provider; or Codex's sign-in, if it is installed.",
    KeyWay,
  ],
  [
    "server",
    "globe",
    "Use a server of your own",
    "Ollama, LM Studio, llama.cpp, vLLM or any address. Running servers are found.",
    ServerWay,
  ],
  [
    "local",
    "download",
    "Use a small local model, no account",
    "It runs on the dashboard's machine. Nothing leaves it.",
    LocalWay,
  ],
];

/** @param {WayProps} props */
export function Connect({ onConnected }) {
  const [way, setWay] = useState("");
  const chosen = WAYS.find(([name]) => name === way);
  const connected = () => {
    setWay("");
    onConnected();
  };
  return html`
    <section class="card stack">
      <h2>Connect a model</h2>
      <div class="ways" role="group" aria-label="What should answer?">
        ${WAYS.map(
          ([name, icon, title, text]) => html`
          <button
            key=${name}
            type="button"
            class="way"
            aria-pressed=${String(name === way)}
            onClick=${() => setWay(name === way ? "" : name)}
          >
            <${Icon} name=${icon} />
            <strong>${title}</strong>
            <span class="muted small">${text}</span>
          </button>
        `,
        )}
      </div>
      ${chosen && html`<${chosen[4]} key=${way} onConnected=${connected} />`}
    </section>
  `;
}

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

/** @param {WayProps} props */
function KeyWay({ onConnected }) {
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
          ${busy ? "Trying…" : "Connect"}
        </button>
      </form>
      <p class="muted small">
        The key is sent only to its provider. The page never shows it again.
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
export function KeyField({ value, onInput, label = "Key", isFirst = false }) {
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
    <div class="chips" role="group" aria-label="Use what is there">
      ${set.map(
        (one) => html`<button key=${one.name} type="button" class="chip"
          onClick=${() => attempt({ provider: one.name })}>${one.label} (key already set)</button>`,
      )}
      ${
        choices?.codex_login &&
        html`<button type="button" class="chip" disabled=${Boolean(busy)}
          onClick=${() => connect({ provider: "codex" })}>Use Codex's sign-in</button>`
      }
    </div>
    ${error && html`<${FieldError} error=${error} />`}
  `;
}

/** @param {{ candidates: KnownProvider[], pick: (provider: string) => void }} props */
function Whose({ candidates, pick }) {
  return html`
    <div class="stack tight" role="group" aria-label="Which provider is the key from?">
      <p>Several providers use keys like this one. Which provider is it from?</p>
      <div class="chips">
        ${candidates.map(
          (one) => html`<button key=${one.name} type="button" class="chip"
            onClick=${() => pick(one.name)}>${one.label}</button>`,
        )}
      </div>
    </div>
  `;
}
