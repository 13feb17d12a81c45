// How memory and skills changed, newest first: what each change did, and taking it back.
import { api, may } from "../../app/api.js";
import { useKeys } from "../../app/keys.js";
import { Button, Empty, Time } from "../../app/parts/basics.js";
import { confirm } from "../../app/parts/dialog.js";
import { Diff } from "../../app/parts/diff.js";
import { toast, trying } from "../../app/parts/toast.js";
import { plural } from "../../app/parts/format.js";
import { html, useState } from "../../app/ui.js";
import { Loaded, useLoaded } from "../loading.js";
import { Whose } from "./whose.js";

const UNDER = [["skills", "Skills"], ["memories", "Memory"]];

export function History() {
  const [under, setUnder] = useState("skills");
  const [open, setOpen] = useState("");
  const history = useLoaded(() => api.get("/api/learning/history", { under, limit: 200 }), [under]);
  const entries = history.value?.entries ?? [];
  const at = entries.findIndex((one) => one.hash === open);
  const move = (step) => () => setOpen(entries[Math.min(Math.max(at + step, 0), entries.length - 1)]?.hash ?? "");
  const takeBack = (entry, whole) => revert(entry, under, whole, history.again);
  const group = "History";
  useKeys([
    { keys: "j", label: "Next change", group, run: move(1) },
    { keys: "k", label: "Change before", group, run: move(-1) },
    { keys: "u", label: "Take the change back", group, run: () => (at >= 0 && may("approve") ? void takeBack(entries[at], false) : false) },
  ]);
  return html`<div class="stack"><div class="chips" role="group" aria-label="Of what">${UNDER.map(([name, label]) => html`<button key=${name} type="button" class="chip" aria-pressed=${String(name === under)} onClick=${() => (setOpen(""), setUnder(name))}>${label}</button>`)}</div>
    <${Loaded} of=${history}>${({ missing }) => (missing ? html`<${Empty} icon="info" title="There is no history">${missing[0].toUpperCase() + missing.slice(1)}.<//>` : !entries.length ? html`<${Empty} icon="clock" title="Nothing has changed yet">Each change of ${under === "skills" ? "a skill" : "the memory"} is kept here, with the way back.<//>`
      : html`<ol class="plain history">${entries.map((one) => html`<${Entry} key=${one.hash} one=${one} under=${under} open=${one.hash === open} onToggle=${() => setOpen(one.hash === open ? "" : one.hash)} takeBack=${takeBack} />`)}</ol>`)}<//></div>`;
}

function Entry({ one, under, open, onToggle, takeBack }) {
  const id = `change-${one.hash}`;
  return html`<li class="card change" data-change=${one.hash}><div class="row wrap"><button type="button" class="link change-title" aria-expanded=${String(open)} aria-controls=${id} onClick=${onToggle}>${one.title}</button><span class="spring" /><span class="muted small"><${Whose} origin=${one.origin} /> · <${Time} at=${one.when} /></span></div>
    ${open && html`<div id=${id} class="stack tight"><${Change} hash=${one.hash} under=${under} />${may("approve") && html`<div class="row wrap"><${Button} icon="undo" onClick=${() => takeBack(one, false)}>Take this back <kbd>U</kbd><//><${Button} kind="quiet" icon="clock" onClick=${() => takeBack(one, true)}>Go back to how it was after this<//></div>`}</div>`}</li>`;
}

function Change({ hash, under }) {
  const change = useLoaded(async () => (await api.get("/api/learning/history", { under, change: hash, limit: 1 })).diff, [hash, under]);
  return html`<${Loaded} of=${change}>${(diff) => (diff ? html`<${Diff} text=${diff} label="What it did" />` : html`<p class="muted">It changed nothing that can be shown.</p>`)}<//>`;
}

async function revert(entry, under, whole, again) {
  const text = whole ? `Everything under ${under} becomes as it was after “${entry.title}”. Later changes are undone, and stay in the history.` : `“${entry.title}” is undone; what came later stays. That is a change of its own, which can be taken back too.`;
  if (!(await confirm({ title: whole ? "Go back to here?" : "Take this change back?", text, action: whole ? "Go back" : "Take it back" }))) return;
  const answer = await trying(() => api.post("/api/learning/revert", { change: entry.hash, under, whole }));
  if (answer) toast(`Done: ${plural(answer.files.length, "file")} changed.`, "good");
  again();
}
