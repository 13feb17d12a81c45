// The head of a timeline: which session it is, its relatives, what it has cost, and what can be done with it.
/** @import { LoadedValue } from "../loading.js" */
/** @import { StepLog } from "./steps.js" */
/** @import { SessionDetail, SessionRow } from "../../types/page.d.ts" */
import { may, sessionPath } from "../../app/api.js";
import { Button, Icon, IconLink, Tag, Time } from "../../app/parts/basics.js";
import { money, tokens } from "../../app/parts/format.js";
import { linkTo, navigate } from "../../app/router.js";
import { t } from "../../app/translation.js";
import { html } from "../../app/ui.js";
import { remove, rename, titleOf } from "./actions.js";

/**
 * @typedef {object} HeadProps
 * @property {string} id
 * @property {LoadedValue<SessionDetail>} about
 * @property {StepLog} log
 * @property {SessionRow[]} children
 */

/**
 * `about` is what was loaded of the session; before that, only its `id` is known.
 * @param {HeadProps} props
 */
export function Head({ id, about, log, children }) {
  const session = about.value?.session ?? { id, title: "" };
  const calls = { count: log.unpriced };
  const unpriced = t("cost of {count} call unknown", "cost of {count} calls unknown", calls);
  return html`
    <header class="timeline-head">
      <${IconLink} icon="left" label=${t("All sessions")} href="#/sessions" />
      <div class="timeline-title">
        <h1>${titleOf(session)}</h1>
        <${SessionFacts} session=${session} detail=${about.value} />
        <${RelatedSessions} session=${session} children=${children} />
      </div>
      <div class="timeline-sum">
        <strong>${money(log.cost)}</strong>
        <span>${tokens(log.tokens)} · ${t("{count} turn", "{count} turns", { count: log.turns.length })}</span>
        ${log.unpriced > 0 && html`<span>${unpriced}</span>`}
      </div>
      <${Actions} session=${session} again=${about.again} />
    </header>
  `;
}

/** @param {{ session: Partial<SessionRow>, detail: SessionDetail | undefined }} props */
function SessionFacts({ session, detail }) {
  return html`
    <p class="session-meta">
      <span>${session.surface}</span>
      ${session.model && html`<span>${session.model}</span>`}
      ${session.cwd && html`<span class="session-cwd" title=${session.cwd}>${session.cwd}</span>`}
      ${session.created && html`<${Time} at=${session.created} />`}
      ${detail?.running && html`<${Tag} kind="accent">${t("running")}<//>`}
      ${detail && detail.waiting.length > 0 && html`<${Tag} kind="warn">${t("waiting for you")}<//>`}
    </p>
  `;
}

/** @param {{ session: Partial<SessionRow>, children: SessionRow[] }} props */
function RelatedSessions({ session, children }) {
  if (!children.length && session.kind !== "child" && session.kind !== "branch") return null;
  const relation =
    session.kind === "branch" ? t("Branched from this session") : t("Parent session");
  return html`
    <nav class="family" aria-label=${t("Related sessions")}>
      ${
        session.parent &&
        html`
        <a href=${linkTo("sessions", session.parent)}><${Icon} name="up" size=${14} />${relation}</a>
      `
      }
      ${children.map(
        (child) => html`
        <a key=${child.id} href=${linkTo("sessions", child.id)}>
          <${Icon} name="branch" size=${14} />${titleOf(child)}
        </a>
      `,
      )}
    </nav>
  `;
}

/** @param {{ session: SessionRow, again: () => void }} props */
function Actions({ session, again }) {
  const onRename = async () => (await rename(session)) && again();
  const onDelete = async () => (await remove(session)) && navigate("/sessions");
  return html`
    <div class="session-actions always">
      <a class="button" href=${linkTo("chat", session.id)}><${Icon} name="chat" />${t("Open in chat")}</a>
      ${may("chat") && html`<${Button} kind="quiet" icon="edit" label=${t("Rename")} onClick=${onRename} />`}
      <${IconLink} icon="download" label=${t("Export")} href=${sessionPath(session.id, "export")} download />
      ${may("admin") && html`<${Button} kind="quiet" icon="trash" label=${t("Delete")} onClick=${onDelete} />`}
    </div>
  `;
}
