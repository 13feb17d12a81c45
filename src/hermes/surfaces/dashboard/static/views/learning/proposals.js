// Pending proposals: each with its diff, approved or rejected with a button or a key.
/** @import { LoadedValue } from "../loading.js" */
/** @import { ProposalRow, ProposedChange, Ref } from "../../types/page.d.ts" */

import { api, may } from "../../app/api.js";
import { useKeys } from "../../app/keys.js";
import { Button, Empty, Keys, Tag, Time } from "../../app/parts/basics.js";
import { Diff } from "../../app/parts/diff.js";
import { toast, tryTo } from "../../app/parts/toast.js";
import { t } from "../../app/translation.js";
import { html, useEffect, useElement, useState } from "../../app/ui.js";
import { whenLoaded } from "../loading.js";
import { OriginLabel } from "./origin.js";

/** @typedef {"approve" | "reject"} Decision */

/**
 * @typedef {object} ProposalProps
 * @property {ProposalRow} one
 * @property {boolean} current
 * @property {boolean} busy
 * @property {() => void} onFocus
 * @property {(proposal: ProposalRow, decision: Decision) => void} decide
 */

/** @type {Record<string, string>} */
const STATUS = { approved: "good", rejected: "" };
/** @type {Record<string, string>} */
const STATUS_WORDS = { approved: t("approved"), rejected: t("rejected") };
/** @type {Record<string, (file: string) => string>} */
const EDITS = {
  add: (file) => t("add in {file}", { file }),
  replace: (file) => t("replace in {file}", { file }),
  remove: (file) => t("remove in {file}", { file }),
};

/** @param {{ proposals: LoadedValue<ProposalRow[]> }} props */
export function Proposals({ proposals }) {
  return html`${whenLoaded(proposals, (all) => html`<${Decisions} all=${all} again=${proposals.again} />`)}`;
}

/** @param {{ all: ProposalRow[], again: () => void }} props */
function Decisions({ all, again }) {
  const pending = all.filter((one) => one.status === "pending");
  const decided = all.filter((one) => one.status !== "pending").reverse();
  const [at, setAt] = useState(0);
  const [busy, setBusy] = useState("");
  const list = /** @type {Ref<HTMLElement>} */ (useElement());
  const current = pending[Math.min(at, pending.length - 1)];
  /**
   * @param {ProposalRow} proposal
   * @param {Decision} decision
   */
  const decide = async (proposal, decision) => {
    if (busy || !may("approve")) return;
    setBusy(proposal.id);
    const answer = await tryTo(() => api.post(`/api/proposals/${proposal.id}`, { decision }));
    setBusy("");
    if (answer) showResult(/** @type {ProposalRow} */ (answer.proposals[0]), again);
    again();
  };
  useEffect(
    () => list.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" }),
    [current?.id],
  );
  const group = t("Proposals");
  /** @param {Decision} decision */
  const decideCurrent = (decision) => () => (current ? void decide(current, decision) : false);
  useKeys([
    { keys: "Alt+a", label: t("Approve the proposal"), group, run: decideCurrent("approve") },
    { keys: "Alt+r", label: t("Reject the proposal"), group, run: decideCurrent("reject") },
    {
      keys: "j",
      label: t("Next proposal"),
      group,
      run: () => setAt(Math.min(at + 1, pending.length - 1)),
    },
    { keys: "k", label: t("Previous proposal"), group, run: () => setAt(Math.max(at - 1, 0)) },
  ]);
  /**
   * @param {ProposalRow} one
   * @param {number} index
   */
  const proposal = (one, index) => html`
    <${Proposal}
      key=${one.id}
      one=${one}
      current=${one === current}
      busy=${busy === one.id}
      onFocus=${() => setAt(index)}
      decide=${decide}
    />
  `;
  return html`
    <div class="stack" ref=${list}>
      ${!pending.length && html`<${NoProposals} />`}
      ${pending.map(proposal)}
      ${decided.length > 0 && html`<${Decided} list=${decided} />`}
    </div>
  `;
}

function NoProposals() {
  return html`
    <${Empty} icon="learning" title=${t("Nothing to review")}>
      ${t("When Hermes finds something worth keeping, it proposes it here. Nothing changes until you approve it.")}
    <//>
  `;
}

/** @param {{ list: ProposalRow[] }} props */
function Decided({ list }) {
  return html`
    <details class="fold">
      <summary>${t("{count} decided earlier", { count: list.length })}</summary>
      <ul class="plain lined card">
        ${list.map(
          (one) => html`
          <li key=${one.id} class="row decided">
            <${Tag} kind=${STATUS[one.status]}>${STATUS_WORDS[one.status] ?? one.status}<//>
            <span class="grow">${titleOf(one.change)}</span>
            <${Time} at=${one.created} />
          </li>
        `,
        )}
      </ul>
    </details>
  `;
}

/** @param {ProposalProps} props */
function Proposal({ one, current, busy, onFocus, decide }) {
  const id = `proposal-${one.id}`;
  const label =
    one.change.type === "memory"
      ? t("What would be remembered")
      : t("What would change in the skill");
  return html`
    <article
      class=${`card proposal ${current ? "current" : ""}`}
      aria-current=${current ? "true" : undefined}
      aria-labelledby=${id}
      data-proposal=${one.id}
      onFocusIn=${onFocus}
      onClick=${onFocus}
    >
      <header class="row">
        <h2 id=${id} class="grow">${titleOf(one.change)}</h2>
        <span class="muted small"><${OriginLabel} origin=${one.origin} /> · <${Time} at=${one.created} /></span>
      </header>
      ${one.why && html`<p>${one.why}</p>`}
      <${Diff} text=${one.diff} label=${label} />
      ${
        may("approve") &&
        html`
        <footer class="row">
          <${Button} kind="primary" icon="check" busy=${busy} onClick=${() => decide(one, "approve")}>
            ${t("Approve")}${current && html`<${Keys} of="Alt+a" />`}
          <//>
          <${Button} icon="close" disabled=${busy} onClick=${() => decide(one, "reject")}>
            ${t("Reject")}${current && html`<${Keys} of="Alt+r" />`}
          <//>
        </footer>
      `
      }
    </article>
  `;
}

/**
 * Shows the result; an approved change can be undone at once.
 * @param {ProposalRow} proposal
 * @param {() => void} again
 */
function showResult(proposal, again) {
  if (proposal.status === "rejected")
    return toast(t("Rejected. Hermes won't propose it again."), "info");
  const under = proposal.change.type === "memory" ? "memories" : "skills";
  const back = async () => {
    if (
      await tryTo(
        () => api.post("/api/learning/revert", { change: proposal.hash, under }),
        t("Undone."),
      )
    )
      again();
  };
  return toast(
    t("Approved and applied."),
    "good",
    proposal.hash ? { label: t("Undo"), run: back } : null,
  );
}

/** @param {ProposedChange} change */
function titleOf(change) {
  if (change.type === "memory") {
    const edits = change.edits.map(({ action, file }) =>
      EDITS[action](file === "user" ? "USER.md" : "MEMORY.md"),
    );
    return t("Memory: {edits}", { edits: [...new Set(edits)].join(", ") });
  }
  if (change.retire) return t("Skill {name}: retire", { name: change.name });
  const isNew = change.files.some(
    (file) => file.path === "SKILL.md" && (file.before ?? null) === null,
  );
  return isNew
    ? t("Skill {name}: new", { name: change.name })
    : t("Skill {name}: change", { name: change.name });
}
