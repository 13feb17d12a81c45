// A small local model: what it is good at, its size, and the download with speed and time left.
/** @import { DownloadState, LocalOffer } from "../../types/api.d.ts" */
import { api } from "../../app/api.js";
import { duration } from "../../app/parts/format.js";
import { tryTo } from "../../app/parts/toast.js";
import { language, t } from "../../app/translation.js";
import { html, useEffect, useState } from "../../app/ui.js";
import { FieldError } from "../inputs.js";
import { useLoaded, whenLoaded } from "../loading.js";
import { useConnecting } from "./model_picker.js";

const POLL_MS = 1000;

/** @param {{ onConnected: () => void }} props */
export function LocalWay({ onConnected }) {
  const local = useLoaded(() => api.get("/api/connections/local"), []);
  const [download, setDownload] = useState(/** @type {DownloadState | null} */ (null));
  const { busy, error, connect } = useConnecting(onConnected);
  const isRunning = download?.running ?? false;
  const look = async () => {
    const state = await tryTo(() => api.get("/api/connections/download"));
    if (!state) return;
    setDownload(state);
    if (isRunning && !state.running && !state.problem && !state.is_stopped)
      connect({ provider: "embedded", model: state.name });
  };
  useEffect(() => {
    if (!isRunning) {
      look();
      return undefined;
    }
    const timer = setInterval(look, POLL_MS);
    return () => clearInterval(timer);
  }, [isRunning]);
  /** @param {LocalOffer} one */
  const use = async (one) => {
    if (one.is_here) connect({ provider: "embedded", model: one.name });
    else
      setDownload(
        (await tryTo(() => api.post("/api/connections/download", { name: one.name }))) ?? null,
      );
  };
  return html`
    <div class="stack tight">
      <p class="muted">
        ${t("A local model needs no account and sends nothing anywhere. It makes more mistakes than a large one.")}
      </p>
      ${whenLoaded(
        local,
        ({ offers }) => html`
        <ul class="plain lined">
          ${offers.map(
            (one) => html`
            <${Offer} key=${one.name} one=${one} busy=${isRunning || Boolean(busy)} use=${() => use(one)}
              download=${download?.name === one.name ? download : null} />
          `,
          )}
        </ul>
      `,
      )}
      ${error && html`<${FieldError} error=${error} />`}
    </div>
  `;
}

/** @param {{ one: LocalOffer, busy: boolean, use: () => void, download: DownloadState | null }} props */
function Offer({ one, busy, use, download }) {
  const name = one.label;
  return html`
    <li class="stack tight">
      <div class="row offer">
        <div class="grow">
          <strong>${one.label}</strong>
          <p class="muted small">${one.detail}</p>
        </div>
        <button type="button" class="button slim" disabled=${busy} onClick=${use}
          aria-label=${one.is_here ? t("Use {name}", { name }) : t("Download {name}", { name })}>
          ${one.is_here ? t("Use") : t("Download")}
        </button>
      </div>
      ${download?.running && html`<${Progress} state=${download} />`}
      ${
        download?.is_stopped &&
        html`<p class="muted small" role="status">${t("Stopped. What came so far is kept.")}</p>`
      }
      ${download?.problem && html`<p class="field-error" role="alert">${download.problem}</p>`}
    </li>
  `;
}

/** @param {number} bytes */
function megabytes(bytes) {
  const digits = /** @type {const} */ ({ maximumFractionDigits: 1, numberingSystem: "latn" });
  return `${(bytes / 1e6).toLocaleString(language, digits)} MB`;
}

/** @param {{ state: DownloadState }} props */
function Progress({ state }) {
  const known = state.total
    ? t("{done} of {total}", { done: megabytes(state.done), total: megabytes(state.total) })
    : state.source || t("starting");
  const speed = state.bytes_per_second && `${megabytes(state.bytes_per_second)}/s`;
  const left = state.seconds_left && t("{time} left", { time: duration(state.seconds_left) });
  const facts = [known, speed, left].filter(Boolean).join(" · ");
  return html`
    <div class="stack tight" role="status">
      <progress class="progress" max=${state.total || 1} value=${state.total ? state.done : 0}
        aria-label=${t("Download")} />
      <div class="row">
        <span class="muted small grow">${facts}</span>
        <button type="button" class="button slim" onClick=${() => tryTo(() => api.delete("/api/connections/download"))}>
          ${t("Stop")}
        </button>
      </div>
    </div>
  `;
}
