// Hosts: the machines that share the store, what runs on each, and when it was last heard of.
/** @import { ListedHost } from "../types/api.d.ts" */
import { api } from "../app/api.js";
import { Empty, Tag, Time } from "../app/parts/basics.js";
import { plural } from "../app/parts/format.js";
import { html, useEffect, useStyle } from "../app/ui.js";
import { useLoaded, whenLoaded } from "./loading.js";

const REFRESH_MS = 5000;

export default function Hosts() {
  const ready = useStyle("views/hosts.css");
  const list = useLoaded(() => api.get("/api/commands/hosts.list"), []);
  useEffect(() => {
    const timer = setInterval(() => !document.hidden && list.again(), REFRESH_MS);
    return () => clearInterval(timer);
  }, [list.again]);
  if (!ready) return null;
  return html`
    <div class="page">
      <header class="page-head"><h1>Hosts</h1></header>
      ${whenLoaded(list, ({ hosts }) => html`<${Machines} hosts=${hosts} />`)}
    </div>
  `;
}

/** @param {{ hosts: ListedHost[] }} props */
function Machines({ hosts }) {
  if (!hosts.length)
    return html`
      <${Empty} icon="hosts" title="No hosts yet">
        Start a gateway, a worker or a dashboard on any machine.
      <//>
    `;
  const names = [...new Set(hosts.map((one) => one.host))];
  const sessions = hosts.reduce((sum, one) => sum + one.sessions, 0);
  return html`
    <p class="muted">${plural(names.length, "machine")}, ${plural(sessions, "running session")}</p>
    <div class="host-list">
      ${names.map((name) => {
        const list = hosts.filter((one) => one.host === name);
        return html`<${Machine} key=${name} name=${name} list=${list} />`;
      })}
    </div>
  `;
}

/** @param {{ name: string, list: ListedHost[] }} props */
function Machine({ name, list }) {
  return html`
    <section class="card host" aria-label=${name}>
      <h2>${name}</h2>
      <ul class="plain lined">
        ${list.map((one) => html`<${Process} key=${one.process} one=${one} />`)}
      </ul>
    </section>
  `;
}

/** @param {{ one: ListedHost }} props */
function Process({ one }) {
  return html`
    <li class="host-process">
      <div class="row">
        <strong>${one.role}</strong>
        ${one.version && html`<span class="muted small">${one.version}</span>`}
        <span class="spring" />
        ${one.is_live ? html`<${Tag} kind="good">live<//>` : html`<${Tag} kind="warn">not heard of<//>`}
      </div>
      <div class="row small muted">
        <span>${plural(one.sessions, "running session")}</span>
        <span class="spring" />
        <span>seen <${Time} at=${one.seen} /></span>
      </div>
    </li>
  `;
}
