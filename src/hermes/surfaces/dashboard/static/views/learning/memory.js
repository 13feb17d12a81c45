// What Hermes remembers: two files of notes, how full they are, and editing them note by note.
/** @import { Answer, Failure, MemoryChange, MemoryFile } from "../../types/page.d.ts" */

import { api, asFailure, may } from "../../app/api.js";
import { Button, Empty, Icon } from "../../app/parts/basics.js";
import { ask, confirm } from "../../app/parts/dialog.js";
import { toast } from "../../app/parts/toast.js";
import { t } from "../../app/translation.js";
import { html, useState } from "../../app/ui.js";
import { FieldError } from "../inputs.js";
import { useLoaded, whenLoaded } from "../loading.js";

/** @typedef {(change: Omit<MemoryChange, "file">) => Promise<boolean>} Edit */

/** @type {Record<string, ["memory" | "user", string]>} */
const ABOUT = {
  "MEMORY.md": ["memory", t("What Hermes has learned about the work")],
  "USER.md": ["user", t("What Hermes knows about you")],
};

export function Memory() {
  const memory = useLoaded(() => api.get("/api/memory"), []);
  return html`
    ${whenLoaded(
      memory,
      ({ files, flagged }) => html`
        <div class="stack">
          <${FlaggedNotes} notes=${flagged} />
          ${files.map((file) => html`<${File} key=${file.name} file=${file} put=${memory.put} />`)}
          <p class="muted small">
            ${t("New sessions see these notes; running sessions do not. The history lists every change and can undo it.")}
          </p>
        </div>
      `,
    )}
  `;
}

/** @param {{ notes: { note?: string, text?: string, why: string }[] }} props */
function FlaggedNotes({ notes }) {
  return (
    notes.length > 0 &&
    html`
    <div class="card warned" role="alert">
      <h2><${Icon} name="warn" /> ${t(
        "{count} note kept out of the prompt",
        "{count} notes kept out of the prompt",
        { count: notes.length },
      )}</h2>
      <ul class="plain">
        ${notes.map(
          (one, index) => html`
          <li key=${index}><q>${one.note ?? one.text}</q> <span class="muted">${one.why}</span></li>
        `,
        )}
      </ul>
    </div>
  `
  );
}

/** @param {{ file: MemoryFile, put: (answer: Answer<"POST", "/api/memory">) => void }} props */
function File({ file, put }) {
  const [name, about] = ABOUT[file.name] ?? ["memory", ""];
  const [error, setError] = useState(/** @type {Failure | null} */ (null));
  /** @param {Omit<MemoryChange, "file">} change */
  const edit = async (change) => {
    try {
      put(await api.post("/api/memory", { file: name, ...change }));
      setError(null);
      return true;
    } catch (wrong) {
      setError(asFailure(wrong));
      return false;
    }
  };
  const id = `file-${name}`;
  return html`
    <section class="card stack tight memory-file" data-file=${file.name} aria-labelledby=${id}>
      <header class="row">
        <div class="grow">
          <h2 id=${id}>${file.name}</h2>
          <p class="muted small">${about}</p>
        </div>
        <${SpaceUsed} file=${file} />
      </header>
      ${
        file.notes.length
          ? html`<${Notes} notes=${file.notes} edit=${edit} />`
          : html`<${Empty} icon="thought" title=${t("Empty")}>${t("Nothing is remembered here yet.")}<//>`
      }
      ${may("admin") && html`<${NewNote} label=${t("New note in {file}", { file: file.name })} edit=${edit} />`}
      ${error && html`<${FieldError} error=${error} />`}
    </section>
  `;
}

/** @param {{ file: MemoryFile }} props */
function SpaceUsed({ file: { name, length, limit, fill } }) {
  const percent = Math.round(Math.min(length / limit, 1) * 100);
  return html`
    <div class="fill">
      <meter
        min="0"
        max=${limit}
        low=${limit * 0.7}
        high=${limit * 0.9}
        optimum="0"
        value=${length}
        aria-label=${t("Space used in {file}", { file: name })}
      />
      <span class="small muted">${fill} (${percent}%)</span>
    </div>
  `;
}

/** @param {{ notes: string[], edit: Edit }} props */
function Notes({ notes, edit }) {
  /**
   * @param {string} text
   * @param {number} index
   */
  const note = (text, index) => html`
    <li key=${index} class="row">
      <span class="grow pre">${text}</span>
      ${may("admin") && html`<${NoteActions} number=${index + 1} text=${text} edit=${edit} />`}
    </li>
  `;
  return html`<ul class="plain lined notes">${notes.map(note)}</ul>`;
}

/** @param {{ number: number, text: string, edit: Edit }} props */
function NoteActions({ number, text, edit }) {
  const replace = async () => {
    const answer = await ask({
      title: t("Edit the note"),
      label: t("Note"),
      value: text,
      action: t("Save"),
    });
    const next = answer?.trim();
    if (next && next !== text) await edit({ action: "replace", old: text, text: next });
  };
  const remove = async () => {
    const sure = await confirm({
      title: t("Forget this note?"),
      text: t("{note} — The history keeps it and can restore it.", { note: text }),
      action: t("Forget this note"),
      danger: true,
    });
    if (!sure || !(await edit({ action: "remove", old: text }))) return;
    toast(t("Forgotten. The history can restore it."), "good");
  };
  return html`
    <${Button} kind="quiet" icon="edit" label=${t("Edit note {number}", { number })} onClick=${replace} />
    <${Button} kind="quiet" icon="trash" label=${t("Forget note {number}", { number })} onClick=${remove} />
  `;
}

/** @param {{ label: string, edit: Edit }} props */
function NewNote({ label, edit }) {
  const [text, setText] = useState("");
  const words = text.trim();
  /** @param {Event} event */
  const add = async (event) => {
    event.preventDefault();
    if (words && (await edit({ action: "add", text: words }))) setText("");
  };
  return html`
    <form class="row" onSubmit=${add}>
      <input
        class="input"
        aria-label=${label}
        placeholder=${t("Something to remember")}
        value=${text}
        onInput=${(event) => setText(event.target.value)}
      />
      <button type="submit" class="button" disabled=${!words}>${t("Add")}</button>
    </form>
  `;
}
