// Signing in with an account: a link and perhaps a code to be typed there, and the accounts that there are.
/** @import { Failure, FieldEvent } from "../../types/page.d.ts" */
/** @import { AccountState, PendingSignIn, SignInChoice } from "../../types/api.d.ts" */
import { api, asFailure } from "../../app/api.js";
import { Tag } from "../../app/parts/basics.js";
import { toast } from "../../app/parts/toast.js";
import { t, withElements } from "../../app/translation.js";
import { html, useEffect, useState } from "../../app/ui.js";
import { FieldError } from "../inputs.js";
import { useLoaded, whenLoaded } from "../loading.js";
import { useTrying } from "./connect_key.js";
import { ModelPicker } from "./model_picker.js";

const POLL_MS = 2000;

/** @type {Record<string, string>} */
const STATES = { ok: t("signed in"), shared: t("Codex's login"), expired: t("sign in again") };

/** @param {{ onConnected: () => void }} props */
export function SignInWay({ onConnected }) {
  const loaded = useLoaded(() => api.post("/api/commands/auth.list", {}), []);
  const [error, setError] = useState(/** @type {Failure | null} */ (null));
  const { busy, tried, error: failed, attempt } = useTrying();
  const pending = loaded.value?.pending ?? [];
  const isWaiting = pending.some((one) => one.state === "waiting");
  useEffect(() => {
    if (!isWaiting) return undefined;
    const timer = setInterval(loaded.again, POLL_MS);
    return () => clearInterval(timer);
  }, [isWaiting]);
  /** @param {() => Promise<unknown>} work */
  const run = async (work) => {
    setError(null);
    try {
      await work();
    } catch (reason) {
      setError(asFailure(reason));
    }
    loaded.again();
  };
  /** @param {string} service @param {Record<string, string>} options */
  const begin = (service, options) =>
    run(async () => {
      const done = await api.post("/api/commands/auth.add", { service, ...options });
      if (!done.pending) toast(done.sentence, "good");
    });
  /** @param {string} address */
  const paste = (address) => run(() => api.post("/api/commands/auth.paste", { address }));
  /** @param {string} account */
  const remove = (account) =>
    run(() => api.post("/api/commands/auth.remove", { account, yes: true }));
  return html`
    <div class="stack tight" data-sign-in>
      ${whenLoaded(
        loaded,
        ({ accounts, services }) => html`
        ${accounts.length > 0 && html`<${Accounts} list=${accounts} use=${attempt} remove=${remove} />`}
        <${Services} list=${services} begin=${begin} />`,
      )}
      ${pending.map((one) => html`<${Pending} key=${one.service} one=${one} paste=${paste} />`)}
      ${error && html`<${FieldError} error=${error} />`}
      ${busy && html`<p class="muted">${t("Trying…")}</p>`}
      ${failed && html`<${FieldError} error=${failed} />`}
      ${
        tried?.provider &&
        html`<${ModelPicker} label=${tried.label} models=${tried.models}
          service=${{ provider: tried.provider }} onConnected=${onConnected} />`
      }
    </div>
  `;
}

/**
 * @param {object} props
 * @param {AccountState[]} props.list
 * @param {(body: { provider: string }) => void} props.use
 * @param {(account: string) => void} props.remove
 */
function Accounts({ list, use, remove }) {
  return html`
    <ul class="plain lined" aria-label=${t("Accounts")}>
      ${list.map(
        (one) => html`
        <li key=${one.id} class="row wrap" data-account=${one.id}>
          <span class="grow">
            <strong>${one.id}</strong> ${one.label}${" "}
            <${Tag} kind=${one.problem ? "bad" : "good"}>${STATES[one.state]}<//>
            ${one.problem && html`<span class="field-error">${one.problem}</span>`}
          </span>
          ${
            !one.problem &&
            html`<button type="button" class="button"
              onClick=${() => use({ provider: one.provider })}>${t("Use")}</button>`
          }
          <button type="button" class="button" onClick=${() => remove(one.id)}>${t("Sign out")}</button>
        </li>
      `,
      )}
    </ul>
  `;
}

/**
 * @param {object} props
 * @param {SignInChoice[]} props.list
 * @param {(service: string, options: Record<string, string>) => void} props.begin
 */
function Services({ list, begin }) {
  const [open, setOpen] = useState("");
  const [typed, setTyped] = useState("");
  const chosen = list.find((one) => one.name === open);
  /** @param {SignInChoice} one */
  const pick = (one) => (one.needs ? setOpen(one.name) : begin(one.name, {}));
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    if (chosen) begin(chosen.name, { [chosen.needs]: typed.trim() });
    setOpen("");
  };
  return html`
    <p class="muted small">${t("Sign in with:")}</p>
    <div class="chips" role="group" aria-label=${t("Sign in with")}>
      ${list.map(
        (one) => html`<button key=${one.name} type="button" class="chip"
          onClick=${() => pick(one)}>
          ${one.codex_login ? t("{service} (Codex is signed in)", { service: one.label }) : one.label}</button>`,
      )}
    </div>
    ${
      chosen &&
      html`
      <form class="field-row" onSubmit=${submit}>
        <label class="field">
          <span>${chosen.needs === "endpoint" ? t("Address of your resource") : t("Region")}</span>
          <input class="input mono" value=${typed} spellcheck=${false}
            placeholder=${chosen.needs === "endpoint" ? "https://NAME.openai.azure.com" : "us-east-1"}
            onInput=${(/** @type {FieldEvent} */ event) => setTyped(event.target.value)} />
        </label>
        <button type="submit" class="button primary" disabled=${!typed.trim()}>${t("Sign in")}</button>
      </form>
    `
    }
  `;
}

/** @param {{ one: PendingSignIn, paste: (address: string) => void }} props */
function Pending({ one, paste }) {
  const [address, setAddress] = useState("");
  if (one.state !== "waiting") {
    return html`<p class=${one.state === "failed" ? "field-error" : ""} role="status">${one.sentence}</p>`;
  }
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    paste(address);
  };
  const link = html`<a href=${one.link} target="_blank" rel="noreferrer noopener">
    ${t("Open the sign-in page of {service}", { service: one.label })}</a>`;
  return html`
    <div class="stack tight" role="status" data-pending=${one.service}>
      <p>
        ${
          one.code
            ? withElements(t("{link} and enter the code {code}"), {
                link,
                code: html`<strong class="mono">${one.code}</strong>`,
              })
            : link
        }
      </p>
      <p class="muted small">${t("Only do this if you started the sign-in yourself.")}</p>
      ${
        one.can_paste &&
        html`
        <form class="field-row" onSubmit=${submit}>
          <label class="field">
            <span>${t("If its last page can't be shown, paste that page's address")}</span>
            <input class="input mono" value=${address} autocomplete="off" spellcheck=${false}
              onInput=${(/** @type {FieldEvent} */ event) => setAddress(event.target.value)} />
          </label>
          <button type="submit" class="button" disabled=${!address.trim()}>${t("Continue")}</button>
        </form>
      `
      }
    </div>
  `;
}
