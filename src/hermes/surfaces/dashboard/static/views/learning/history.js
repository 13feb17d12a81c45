// The history of memory and skills, newest first: what each change did, and how to revert it.
/** @import { HistoryEntry } from "../../types/page.d.ts" */

import { api, may } from "../../app/api.js";
import { useKeys } from "../../app/keys.js";
import { Button, Empty, Keys, Time } from "../../app/parts/basics.js";
import { confirm } from "../../app/parts/dialog.js";
import { Diff } from "../../app/parts/diff.js";
import { toast, tryTo } from "../../app/parts/toast.js";
import { t } from "../../app/translation.js";
import { html, useState } from "../../app/ui.js";
import { Chips } from "../inputs.js";
import { useLoaded, whenLoaded } from "../loading.js";
import { OriginLabel } from "./origin.js";

/** @typedef {"skills" | "memories"} Under */

/**
 * @typedef {object} HistoryKeys
 * @property {HistoryEntry[]} entries
 * @property {string} open
 * @property {(hash: string) => void} setOpen
 * @property {(entry: HistoryEntry, whole: boolean) => void} takeBack
 */

/**
 * @typedef {object} EntryProps
 * @property {HistoryEntry} one
 * @property {string} under
 * @property {boolean} open
 * @property {() => void} onToggle
 * @property {(entry: HistoryEntry, whole: boolean) => void} takeBack
 */

const UNDER = [
  ["skills", t("Skills")],
  ["memories", t("Memory")],
];
const MOST = 200; // changes that are shown

export function History() {
  const [under, setUnder] = useState(/** @type {Under} */ ("skills"));
  const [open, setOpen] = useState("");
  const history = useLoaded(
    () => api.get("/api/learning/history", { under, limit: MOST }),
    [under],
  );
  const entries = history.value?.entries ?? [];
  /**
   * @param {HistoryEntry} entry
   * @param {boolean} whole
   */
  const takeBack = (entry, whole) => revert(entry, under, whole, history.again);
  useHistoryKeys({ entries, open, setOpen, takeBack });
  /** @param {Under} name */
  const pick = (name) => {
    setOpen("");
    setUnder(name);
  };
  /** @param {HistoryEntry} one */
  const entry = (one) => html`
    <${Entry}
      key=${one.hash}
      one=${one}
      under=${under}
      open=${one.hash === open}
      onToggle=${() => setOpen(one.hash === open ? "" : one.hash)}
      takeBack=${takeBack}
    />
  `;
  return html`
    <div class="stack">
      <${Chips} label=${t("Changes to")} choices=${UNDER} value=${under} onPick=${pick} />
      ${whenLoaded(history, ({ missing }) =>
        missing || !entries.length
          ? html`<${NoChanges} missing=${missing} under=${under} />`
          : html`<ol class="plain history">${entries.map(entry)}</ol>`,
      )}
    </div>
  `;
}

/** @param {{ missing: string, under: string }} props */
function NoChanges({ missing, under }) {
  if (missing) {
    return html`
      <${Empty} icon="info" title=${t("There is no history")}>${missing[0].toUpperCase() + missing.slice(1)}.<//>
    `;
  }
  return html`
    <${Empty} icon="clock" title=${t("Nothing has changed yet")}>
      ${
        under === "skills"
          ? t("Every change to a skill is listed here and can be undone.")
          : t("Every change to the memory is listed here and can be undone.")
      }
    <//>
  `;
}

/** @param {HistoryKeys} props */
function useHistoryKeys({ entries, open, setOpen, takeBack }) {
  const group = t("History");
  const at = entries.findIndex((one) => one.hash === open);
  /** @param {number} step */
  const move = (step) => () =>
    setOpen(entries[Math.min(Math.max(at + step, 0), entries.length - 1)]?.hash ?? "");
  const undo = () => (at >= 0 && may("approve") ? void takeBack(entries[at], false) : false);
  useKeys([
    { keys: "j", label: t("Next change"), group, run: move(1) },
    { keys: "k", label: t("Previous change"), group, run: move(-1) },
    { keys: "Alt+u", label: t("Undo the change"), group, run: undo },
  ]);
}

/** @param {EntryProps} props */
function Entry({ one, under, open, onToggle, takeBack }) {
  const id = `change-${one.hash}`;
  const title = { "aria-expanded": String(open), "aria-controls": id, onClick: onToggle };
  return html`
    <li class="card change" data-change=${one.hash}>
      <div class="row wrap">
        <button type="button" class="link change-title" ...${title}>${one.title}</button>
        <span class="spring" />
        <span class="muted small"><${OriginLabel} origin=${one.origin} /> · <${Time} at=${one.when} /></span>
      </div>
      ${
        open &&
        html`
        <div id=${id} class="stack tight">
          <${Change} hash=${one.hash} under=${under} />
          ${
            may("approve") &&
            html`<${RevertActions} takeBack=${(/** @type {boolean} */ whole) => takeBack(one, whole)} />`
          }
        </div>
      `
      }
    </li>
  `;
}

/** @param {{ takeBack: (whole: boolean) => void }} props */
function RevertActions({ takeBack }) {
  return html`
    <div class="row wrap">
      <${Button} icon="undo" onClick=${() => takeBack(false)}>${t("Undo this change")}<${Keys} of="Alt+u" /><//>
      <${Button} kind="quiet" icon="clock" onClick=${() => takeBack(true)}>
        ${t("Restore the state after this change")}<//>
    </div>
  `;
}

/** @param {{ hash: string, under: string }} props */
function Change({ hash, under }) {
  const change = useLoaded(async () => {
    const { diff } = await api.get("/api/learning/history", { under, change: hash, limit: 1 });
    return diff;
  }, [hash, under]);
  return html`
    ${whenLoaded(change, (diff) =>
      diff
        ? html`<${Diff} text=${diff} label=${t("Changes")} />`
        : html`<p class="muted">${t("There is nothing to show for this change.")}</p>`,
    )}
  `;
}

/**
 * @param {Under} under
 * @param {string} change
 */
function restoreText(under, change) {
  return under === "skills"
    ? t(
        "All skills are restored to the state after “{change}”. Later changes are undone, and stay in the history.",
        { change },
      )
    : t(
        "The memory is restored to the state after “{change}”. Later changes are undone, and stay in the history.",
        { change },
      );
}

/**
 * Asks, then reverts a change; with `whole`, everything after it.
 * @param {HistoryEntry} entry
 * @param {Under} under
 * @param {boolean} whole
 * @param {() => void} again
 */
async function revert(entry, under, whole, again) {
  const question = whole
    ? {
        title: t("Restore this state?"),
        text: restoreText(under, entry.title),
        action: t("Restore state"),
      }
    : {
        title: t("Undo this change?"),
        text: t(
          "“{change}” is undone; later changes stay. The undo is also a change, so you can undo it.",
          { change: entry.title },
        ),
        action: t("Undo change"),
      };
  if (!(await confirm(question))) return;
  const answer = await tryTo(() =>
    api.post("/api/learning/revert", { change: entry.hash, under, whole }),
  );
  const count = answer?.files.length ?? 0;
  const done = t("Done: {count} file changed.", "Done: {count} files changed.", { count });
  if (answer) toast(done, "good");
  again();
}
