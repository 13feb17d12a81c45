// The typed settings: each with its meaning, its value and where that comes from; edited in place, judged by the server.
import { api, may } from "../../app/api.js";
import { useKeys } from "../../app/keys.js";
import { Button, Empty, Icon, Tag, Words } from "../../app/parts/basics.js";
import { toast } from "../../app/parts/toast.js";
import { html, useEffect, useMemo, useRef, useState } from "../../app/ui.js";
import { Loaded, useLoaded } from "../loading.js";

const WHEN = { now: "Saved. It holds from now on.", restart: "Saved. This dashboard takes it up when it is started again; other Hermes processes at their next start." };

export function Typed() {
  const settings = useLoaded(() => api.get("/api/settings"), []);
  const [words, setWords] = useState("");
  const [changedOnly, setChangedOnly] = useState(false);
  const search = useRef();
  useKeys([{ keys: "/", label: "Search the settings", group: "Settings", run: () => search.current.select() }]);
  return html`<div class="stack">
    <div class="toolbar" role="search"><label class="search-box"><${Icon} name="search" /><span class="unseen">Search the settings</span>
      <input ref=${search} class="input" type="search" placeholder="Search by name, meaning or value" value=${words} onInput=${(event) => setWords(event.target.value)} /></label>
      <label class="check"><input type="checkbox" checked=${changedOnly} onChange=${(event) => setChangedOnly(event.target.checked)} />Only what is not default</label></div>
    <${Loaded} of=${settings}>${(value) => html`<${Sections} value=${value} words=${words} changedOnly=${changedOnly} again=${settings.again} />`}<//>
  </div>`;
}

function Sections({ value, words, changedOnly, again }) {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = value.settings.filter((one) => (!changedOnly || one.origin !== "default") && wanted.every((word) => textOf(one).includes(word)));
  const sections = useMemo(() => Map.groupBy?.(shown, sectionOf) ?? grouped(shown), [shown.length, words, changedOnly, value]);
  const go = (name) => document.getElementById(`section-${name}`)?.scrollIntoView({ block: "start", behavior: "smooth" });
  return html`<p class="muted small">They are kept in <code>${value.file}</code>. Keys and passwords are not among them: those lie in <code>.env</code>, and <code>hermes config set</code> stores them.</p>
    ${!shown.length && html`<${Empty} icon="search" title="No such setting">Nothing fits what you typed.<//>`}
    <div class="with-toc"><nav class="toc" aria-label="Sections">${[...sections.keys()].map((name) => html`<button key=${name} type="button" class="link" onClick=${() => go(name)}>${name}</button>`)}</nav>
      <div class="stack">${[...sections].map(([name, list]) => html`<section key=${name} id=${`section-${name}`} class="card setting-section" aria-labelledby=${`title-${name}`}>
        <header><h2 id=${`title-${name}`}>${name}</h2>${value.sections[name] && html`<p class="muted">${value.sections[name]}</p>`}</header>
        ${list.map((one) => html`<${Setting} key=${one.key} one=${one} again=${again} />`)}</section>`)}</div></div>`;
}

function Setting({ one, again }) {
  const typed = asTyped(one.value);
  const [text, setText] = useState(typed);
  const [state, setState] = useState({ busy: false, error: null });
  useEffect(() => setText(typed), [typed]);
  const isVariable = one.origin === one.variable;
  const fixed = !may("admin") || isVariable || one.masked;
  const run = async (work) => {
    setState({ busy: true, error: null });
    try {
      const { applies } = await work();
      await again();
      setState({ busy: false, error: null });
      toast(WHEN[applies] ?? "Saved.", "good");
    } catch (error) {
      setState({ busy: false, error });
    }
  };
  const address = `/api/settings/${encodeURIComponent(one.key)}`;
  const save = (value) => run(() => api.put(address, { value }));
  const restore = () => run(() => api.delete(address));
  const reset = () => {
    setText(typed);
    setState({ busy: false, error: null });
  };
  const control = { one, text, setText, save, reset, fixed, typed, ...state };
  return html`<div class="setting" data-key=${one.key}>
    <div class="setting-about"><label class="setting-key" for=${`set-${one.key}`}>${one.key.split(".").slice(1).join(".") || one.key}</label><p class="muted" id=${`about-${one.key}`}><${Words} text=${one.description} /></p></div>
    <div class="setting-value"><${Control} ...${control} />
      ${state.error && html`<p class="field-error" role="alert" id=${`wrong-${one.key}`}>${state.error.message} ${state.error.hint}</p>`}
      <p class="setting-origin">${one.origin === "default" ? html`<${Tag}>default<//>` : isVariable ? html`<${Tag} kind="warn" title="A variable of the environment goes before the file.">${one.origin}<//>` : html`<${Tag} kind="accent">${one.origin}<//>`}
        ${one.masked && html`<span>Holds something secret: change it in the file.</span>`}
        ${one.origin !== "default" && !isVariable && may("admin") && html`<${Button} kind="quiet" icon="undo" class="slim" disabled=${state.busy} onClick=${restore}><span class="unseen">Restore the default of ${one.key}, </span>default: ${asTyped(one.default) || "empty"}<//>`}</p></div>
  </div>`;
}

function Control({ one, text, setText, save, reset, fixed, typed, busy, error }) {
  const shared = { id: `set-${one.key}`, disabled: fixed || busy, "aria-describedby": `about-${one.key}${error ? ` wrong-${one.key}` : ""}`, "aria-invalid": error ? "true" : undefined };
  if (typeof one.value === "boolean") {
    return html`<input ...${shared} type="checkbox" class="switch" role="switch" checked=${one.value} onChange=${(event) => save(String(event.target.checked))} />`;
  }
  if (one.choices.length) {
    return html`<select ...${shared} class="input" value=${typed} onChange=${(event) => save(event.target.value)}>${one.choices.map((choice) => html`<option key=${choice} value=${choice} selected=${choice === typed}>${choice}</option>`)}</select>`;
  }
  const onKeyDown = (event) => {
    if (event.key === "Escape") reset();
    else if (event.key === "Enter" && (event.target.tagName === "INPUT" || event.ctrlKey || event.metaKey) && text !== typed) save(text);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const isWide = one.value !== null && typeof one.value === "object";
  const field = { ...shared, class: "input", value: text, placeholder: one.kind, spellcheck: "false", autocomplete: "off", onInput: (event) => setText(event.target.value), onKeyDown };
  return html`<div class="setting-edit">${isWide ? html`<textarea ...${field} class="input mono" rows=${Math.min(Math.max(text.split("\n").length, 1), 14)} />` : html`<input ...${field} />`}
    ${text !== typed && html`<span class="row"><${Button} kind="primary" busy=${busy} onClick=${() => save(text)}>Save<//><${Button} kind="quiet" onClick=${reset}>Cancel<//></span>`}</div>`;
}

/** A value as a person would type it. Lists and tables are JSON, which is YAML too. */
function asTyped(value) {
  if (value === null) return "null";
  if (typeof value !== "object") return String(value);
  const isShort = JSON.stringify(value).length < 60;
  return JSON.stringify(value, null, isShort ? 0 : 2);
}

function textOf(one) {
  return `${one.key} ${one.description} ${asTyped(one.value)} ${one.origin}`.toLowerCase();
}

function sectionOf(one) {
  return one.key.split(".")[0];
}

function grouped(list) {
  const groups = new Map();
  for (const one of list) groups.set(sectionOf(one), [...(groups.get(sectionOf(one)) ?? []), one]);
  return groups;
}
