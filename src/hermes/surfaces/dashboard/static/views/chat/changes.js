// What a turn changed: a tree of files, and the difference in the one that is chosen.
/** @import { ChangedFile, FileTree } from "../../app/parts/diff_files.js" */
import { api, errorText, sessionPath } from "../../app/api.js";
import { splitFiles, treeOf } from "../../app/parts/diff_files.js";
import { Dialog, Diff, Icon, Loading } from "../../app/parts.js";
import { t } from "../../app/translation.js";
import { html, useEffect, useMemo, useState, useStyle } from "../../app/ui.js";
import { WrittenActions } from "./written_file.js";

/** @type {Record<ChangedFile["status"], string>} */
const STATUSES = {
  added: t("added"),
  deleted: t("deleted"),
  renamed: t("renamed"),
  changed: t("changed"),
};
/** @type {Record<ChangedFile["status"], string>} */
const LETTERS = { added: "A", deleted: "D", renamed: "R", changed: "M" };

/** @param {{ session: string, turn: string, onClose: () => void }} props */
export default function Changes({ session, turn, onClose }) {
  const styled = useStyle("views/changes.css");
  const [found, setFound] = useState(
    /** @type {{ diff?: string, turn?: string, error?: unknown } | null} */ (null),
  );
  useEffect(() => {
    api.get(sessionPath(session, "diff"), { turn }).then(setFound, (error) => setFound({ error }));
  }, [session, turn]);
  return html`<${Dialog} title=${t("Changes of this turn")} class="wide" onClose=${onClose}>
    ${
      !found || !styled
        ? html`<${Loading} />`
        : found.error
          ? html`<p>${errorText(found.error)}</p>`
          : found.diff
            ? html`<${FilesAndDiff} session=${session} turn=${turn || found.turn || ""} diff=${found.diff} />`
            : html`<p class="muted">${t("This turn changed no files that undo could restore.")}</p>`
    }<//>`;
}

/** @param {{ session: string, turn: string, diff: string }} props */
function FilesAndDiff({ session, turn, diff }) {
  const { files, notes } = useMemo(() => splitFiles(diff), [diff]);
  const tree = useMemo(() => treeOf(files), [files]);
  const [chosen, setChosen] = useState(files[0]?.path ?? "");
  const file = files.find((one) => one.path === chosen);
  return html`<div class="changes">
    <nav class="changes-tree" aria-label=${t("{count} changed file", "{count} changed files", {
      count: files.length,
    })}>
      <${Folder} tree=${tree} chosen=${chosen} onChoose=${setChosen} /></nav>
    <div class="changes-file">
      ${
        file &&
        html`<div class="changes-head"><strong>${file.path}</strong>
        ${file.was && html`<span class="muted">${t("was {name}", { name: file.was })}</span>`}
        ${
          file.status !== "deleted" &&
          html`<${WrittenActions} session=${session} turn=${turn} path=${file.path} />`
        }</div>
        <${Diff} key=${file.path} text=${withoutHead(file.text)}
          label=${file.path.split("/").pop()} path=${file.path} />`
      }
      ${notes.map((note) => html`<p key=${note} class="muted">${note}</p>`)}
    </div></div>`;
}

/**
 * The changed lines; what is above them says what the tree says already.
 * @param {string} text
 */
function withoutHead(text) {
  const at = text.search(/^@@ /m);
  return at < 0 ? text : text.slice(at);
}

/**
 * @typedef {object} FolderProps
 * @property {FileTree} tree
 * @property {string} chosen
 * @property {(path: string) => void} onChoose
 */

/** @param {FolderProps} props */
function Folder({ tree, chosen, onChoose }) {
  return html`<ul>
    ${tree.folders.map(
      (
        folder,
      ) => html`<li key=${`${folder.name}/`}><details open><summary><${Icon} name="folder" size=${15} />
        ${folder.name}</summary><${Folder} tree=${folder} chosen=${chosen} onChoose=${onChoose} /></details></li>`,
    )}
    ${tree.files.map(
      (
        file,
      ) => html`<li key=${file.path}><button type="button" class="changes-row" title=${file.path}
        aria-current=${file.path === chosen ? "true" : undefined} onClick=${() => onChoose(file.path)}>
        <span class=${`changes-status ${file.status}`} aria-hidden="true">${LETTERS[file.status]}</span>
        <span class="unseen">${STATUSES[file.status]} </span>
        <span class="changes-name">${file.path.split("/").pop()}</span>
        <span class="diff-sum"><ins>+${file.added}</ins> <del>−${file.removed}</del></span></button></li>`,
    )}</ul>`;
}
