// Chat apps: connecting a platform with its token, which is tried first, and who may talk to Hermes there.
/** @import { Failure, FieldEvent } from "../../types/page.d.ts" */
/** @import { PlatformFieldRow, PlatformRow } from "../../types/api.d.ts" */
import { api, asFailure, may } from "../../app/api.js";
import { Button, Tag, Time } from "../../app/parts/basics.js";
import { confirm } from "../../app/parts/dialog.js";
import { toast, tryTo } from "../../app/parts/toast.js";
import { t, withElements } from "../../app/translation.js";
import { html, useState } from "../../app/ui.js";
import { FieldError, Options } from "../inputs.js";
import { useLoaded, whenLoaded } from "../loading.js";

/**
 * @typedef {object} PeopleAnswer
 * @property {{ platform: string, id: string, name: string, role: string }[]} people
 * @property {{ who: string, role: string }[]} named
 * @property {{ platform: string, id: string, name: string, made: number }[]} waiting
 */

/** @type {Record<string, string>} */
const ROLES = { user: t("user"), owner: t("owner") };

export function Platforms() {
  const platforms = useLoaded(() => api.get("/api/commands/gateway.platforms"), []);
  return html`
    <div class="stack">
      <p class="muted">
        ${t("Talk to Hermes from a chat app.")}${" "}
        ${withElements(
          t(
            "{run} serves the apps that are connected here; {reload} makes a running gateway use what you change.",
          ),
          {
            run: html`<code>hermes gateway run</code>`,
            reload: html`<code>hermes gateway reload</code>`,
          },
        )}
      </p>
      ${may("admin") && html`<${People} />`}
      ${whenLoaded(
        platforms,
        ({ platforms: list }) => html`
          <ul class="plain stack platforms">
            ${list.map((one) => html`<${Platform} key=${one.name} one=${one} again=${platforms.again} />`)}
          </ul>
        `,
      )}
    </div>
  `;
}

/** @param {{ one: PlatformRow, again: () => Promise<void> }} props */
function Platform({ one, again }) {
  const [open, setOpen] = useState(false);
  const disconnect = async () => {
    const text = t("This removes its tokens. Paired people stay paired.");
    const title = t("Disconnect {name}?", { name: one.label });
    if (!(await confirm({ title, text, action: t("Disconnect"), danger: true }))) return;
    await tryTo(() => api.post("/api/commands/gateway.disconnect", { name: one.name }));
    await again();
  };
  const saved = async () => {
    setOpen(false);
    await again();
  };
  return html`
    <li class="card stack tight" data-platform=${one.name}>
      <div class="row wrap">
        <h2 class="grow">${one.label}</h2>
        ${one.is_connected && html`<${Tag} kind="good">${t("connected")}<//>`}
        ${
          may("admin") &&
          html`
          <${Button} onClick=${() => setOpen(!open)} aria-expanded=${open ? "true" : "false"}>
            ${one.is_connected ? t("Change") : t("Connect")}<span class="unseen"> ${one.label}</span>
          <//>
          ${
            one.is_connected &&
            html`<${Button} kind="quiet" onClick=${disconnect}>
              ${t("Disconnect")}<span class="unseen"> ${one.label}</span>
            <//>`
          }
        `
        }
      </div>
      ${open && html`<${ConnectForm} one=${one} onSaved=${saved} />`}
    </li>
  `;
}

/** @param {{ one: PlatformRow, onSaved: () => Promise<void> }} props */
function ConnectForm({ one, onSaved }) {
  const [values, setValues] = useState(/** @type {Record<string, string>} */ ({}));
  const [state, setState] = useState({ busy: false, error: /** @type {Failure | null} */ (null) });
  /** @param {Event} event */
  const submit = async (event) => {
    event.preventDefault();
    setState({ busy: true, error: null });
    const given = one.fields
      .filter((field) => field.is_optional || values[field.name]?.trim())
      .map((field) => `${field.name}=${values[field.name] ?? ""}`);
    try {
      const said = await api.post("/api/commands/gateway.connect", {
        name: one.name,
        values: given,
      });
      toast(said.lines.join(" "), "good");
      await onSaved();
    } catch (error) {
      setState({ busy: false, error: asFailure(error) });
    }
  };
  return html`
    <form class="stack tight" onSubmit=${submit}>
      <p class="muted">${one.how}</p>
      ${one.fields.map(
        (field) => html`
        <${PlatformInput}
          key=${field.name}
          field=${field}
          value=${values[field.name] ?? ""}
          onChange=${(/** @type {string} */ value) => setValues({ ...values, [field.name]: value })}
        />
      `,
      )}
      <div class="row wrap">
        <button type="submit" class="button primary" disabled=${state.busy}>
          ${state.busy ? t("Testing…") : t("Test and save")}
        </button>
      </div>
      ${state.error && html`<${FieldError} error=${state.error} />`}
    </form>
  `;
}

/**
 * @param {{ field: PlatformFieldRow, value: string, onChange: (value: string) => void }} props
 */
