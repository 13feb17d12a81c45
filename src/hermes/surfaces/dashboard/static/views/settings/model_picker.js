// Picks one of the models that a service lists: with a search, and tried before it is saved.
/** @import { Failure, RequestBody } from "../../types/page.d.ts" */
/** @import { OfferedModel } from "../../types/api.d.ts" */
import { api, asFailure } from "../../app/api.js";
import { Tag } from "../../app/parts/basics.js";
import { count, size } from "../../app/parts/format.js";
import { toast } from "../../app/parts/toast.js";
import { t } from "../../app/translation.js";
import { html, useState } from "../../app/ui.js";
import { FieldError, SearchBox } from "../inputs.js";

const MAX_SHOWN = 60;
const MANY = 8; // from here on, a list has a search

/** @typedef {RequestBody<"POST", "/api/connections">} Wanted */
/** @typedef {Partial<OfferedModel> & { name: string, size?: number }} Pickable */

/**
 * Saves what should answer, once it has answered a test. `connected` is called afterwards.
 * @param {() => void} connected
 */
export function useConnecting(connected) {
  const [state, setState] = useState({
    busy: "",
    failed: /** @type {Wanted | null} */ (null),
    error: /** @type {Failure | null} */ (null),
  });
  /** @param {Wanted} wanted */
  const connect = async (wanted) => {
    setState({ busy: wanted.model || wanted.provider, failed: null, error: null });
    try {
      const done = await api.post("/api/connections", wanted);
      setState({ busy: "", failed: null, error: null });
      toast([done.sentence, ...done.notes].join(" "), "good");
      connected();
    } catch (error) {
      setState({ busy: "", failed: wanted, error: asFailure(error) });
    }
  };
  return { ...state, connect };
}

/**
 * @param {object} props
 * @param {string} props.label
 * @param {Pickable[]} props.models
 * @param {Omit<Wanted, "model">} props.service
 * @param {() => void} props.onConnected
 */
export function ModelPicker({ label, models, service, onConnected }) {
  const [words, setWords] = useState("");
  const { busy, failed, error, connect } = useConnecting(onConnected);
  const wanted = words.toLowerCase().split(/\s+/);
  const found = models.filter((one) =>
    wanted.every((word) => `${one.name} ${one.abilities ?? ""}`.toLowerCase().includes(word)),
  );
  const typed = words.trim();
  const more = found.length - MAX_SHOWN;
  const hidden = t("{count} more: search for it.", "{count} more: search for them.", {
    count: more,
  });
  return html`
    <div class="stack tight picker" aria-busy=${String(Boolean(busy))}>
      <h3>${t("Which model from {service}?", { service: label })}</h3>
      ${
        (models.length >= MANY || !models.length) &&
        html`<${SearchBox} label=${t("Search the models")} value=${words}
        onInput=${setWords} />`
      }
      <ul class="plain lined offers">
        ${found.slice(0, MAX_SHOWN).map(
          (one) =>
            html`<${Model} key=${one.name} one=${one} busy=${busy}
                pick=${() => connect({ ...service, model: one.name })} />`,
        )}
        ${
          !found.length &&
          typed &&
          html`<${Model} one=${{ name: typed }} busy=${busy} pick=${() => connect({ ...service, model: typed })} />`
        }
      </ul>
      ${more > 0 && html`<p class="muted small">${hidden}</p>`}
      ${error && html`<${FieldError} error=${error} />`}
      ${
        failed &&
        html`<button type="button" class="button" onClick=${() => connect({ ...failed, force: true })}>
          ${t("Use {model} anyway", { model: failed.model ?? "" })}
        </button>`
      }
    </div>
  `;
}

/** @param {{ one: Pickable, busy: string, pick: () => void }} props */
function Model({ one, busy, pick }) {
  return html`
    <li class="row offer">
      <div class="grow">
        <code>${one.name}</code> ${one.is_usual && html`<${Tag} kind="accent">${t("usual")}<//>`}
        <p class="muted small">${facts(one)}</p>
      </div>
      <button
        type="button"
        class="button slim"
        aria-label=${t("Use {name}", { name: one.name })}
        disabled=${Boolean(busy)}
        onClick=${pick}
      >
        ${busy === one.name ? t("Trying…") : t("Use")}
      </button>
    </li>
  `;
}

/** @param {Pickable} one */
function facts(one) {
  const known = [];
  if (one.size) known.push(size(one.size));
  if (one.window) known.push(t("{tokens} context", { tokens: count(one.window) }));
  if (one.output_price) {
    const prices = { input: `$${one.input_price}`, output: `$${one.output_price}` };
    known.push(t("{input} in, {output} out per million tokens", prices));
  }
  return [...known, ...(one.abilities ?? [])].join(" · ");
}
