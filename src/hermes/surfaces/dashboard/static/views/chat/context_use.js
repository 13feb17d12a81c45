// What fills the model's context window, by kind, with the free space and the effect of a compression.
/** @import { Answer, Failure, Transcript } from "../../types/page.d.ts" */

import { api, asFailure, may, sessionPath } from "../../app/api.js";
import { decimal, inFull } from "../../app/parts/format.js";
import { Button, count, Dialog, Icon, Loading, Problem, tokens } from "../../app/parts.js";
import { t, withElements } from "../../app/translation.js";
import { html, useEffect, useState } from "../../app/ui.js";
import { compress } from "./commands.js";

/** @typedef {Answer<"GET", "/api/sessions/x/context">} ContextUse */

/**
 * Shows how full the window is; opens the details.
 * @param {{ state: Transcript, window: number, onOpen: () => void }} props
 */
export function Fill({ state, window, onOpen }) {
  if (!state.context) return null;
  const share = window ? Math.min(100, Math.round((100 * state.context) / window)) : 0;
  const words = window
    ? t("{share}% of {window} tokens", { share, window: count(window) })
    : tokens(state.context);
  const brief = window ? `${share}%` : count(state.context);
  return html`<button type="button" class="button quiet fill" onClick=${onOpen}
    aria-label=${t("{share} of the context window", { share: brief })}
    title=${t("Context use: {words}", { words })}>
    ${window > 0 && html`<meter min="0" max="100" high="80" value=${share} aria-hidden="true" />`}<span>
      ${brief}</span></button>`;
}

/** @param {{ session: string, running: boolean, onClose: () => void }} props */
export function ContextUseDialog({ session, running, onClose }) {
  const [found, setFound] = useState(/** @type {ContextUse | { error: Failure } | null} */ (null));
  useEffect(() => {
    api
      .get(sessionPath(session, "context"))
      .then(setFound, (error) => setFound({ error: asFailure(error) }));
  }, [session]);
  const room = () => {
    onClose();
    compress(session);
  };
  return html`<${Dialog} title=${t("Context use")} onClose=${onClose}>
    ${
      !found
        ? html`<${Loading} />`
        : "error" in found
          ? html`<${Problem} error=${found.error} />`
          : html`<div class="stack"><${ContextParts} filling=${found} />
        ${
          may("chat") &&
          html`<div class="row end"><${Button} icon="minus" disabled=${running || !found.next.summarised}
          onClick=${room}>${t("Compress now")}<//></div>`
        }</div>`
    }<//>`;
}

/** @param {{ filling: ContextUse }} props */
function ContextParts({ filling }) {
  const { parts, used, window, full, counted } = filling;
  /** @param {number} tokens */
  const share = (tokens) => (window ? (100 * tokens) / window : 0);
  const free = Math.max(0, window - used);
  return html`<div class="stack filling">
    <p>${withElements(
      counted
        ? t("{used} of {window} tokens ({share})")
        : t("{used} of {window} tokens ({share}, estimated)"),
      {
        used: html`<strong>${inFull(used)}</strong>`,
        window: inFull(window),
        share: percent(share(used)),
      },
    )}</p>
    <div class="filling-bar" aria-hidden="true">${parts.map(
      (part, index) => html`<i key=${part.name}
      class=${`fills-${index % 8}`} style=${{ width: `${share(part.tokens)}%` }} />`,
    )}
      ${full > 0 && full < window && html`<b style=${{ left: `${share(full)}%` }} />`}</div>
    <table><thead class="unseen"><tr><th>${t("What")}</th><th>${t("Tokens")}</th><th>${t("Share")}</th>
      <th>${t("Count")}</th></tr></thead><tbody>
      ${parts.map(
        (
          part,
          index,
        ) => html`<tr key=${part.name}><td><i class=${`swatch fills-${index % 8}`} />${part.name}
        </td><td>${inFull(part.tokens)}</td><td>${percent(share(part.tokens))}</td><td class="muted">
          ${part.count > 1 ? `× ${part.count}` : ""}</td></tr>`,
      )}
      <tr><td><i class="swatch" />${t("free")}</td><td>${inFull(free)}</td>
        <td>${percent(share(free))}</td><td /></tr>
    </tbody></table>
    <p class="muted"><${Icon} name="info" size=${15} /> ${compressionForecast(filling)}</p></div>`;
}

/** @param {number} share */
function percent(share) {
  return `${decimal(share, share < 10 ? 1 : 0)}%`;
}

/**
 * When the conversation is compressed, and what that would do.
 * @param {ContextUse} use
 */
function compressionForecast({ full, used, next }) {
  const left = full - used;
  const values = { full: inFull(full), left: inFull(left) };
  const parts = [
    left > 0
      ? t("Hermes compresses the conversation at {full} tokens, after {left} more.", values)
      : t("Hermes compresses the conversation at {full} tokens, before the next reply.", values),
  ];
  if (next.pointers)
    parts.push(
      t(
        "{count} old result (about {tokens} tokens) would be replaced by a pointer.",
        "{count} old results (about {tokens} tokens) would be replaced by pointers.",
        { count: next.pointers, tokens: inFull(next.freed) },
      ),
    );
  if (next.summarised)
    parts.push(
      t(
        "A summary would replace {count} message (about {tokens} tokens).",
        "A summary would replace {count} messages (about {tokens} tokens).",
        { count: next.summarised, tokens: inFull(next.replaced) },
      ),
    );
  if (!next.pointers && !next.summarised) parts.push(t("There is nothing to compress yet."));
  return [...parts, t("The log keeps every message.")].join(" ");
}
