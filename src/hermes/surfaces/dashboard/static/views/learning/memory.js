// What Hermes remembers: two files of notes, how full they are, and editing them note by note.
import { api, may } from "../../app/api.js";
import { Button, Empty, Icon } from "../../app/parts/basics.js";
import { ask, confirm } from "../../app/parts/dialog.js";
import { plural } from "../../app/parts/format.js";
import { toast } from "../../app/parts/toast.js";
import { html, useState } from "../../app/ui.js";
import { Loaded, useLoaded } from "../loading.js";

const ABOUT = { "MEMORY.md": ["memory", "What Hermes has learned about the work"], "USER.md": ["user", "What Hermes knows about you"] };

export function Memory() {
  const memory = useLoaded(() => api.get("/api/memory"), []);
  return html`<${Loaded} of=${memory}>${({ files, flagged }) => html`<div class="stack">
    ${flagged.length > 0 && html`<div class="card warned" role="alert"><h2><${Icon} name="warn" /> ${plural(flagged.length, "note")} kept out of the prompt</h2><ul class="plain">${flagged.map((one, index) => html`<li key=${index}><q>${one.note ?? one.text}</q> <span class="muted">${one.why}</span></li>`)}</ul></div>`}
    ${files.map((file) => html`<${File} key=${file.name} file=${file} put=${memory.put} />`)}
    <p class="muted small">New sessions are told these notes; sessions that run already are not. The history has every change, and the way back.</p>
  </div>`}<//>`;
}

function File({ file, put }) {
  const [name, about] = ABOUT[file.name] ?? [file.name, ""];
  const [text, setText] = useState("");
  const [error, setError] = useState(null);
  const edit = async (change) => {
    try {
      put(await api.post("/api/memory", { file: name, ...change }));
      setError(null);
      return true;
    } catch (wrong) {
      setError(wrong);
      return false;
    }
  };
  const add = async (event) => {
    event.preventDefault();
    if (text.trim() && (await edit({ action: "add", text: text.trim() }))) setText("");
  };
  const replace = async (note) => {
    const next = await ask({ title: "Change the note", label: "Note", value: note, action: "Save" });
    if (next !== null && next.trim() && next.trim() !== note) await edit({ action: "replace", old: note, text: next.trim() });
  };
  const remove = async (note) => {
    const sure = await confirm({ title: "Forget this note?", text: `${note} — the history keeps it, and can bring it back.`, action: "Forget it", danger: true });
    if (sure && (await edit({ action: "remove", old: note }))) toast("Forgotten. The history can bring it back.", "good");
  };
  const part = Math.min(file.length / file.limit, 1);
  return html`<section class="card stack tight memory-file" data-file=${file.name} aria-labelledby=${`file-${name}`}>
    <header class="row"><div class="grow"><h2 id=${`file-${name}`}>${file.name}</h2><p class="muted small">${about}</p></div>
      <div class="fill"><meter min="0" max=${file.limit} low=${file.limit * 0.7} high=${file.limit * 0.9} optimum="0" value=${file.length} aria-label=${`${file.name} is full to`} /><span class="small muted">${file.fill} (${Math.round(part * 100)}%)</span></div></header>
    ${file.notes.length ? html`<ul class="plain lined notes">${file.notes.map((note, index) => html`<li key=${index} class="row"><span class="grow pre">${note}</span>
      ${may("admin") && html`<${Button} kind="quiet" icon="edit" label=${`Change the note ${index + 1}`} onClick=${() => replace(note)} /><${Button} kind="quiet" icon="trash" label=${`Forget the note ${index + 1}`} onClick=${() => remove(note)} />`}</li>`)}</ul>` : html`<${Empty} icon="thought" title="Empty">Nothing is remembered here yet.<//>`}
    ${may("admin") && html`<form class="row" onSubmit=${add}><input class="input" aria-label=${`New note in ${file.name}`} placeholder="Something to remember" value=${text} onInput=${(event) => setText(event.target.value)} /><button type="submit" class="button" disabled=${!text.trim()}>Add</button></form>`}
    ${error && html`<p class="field-error" role="alert">${error.message} ${error.hint}</p>`}
  </section>`;
}