function PlatformInput({ field, value, onChange }) {
  // What the person makes up must be copied to the other side, so it is shown.
  const isHidden = field.is_secret && !field.is_chosen;
  return html`
    <label class="stack tight">
      <span>${field.label}${field.is_optional && html` <span class="muted small">${t("optional")}</span>`}</span>
      <span class="row">
        <input
          class="input grow"
          type=${isHidden ? "password" : "text"}
          autocomplete="off"
          autocapitalize="off"
          spellcheck="false"
          required=${!field.is_optional}
          placeholder=${field.help}
          value=${value}
          onInput=${(/** @type {FieldEvent} */ event) => onChange(event.target.value)}
        />
        ${field.is_chosen && html`<${Button} onClick=${() => onChange(madeUp())}>${t("Generate")}<//>`}
      </span>
    </label>
  `;
}

/** A secret of 32 characters. */
function madeUp() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

function People() {
  const loaded = useLoaded(
    async () => /** @type {PeopleAnswer} */ (await api.post("/api/commands/gateway.pair.list", {})),
    [],
  );
  /** @param {{ platform: string, id: string, name: string }} one */
  const revoke = async (one) => {
    const text = t("{name} can no longer talk to Hermes on {platform}.", {
      name: one.name || one.id,
      platform: one.platform,
    });
    if (
      !(await confirm({ title: t("Unpair this person?"), text, action: t("Unpair"), danger: true }))
    )
      return;
    const who = `${one.platform}:${one.id}`;
    await tryTo(() => api.post("/api/commands/gateway.pair.revoke", { who }));
    loaded.again();
  };
  return html`
    <section class="card stack tight" aria-labelledby="people-title">
      <h2 id="people-title">${t("People")}</h2>
      <p class="muted">
        ${t("Anyone who writes to your bot for the first time gets a code. Enter it here to let them in.")}${" "}
        ${t("The first person you let in becomes the owner.")}
      </p>
      <${Approve} again=${loaded.again} />
      ${whenLoaded(
        loaded,
        (value) => html`
          ${value.waiting.map(
            (one) => html`
            <p key=${`${one.platform}:${one.id}`} class="small">
              <${Tag} kind="warn">${t("waiting")}<//>${" "}
              ${asked(one)}
            </p>
          `,
          )}
          ${
            value.people.length + value.named.length === 0 &&
            html`<p class="muted">${t("Nobody has access yet.")}</p>`
          }
          <ul class="plain lined">
            ${value.people.map(
              (one) => html`
              <li key=${`${one.platform}:${one.id}`} class="row wrap" data-person=${`${one.platform}:${one.id}`}>
                <span class="grow"><strong>${one.name || one.id}</strong>${" "}
                  <span class="muted">${one.platform}:${one.id}</span></span>
                <${Tag}>${ROLES[one.role] ?? one.role}<//>
                <${Button} kind="quiet" onClick=${() => revoke(one)}>${t("Unpair")}<span
                  class="unseen"> ${one.name || one.id}</span><//>
              </li>
            `,
            )}
            ${value.named.map(
              (one) => html`
              <li key=${one.who} class="row wrap">
                <span class="grow"><code>${one.who}</code>${" "}
                  <span class="muted small">${t("named in the settings")}</span></span>
                <${Tag}>${ROLES[one.role] ?? one.role}<//>
              </li>
            `,
            )}
          </ul>
        `,
      )}
    </section>
  `;
}

/** @param {PeopleAnswer["waiting"][number]} one */
function asked({ name, id, platform, made }) {
  const time = html`<${Time} at=${made} />`;
  return withElements(t("{name} on {platform}, {time}"), { name: name || id, platform, time });
}

/** @param {{ again: () => Promise<void> }} props */
function Approve({ again }) {
  const [code, setCode] = useState("");
  const [role, setRole] = useState("");
  const [error, setError] = useState(/** @type {Failure | null} */ (null));
  /** @param {Event} event */
  const submit = async (event) => {
    event.preventDefault();
    setError(null);
    try {
      const body = {
        code: code.trim(),
        ...(role && { role: /** @type {"owner" | "user"} */ (role) }),
      };
      const said = await api.post("/api/commands/gateway.pair.approve", body);
      toast(said.lines.join(" "), "good");
      setCode("");
      await again();
    } catch (reason) {
      setError(asFailure(reason));
    }
  };
  return html`
    <form class="pair-form" onSubmit=${submit}>
      <input class="input" aria-label=${t("Pairing code")} placeholder=${t("Pairing code")}
        value=${code} autocomplete="off"
        onInput=${(/** @type {FieldEvent} */ event) => setCode(event.target.value)} />
      <select class="input" aria-label=${t("Role")}
        onChange=${(/** @type {FieldEvent} */ event) => setRole(event.target.value)}>
        <${Options} choices=${[["", t("default role")], ...Object.entries(ROLES)]} value=${role} />
      </select>
      <button type="submit" class="button primary" disabled=${!code.trim()}>${t("Let in")}</button>
    </form>
    ${error && html`<${FieldError} error=${error} />`}
  `;
}
