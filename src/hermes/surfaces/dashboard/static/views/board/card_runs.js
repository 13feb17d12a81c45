// The runs of a card: how each ended, what it cost, and its session.
/** @import { CardRunReport } from "../../types/page.d.ts" */

import { Tag, Time } from "../../app/parts/basics.js";
import { duration, money, tokens } from "../../app/parts/format.js";
import { linkTo } from "../../app/router.js";
import { t, withElements } from "../../app/translation.js";
import { html } from "../../app/ui.js";
import { noted, OUTCOME_KIND, OUTCOMES } from "./labels.js";

/** @param {{ runs: CardRunReport[] }} props */
export function CardRuns({ runs }) {
  return html`
    <section aria-label=${t("Runs")}>
      <h3 class="section-title">${t("Runs")}</h3>
      ${!runs.length && html`<p class="muted small">${t("It has not run yet.")}</p>`}
      <ul class="plain lined">${runs.map((run) => html`<${Run} key=${run.id} run=${run} />`)}</ul>
    </section>
  `;
}

/** @param {{ run: CardRunReport }} props */
function Run({ run }) {
  const seconds = (run.ended || Date.now() / 1000) - run.started;
  const words = run.summary || run.reason || noted(run.note);
  return html`
    <li class="board-run">
      <div class="row wrap">
        <strong>${t("Run {number}", { number: run.number })}</strong>
        <${Tag} kind=${OUTCOME_KIND[run.outcome] ?? ""}>${OUTCOMES[run.outcome] ?? run.outcome}<//>
        <span class="muted small">
          ${withElements(
            run.phase === "review" ? t("{agent}, review, {time}") : "{agent}, {time}",
            {
              agent: run.agent,
              time: html`<${Time} at=${run.started} />`,
            },
          )}
        </span>
        <span class="spring" />
        ${
          run.session &&
          html`<a class="small" href=${linkTo("sessions", run.session)}>${t("Timeline")}</a>
          <a class="small" href=${linkTo("chat", run.session)}>${t("Chat")}</a>`
        }
      </div>
      <p class="muted small">${duration(seconds)} · ${money(run.cost_usd)} · ${tokens(run.tokens)}</p>
      ${words && html`<p class="small pre">${words}</p>`}
    </li>
  `;
}
