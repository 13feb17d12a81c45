// Hosts: the machines that share the store, what runs on each, and when it was last heard of.
/** @import { ListedHost, WaitingWork } from "../types/api.d.ts" */

import { api } from "../app/api.js";
import { Empty, Tag, Time } from "../app/parts/basics.js";
import { pathTo } from "../app/router.js";
import { t, withElements } from "../app/translation.js";
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
      <header class="page-head"><h1>${t("Hosts")}</h1></header>
      ${whenLoaded(
        list,
        ({ hosts, waiting }) => html`
          <${Machines} hosts=${hosts} />
          ${waiting.length > 0 && html`<${WaitingList} waiting=${waiting} />`}
        `,
      )}
    </div>
  `;
}

/** @param {{ hosts: ListedHost[] }} props */
function Machines({ hosts }) {
  if (!hosts.length)
    return html`
      <${Empty} icon="hosts" title=${t("No hosts yet")}>
        ${t("Start a gateway, a worker or a dashboard on any machine.")}
      <//>
    `;
  const names = [...new Set(hosts.map((one) => one.host))];
  const sessions = hosts.reduce((sum, one) => sum + one.sessions, 0);
  return html`
    <p class="muted">
      ${t("{count} machine", "{count} machines", { count: names.length })}, ${runningSessions(sessions)}</p>
    <div class="host-list">
      ${names.map((name) => {
        const list = hosts.filter((one) => one.host === name);
        return html`<${Machine} key=${name} name=${name} list=${list} />`;
      })}
    </div>
  `;
}

/** @param {number} count */
function runningSessions(count) {
  return t("{count} running session", "{count} running sessions", { count });
}

/** @type {Record<string, string>} */
const KINDS = { job: t("Job"), session: t("Session"), goal: t("Goal"), card: t("Card") };

/**
 * What only one host can do, while that host is away.
 * @param {{ waiting: WaitingWork[] }} props
 */
function WaitingList({ waiting }) {
  return html`
    <section class="card" aria-labelledby="waiting-work">
      <h2 id="waiting-work">${t("Waiting for a host")}</h2>
      <ul class="plain lined">
        ${waiting.map((one) => html`<${WaitingItem} key=${one.kind + one.id} one=${one} />`)}
      </ul>
      <p class="small muted">
        ${withElements(t("Start {worker} on that host, or move the work: {edit} or {resume}"), {
          worker: html`<code>hermes worker</code>`,
          edit: html`<code>hermes cron edit JOB --cwd DIR</code>`,
          resume: html`<code>hermes --resume SESSION</code>`,
        })}
      </p>
    </section>
  `;
}

/** @param {WaitingWork} one */
function pathOf(one) {
  if (one.kind === "job") return pathTo("schedules", one.id);
  if (one.kind === "card") return pathTo("board", one.board, one.id);
  return pathTo("chat", one.id);
}

/** @param {{ one: WaitingWork }} props */
function WaitingItem({ one }) {
  const path = pathOf(one);
  const time = html`<${Time} at=${one.seen} />`;
  return html`
    <li class="host-process">
      <div class="row">
        <span>${KINDS[one.kind] ?? one.kind}</span>
        <a href=${`#${path}`}>${one.name}</a>
        <span class="spring" />
        <${Tag} kind="warn">
          ${one.place ? t("waits for {host}", { host: one.place }) : t("waits for any worker")}
        <//>
      </div>
      <div class="row small muted">
        <span>${withElements(t("since {time}"), { time: html`<${Time} at=${one.since} />` })}</span>
        <span class="spring" />
        ${
          one.is_draining
            ? html`<span>${t("the host is draining")}</span>`
            : one.seen > 0 && html`<span>${withElements(t("host seen {time}"), { time })}</span>`
        }
      </div>
    </li>
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
        ${one.place && one.place !== one.host && html`<span class="muted small">${one.place}</span>`}
        ${one.version && html`<span class="muted small">${one.version}</span>`}
        <span class="spring" />
        ${one.is_live ? html`<${Tag} kind="good">${t("live")}<//>` : html`<${Tag} kind="warn">${t("not heard of")}<//>`}
      </div>
      <div class="row small muted">
        <span>${runningSessions(one.sessions)}</span>
        <span class="spring" />
        <span>${withElements(t("seen {time}"), { time: html`<${Time} at=${one.seen} />` })}</span>
      </div>
    </li>
  `;
}
