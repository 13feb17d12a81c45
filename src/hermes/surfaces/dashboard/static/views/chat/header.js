// The header of a conversation: title, model, context use, cost and actions.
/** @import { ChatActions, Mode, SessionDetail, Transcript } from "../../types/page.d.ts" */
import { may } from "../../app/api.js";
import { Button, Dialog, Icon, money } from "../../app/parts.js";
import { pathTo } from "../../app/router.js";
import { t } from "../../app/translation.js";
import { html, useState } from "../../app/ui.js";
import { ApprovalMode } from "./approvals.js";
import {
  branch,
  compress,
  exportSession,
  redo,
  rename,
  retry,
  terminalOf,
  undo,
} from "./commands.js";
import { Fill } from "./context_use.js";
import { beginningOf } from "./transcript.js";

/**
 * The title of a session; until it has one, how it began, if that is known.
 * @param {Transcript} state
 */
export function titleOf(state) {
  return state.title || beginningOf(state) || t("Untitled");
}

/**
 * @typedef {object} HeaderProps
 * @property {Transcript} state
 * @property {SessionDetail | null} detail
 * @property {string | null} model
 * @property {Mode} mode
 * @property {() => void} onModel
 * @property {() => void} onDrawer
 * @property {ChatActions} chat
 */

/** @param {HeaderProps} props */
export function Header({ state, detail, model, mode, onModel, onDrawer, chat }) {
  const [menu, setMenu] = useState(false);
  const title = titleOf(state);
  const edit = () => rename(state.session, "", state.title);
  /** @param {() => unknown} run */
  const act = (run) => () => {
    setMenu(false);
    run();
  };
  const rows = [
    {
      icon: "undo",
      label: t("Undo the last turn"),
      run: () => undo(state.session),
      off: Boolean(state.turn),
    },
    { icon: "redo", label: t("Redo"), run: () => redo(state.session), off: !state.redoable },
    {
      icon: "retry",
      label: t("Retry the last turn"),
      run: () => retry(state.session),
      off: Boolean(state.turn),
    },
    { icon: "branch", label: t("Continue in a branch"), run: () => branch(state.session) },
    { icon: "file", label: t("Changes of the last turn"), run: () => chat.diff?.(""), open: true },
    { icon: "folder", label: t("Session files"), run: () => chat.files?.(), open: true },
    { icon: "info", label: t("Context use"), run: () => chat.context?.(), open: true },
    { icon: "lock", label: t("Approval mode"), run: () => chat.approvals("") },
    {
      icon: "minus",
      label: t("Compress now"),
      run: () => compress(state.session),
      off: Boolean(state.turn),
    },
    { icon: "up", label: t("Go to the beginning"), run: () => chat.beginning?.(), open: true },
    { icon: "download", label: t("Export"), run: () => exportSession(state.session), open: true },
    { icon: "edit", label: t("Rename"), run: edit },
  ].filter((row) => row.open || may("chat"));
  return html`<header class="chat-head">
    <${Button} kind="quiet" class="drawer-open" icon="menu" label=${t("Sessions")} onClick=${onDrawer} />
    <h1 class="chat-title">${
      may("chat")
        ? html`<button type="button" onClick=${edit} title=${t("Rename")}>
      <bdi>${title}</bdi></button>`
        : html`<bdi>${title}</bdi>`
    }</h1>
    <${Fill} state=${state} window=${detail?.window ?? 0} onOpen=${chat.context} />
    <span class="cost" title=${state.unpriced ? t("Some calls have no known price") : t("Cost of this session")}>
      ${state.cost > 0 ? money(state.cost) : ""}</span>
    <button type="button" class="button quiet model" onClick=${onModel} title=${t("Choose a model")}><span>
      ${model || state.model || detail?.model || t("model")}</span><${Icon} name="down" size=${14} /></button>
    ${
      may("chat") &&
      html`<${ApprovalMode} current=${mode}
      onOpen=${() => chat.approvals("")} />`
    }
    <a class="button quiet bare timeline-link" href=${`#${pathTo("sessions", state.session)}`}
      aria-label=${t("Timeline")}
      title=${t("Timeline")}><${Icon} name="clock" /></a>
    <${Button} kind="quiet" icon="more" label=${t("More")} aria-haspopup="dialog" onClick=${() => setMenu(true)} />
    ${
      menu &&
      html`<${Dialog} title=${title} class="sheet" onClose=${() => setMenu(false)}><ul class="more">
      ${rows.map(
        (
          row,
        ) => html`<li key=${row.label}><button type="button" class="more-row" disabled=${row.off}
        onClick=${act(row.run)}><${Icon} name=${row.icon} />${row.label}</button></li>`,
      )}
      <li><a class="more-row" href=${`#${pathTo("sessions", state.session)}`}>
        <${Icon} name="clock" />${t("Timeline")}</a></li>
      ${
        may("terminal") &&
        html`<li><a class="more-row" href=${`#${terminalOf(state.session)}`}><${Icon}
        name="terminal" />${t("Open in a terminal")}</a></li>`
      }</ul>
      <p class="muted menu-facts">${[
        state.cwd,
        state.surface && t("started in {surface}", { surface: state.surface }),
        detail?.running && t("runs in {surface}", { surface: detail.running }),
      ]
        .filter(Boolean)
        .join(" · ")}</p><//>`
    }
  </header>`;
}
