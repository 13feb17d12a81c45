// What fills the model's context window, by kind, with the free space and the effect of a compression.
/** @import { Answer, Failure, Transcript } from "../../types/page.d.ts" */
import { api, asFailure, may, sessionPath } from "../../app/api.js";
import { Button, count, Dialog, Icon, Loading, Problem, plural, tokens } from "../../app/parts.js";
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
  const words = window ? `${share}% of ${count(window)} tokens` : tokens(state.context);
  return html`<button type="button" class="button quiet fill" onClick=${onOpen}
    title=${`Context use: ${words}`}>
    ${window > 0 && html`<meter min="0" max="100" high="80" value=${share} aria-hidden="true" />`}<span>
      ${window ? `${share}%` : count(state.context)}</span><span class="unseen">
        of the context window</span></button>`;
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
  return html`<${Dialog} title="Context use" onClose=${onClose}>
    ${
      !found
        ? html`<${Loading} />`
        : "error" in found
          ? html`<${Problem} error=${found.error} />`
          : html`<div class="stack"><${ContextParts} filling=${found} />
        ${
          may("chat") &&
          html`<div class="row end"><${Button} icon="minus" disabled=${running || !found.next.summarised}
          onClick=${room}>Compress now<//></div>`
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
    <p><strong>${used.toLocaleString()}</strong> of ${window.toLocaleString()} tokens (${percent(share(used))}${
      counted ? "" : ", estimated"
    })</p>
    <div class="filling-bar" aria-hidden="true">${parts.map(
      (part, index) => html`<i key=${part.name}
      class=${`fills-${index % 8}`} style=${{ width: `${share(part.tokens)}%` }} />`,
    )}
      ${full > 0 && full < window && html`<b style=${{ left: `${share(full)}%` }} />`}</div>
    <table><thead class="unseen"><tr><th>What</th><th>Tokens</th><th>Share</th><th>Count</th></tr></thead><tbody>
      ${parts.map(
        (
          part,
          index,
        ) => html`<tr key=${part.name}><td><i class=${`swatch fills-${index % 8}`} />${part.name}
        </td><td>${part.tokens.toLocaleString()}</td><td>${percent(share(part.tokens))}</td><td class="muted">
          ${part.count > 1 ? `× ${part.count}` : ""}</td></tr>`,
      )}
      <tr><td><i class="swatch" />free</td><td>${free.toLocaleString()}</td><td>${percent(share(free))}</td><td /></tr>
    </tbody></table>
    <p class="muted"><${Icon} name="info" size=${15} /> ${compressionForecast(filling)}</p></div>`;
}

/** @param {number} share */
function percent(share) {
  return `${share.toFixed(share < 10 ? 1 : 0)}%`;
}

/**
 * When the conversation is compressed, and what that would do.
 * @param {ContextUse} use
 */
function compressionForecast({ full, used, next }) {
  const left = full - used;
  const when = `Hermes compresses the conversation at ${full.toLocaleString()} tokens, ${
    left > 0 ? `after ${left.toLocaleString()} more` : "before the next reply"
  }`;
  const steps = [];
  if (next.pointers)
    steps.push(
      `${plural(
        next.pointers,
        "old result",
      )} (about ${next.freed.toLocaleString()} tokens) would be replaced by pointers`,
    );
  if (next.summarised)
    steps.push(
      `a summary would replace ${plural(
        next.summarised,
        "message",
      )} (about ${next.replaced.toLocaleString()} tokens)`,
    );
  const what = steps.join(", then ") || "there is nothing to compress yet";
  return `${when}. ${what.charAt(0).toUpperCase()}${what.slice(1)}. The log keeps every message.`;
}
