// The approval mode of a session: the picker, and the button above the conversation.
/** @import { Mode } from "../../types/page.d.ts" */

import { may } from "../../app/api.js";
import { confirm } from "../../app/parts/dialog.js";
import { Dialog, Icon } from "../../app/parts.js";
import { t } from "../../app/translation.js";
import { html } from "../../app/ui.js";

/** @type {{ name: Mode, label: string, icon: string, tone: string, note: string }[]} */
export const MODES = [
  {
    name: "ask",
    label: t("Ask"),
    icon: "lock",
    tone: "",
    note: t(
      "Hermes asks before it changes a file, and before it runs commands that reach beyond the folder.",
    ),
  },
  {
    name: "auto-edit",
    label: t("Auto-edit"),
    icon: "edit",
    tone: "warn",
    note: t("Hermes changes files in the folder without asking. Commands are treated as in Ask."),
  },
  {
    name: "plan",
    label: t("Plan"),
    icon: "list",
    tone: "",
    note: t(
      "Hermes only reads, searches and asks, and ends with a plan. Nothing is changed before you accept it.",
    ),
  },
  {
    name: "full",
    label: t("Full"),
    icon: "bolt",
    tone: "bad",
    note: t(
      "Hermes asks only about commands that it can't analyze. Commands can reach everything you can.",
    ),
  },
];
const WARNING = [
  t("Commands and changes will not wait for you, anywhere on that machine."),
  t("This lasts until you choose another mode or the dashboard is restarted."),
  t("Text that Hermes reads, such as a web page, can try to mislead it."),
].join(" ");

/**
 * Whether this mode may be chosen here; asks for confirmation before `full`.
 * @param {string} name
 */
export async function mayChoose(name) {
  return (
    name !== "full" ||
    confirm({
      title: t("Let Hermes work without asking?"),
      text: WARNING,
      action: t("Don't ask me"),
      danger: true,
    })
  );
}

/**
 * The button above the conversation that shows the current mode.
 * @param {{ current: Mode, onOpen: () => void }} props
 */
export function ApprovalMode({ current, onOpen }) {
  const mode = MODES.find((one) => one.name === current) ?? MODES[0];
  return html`<button type="button" class=${`button quiet mode ${mode.tone}`} onClick=${onOpen}
    aria-label=${t("Approvals: {mode}", { mode: mode.label })}
    title=${t("Approval mode. {note}", { note: mode.note })}>
    <${Icon} name=${mode.icon} size=${16} /><span>${mode.label}</span></button>`;
}

/** @param {{ current: Mode, onChoose: (mode: Mode) => void, onClose: () => void }} props */
export function ApprovalPicker({ current, onChoose, onClose }) {
  const allowed = may("approve");
  /** @param {Mode} name */
  const choose = async (name) => (await mayChoose(name)) && onChoose(name);
  return html`<${Dialog} title=${t("Approval mode")} onClose=${onClose}><div class="stack"><ul class="choices">
    ${MODES.map(
      (mode) => html`<li key=${mode.name}><button type="button" class=${`more-row way ${mode.tone}`}
      aria-pressed=${current === mode.name ? "true" : "false"}
      disabled=${!["ask", "plan"].includes(mode.name) && !allowed}
        onClick=${() => choose(mode.name)}><${Icon} name=${current === mode.name ? "check" : mode.icon} />
          <span><strong>${mode.label}</strong><span class="muted">${mode.note}</span></span></button></li>`,
    )}</ul>
    <p class="muted">
      ${t("This takes effect at once for the whole session, including a request that is waiting.")}${
        allowed
          ? ""
          : ` ${t("This browser is not allowed to answer approval requests, so it can only choose Ask or Plan.")}`
      }</p></div><//>`;
}
