// A server of one's own: those that run on the dashboard's machine, or an address.
/** @import { FieldEvent } from "../../types/page.d.ts" */
/** @import { LocalServer } from "../../types/api.d.ts" */
import { api } from "../../app/api.js";
import { t } from "../../app/translation.js";
import { html, useState } from "../../app/ui.js";
import { FieldError } from "../inputs.js";
import { useLoaded, whenLoaded } from "../loading.js";
import { KeyField, useTrying } from "./connect_key.js";
import { ModelPicker } from "./model_picker.js";

/** @param {{ onConnected: () => void }} props */
export function ServerWay({ onConnected }) {
  const servers = useLoaded(() => api.get("/api/connections/servers"), []);
  return html`
    <div class="stack">
      ${whenLoaded(servers, ({ servers: list }) => html`<${Running} list=${list} onConnected=${onConnected} />`)}
      <${Address} onConnected=${onConnected} />
    </div>
  `;
}

/** @param {{ list: LocalServer[], onConnected: () => void }} props */
function Running({ list, onConnected }) {
  const [open, setOpen] = useState("");
  if (!list.length)
    return html`<p class="muted">${t("No model server is running on the dashboard's machine.")}</p>`;
  const chosen = list.find((one) => one.base_url === open);
  return html`
    <div class="chips" role="group" aria-label=${t("Running servers")}>
      ${list.map(
        (one) => html`
        <button
          key=${one.base_url}
          type="button"
          class="chip"
          aria-pressed=${String(one.base_url === open)}
          onClick=${() => setOpen(one.base_url)}
        >
          ${t("{server} ({count} model)", "{server} ({count} models)", { server: one.label, count: one.models.length })}
        </button>
      `,
      )}
    </div>
    ${
      chosen &&
      !chosen.models.length &&
      html`<p class="field-error">${t("This server has no models yet. Add one there first.")}</p>`
    }
    ${
      chosen &&
      chosen.models.length > 0 &&
      html`<${ModelPicker} key=${chosen.base_url} label=${chosen.label} models=${chosen.models}
        service=${{ provider: chosen.provider, base_url: chosen.base_url }} onConnected=${onConnected} />`
    }
  `;
}

/** @param {{ onConnected: () => void }} props */
function Address({ onConnected }) {
  const [address, setAddress] = useState("");
  const [key, setKey] = useState("");
  const { busy, tried, error, attempt } = useTrying();
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    attempt({ base_url: address, key });
  };
  return html`
    <form class="field-row" onSubmit=${submit}>
      <label class="field">
        <span>${t("Address")}</span>
        <input class="input mono" inputmode="url" spellcheck=${false} autocapitalize="off"
          placeholder="http://192.168.1.5:8000/v1" value=${address}
          onInput=${(/** @type {FieldEvent} */ event) => setAddress(event.target.value)} />
      </label>
      <${KeyField} label=${t("API key (optional)")} value=${key} onInput=${setKey} />
      <button type="submit" class="button primary" disabled=${busy || !address.trim()}>
        ${busy ? t("Trying…") : t("Connect")}
      </button>
    </form>
    ${error && html`<${FieldError} error=${error} />`}
    ${
      tried?.provider &&
      html`<${ModelPicker} label=${tried.base_url} models=${tried.models}
        service=${{ provider: tried.provider, base_url: tried.base_url, key }} onConnected=${onConnected} />`
    }
  `;
}
