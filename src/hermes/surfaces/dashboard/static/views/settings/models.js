// Models: the one that answers, connecting another, and those to choose from.
/** @import { Answer } from "../../types/page.d.ts" */
import { api, may } from "../../app/api.js";
import { Words } from "../../app/parts/basics.js";
import { t, withElements } from "../../app/translation.js";
import { html } from "../../app/ui.js";
import { useLoaded, whenLoaded } from "../loading.js";
import { Connect } from "./connect.js";

/** @type {Record<string, string>} */
const SOURCES = {
  fallback: t("used when the first one fails"),
  custom_providers: t("from your own providers"),
  used: t("used before"),
};

export function Models() {
  const models = useLoaded(async () => {
    const { current, label, choices } = await api.get("/api/models");
    const { model_problem: problem } = await api.get("/api/status");
    return { current, label, choices, problem };
  }, []);
  return html`
    <div class="stack">
      ${whenLoaded(
        models,
        ({ current, label, problem }) => html`
        <${Current} current=${current} label=${label} problem=${problem} />`,
      )}
      ${may("admin") && html`<${Connect} onConnected=${models.again} />`}
      ${whenLoaded(
        models,
        ({ choices }) => html`
        <section class="card stack tight">
          <h2>${t("Other models")}</h2>
          <${Choices} list=${choices} />
        </section>
      `,
      )}
    </div>
  `;
}

/** @param {{ current: string, label: string, problem: string }} props */
function Current({ current, label, problem }) {
  return html`
    <section class="card">
      <h2>${t("Current model")}</h2>
      ${
        current
          ? html`
          <p class="big">${label}</p>
          <p class="muted small">
            ${withElements(t("{model} answers in new turns."), {
              model: html`<code data-current>${current}</code>`,
            })}${" "}
            ${t("To change it for one session, pick a model in the chat.")}
          </p>
        `
          : html`
          <p><${Words} text=${problem} /> ${may("admin") && t("Connect one below.")}</p>
        `
      }
    </section>
  `;
}

/** @param {{ list: Answer<"GET", "/api/models">["choices"] }} props */
function Choices({ list }) {
  if (!list.length) {
    return html`
      <p class="muted">
        ${t("None yet.")}${" "}
        ${withElements(
          t("The models of {fallback} and {custom} are listed here, and those used before."),
          {
            fallback: html`<code>model.fallback</code>`,
            custom: html`<code>custom_providers</code>`,
          },
        )}
      </p>
    `;
  }
  return html`
    <ul class="plain lined">
      ${list.map(
        (one) => html`
        <li key=${one.name} class="row">
          <code class="grow">${one.name}</code>
          <span class="muted small">${SOURCES[one.source] ?? one.source}</span>
        </li>
      `,
      )}
    </ul>
  `;
}
