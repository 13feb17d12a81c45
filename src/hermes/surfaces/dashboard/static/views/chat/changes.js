// What a turn or a whole session changed: a tree of files, and the differences in the one that is chosen.
/** @import { ChangedFile, FileTree } from "../../app/parts/diff_files.js" */
/** @import { Answer } from "../../types/page.d.ts" */
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

/** @typedef {Answer<"GET", "/api/sessions/x/changed">["files"][number]} SessionFile */

/**
 * The files that a session changed.
 * @param {{ session: string, onClose: () => void }} props
 */
export function SessionFiles({ session, onClose }) {
  const styled = useStyle("views/changes.css");
  const [found, setFound] = useState(
    /** @type {{ files?: SessionFile[], error?: unknown } | null} */ (null),
  );
  useEffect(() => {
    api.get(sessionPath(session, "changed")).then(setFound, (error) => setFound({ error }));
  }, [session]);
  return html`<${Dialog} title=${t("Session files")} class="wide" onClose=${onClose}>
    ${
      !found || !styled
        ? html`<${Loading} />`
        : found.error
          ? html`<p>${errorText(found.error)}</p>`
          : found.files?.length
            ? html`<${FilesAndHistory} session=${session} listed=${found.files} />`
            : html`<p class="muted">${t("This session changed no files that undo could restore.")}</p>`
    }<//>`;
}

/** @param {{ session: string, listed: SessionFile[] }} props */
function FilesAndHistory({ session, listed }) {
  const tree = useMemo(() => treeOf(listed.map(asChanged)), [listed]);
  const [chosen, setChosen] = useState(listed[0].path);
  const file = listed.find((one) => one.path === chosen) ?? listed[0];
  return html`<div class="changes">
    <nav class="changes-tree" aria-label=${t("{count} changed file", "{count} changed files", {
      count: listed.length,
    })}>
      <${Folder} tree=${tree} chosen=${file.path} onChoose=${setChosen} /></nav>
    <div class="changes-file">
      <div class="changes-head"><strong>${file.path}</strong>
        ${
          file.is_there &&
          html`<${WrittenActions} key=${file.path} session=${session} turn=${file.turns[0].turn}
            path=${file.path} />`
        }</div>
      ${file.turns.map(
        (
          one,
        ) => html`<${ChangeOfTurn} key=${`${one.turn} ${file.path}`} session=${session} turn=${one}
          path=${file.path} />`,
      )}
    </div></div>`;
}

/**
 * A file of the list as the tree shows it.
 * @param {SessionFile} file
 * @returns {ChangedFile}
 */
function asChanged({ path, is_there }) {
  return {
    path,
    was: "",
    status: is_there ? "changed" : "deleted",
    added: 0,
    removed: 0,
    text: "",
  };
}

/**
 * What one turn changed in a file.
 * @param {{ session: string, turn: SessionFile["turns"][number], path: string }} props
 */
function ChangeOfTurn({ session, turn, path }) {
  const [diff, setDiff] = useState(/** @type {string | null} */ (null));
  useEffect(() => {
    api.get(sessionPath(session, "diff"), { turn: turn.turn }).then(
      (found) => setDiff(splitFiles(found.diff).files.find((one) => one.path === path)?.text ?? ""),
      (error) => setDiff(errorText(error)),
    );
  }, []);
  return html`<section class="changes-turn"><h3 dir="auto">${turn.text}</h3>
    ${
      diff === null
        ? html`<${Loading} />`
        : html`<${Diff} text=${withoutHead(diff)} label=${path.split("/").pop()} path=${path} />`
    }</section>`;
}

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
        ${
          file.added + file.removed > 0 &&
          html`<span class="diff-sum"><ins>+${file.added}</ins> <del>−${file.removed}</del></span>`
        }</button></li>`,
    )}</ul>`;
}
