// What works in the background for a session, live: child agents, background tasks and reviews.
/** @import { AgentOverview, ChildStatus, Delivery, FieldEvent } from "../../types/page.d.ts" */
import { api, may, sessionPath } from "../../app/api.js";
import { Button, Dialog, duration, money, Tag, tryTo } from "../../app/parts.js";
import { linkTo } from "../../app/router.js";
import { t } from "../../app/translation.js";
import { html, useEffect, useState } from "../../app/ui.js";
import { useBusEvents, useLiveReload } from "../live_reload.js";
import { useLoaded, whenLoaded } from "../loading.js";
import { stop } from "./commands.js";
import { CHILD_STATES } from "./transcript.js";

const PATTERN =
  "agent.turn.*,agent.tool.started,agent.tool.finished,agent.approval.*,agent.question.*,agent.child.*";
const TICK_MS = 1000; // milliseconds

/** @type {Record<string, string>} */
const STATE_KIND = { working: "accent", "asks you": "warn", done: "good" };

/**
 * Without a session, everything that works now is listed.
 * @param {{ session: string, onClose: () => void }} props
 */
export default function BackgroundWork({ session, onClose }) {
  const found = useLoaded(async () => {
    const listed = await api.get("/api/commands/agents.list", session ? { session } : {});
    return { overview: /** @type {AgentOverview} */ (listed), at: Date.now() };
  }, [session]);
  useLiveReload(useBusEvents(PATTERN), () => true, found.again);
  return html`<${Dialog} title=${t("Background work")} class="wide" onClose=${onClose}>
    ${whenLoaded(found, ({ overview, at }) =>
      overview.children.length
        ? html`<ul class="background-work">${overview.children.toReversed().map(
            (child) => html`<${BackgroundChild} key=${child.id} child=${child} at=${at}
              again=${found.again} onClose=${onClose} />`,
          )}</ul>`
        : html`<p class="muted">${t("Nothing is running in the background.")}</p>`,
    )}
  <//>`;
}

/**
 * `at` is when its state was read, in milliseconds.
 * @param {{ child: ChildStatus, at: number, again: () => Promise<void>, onClose: () => void }} props
 */
function BackgroundChild({ child, at, again, onClose }) {
  const runs = child.state === "working" || child.state === "asks you";
  const end = async () => {
    await stop(child.id);
    await again();
  };
  return html`<li>
    <div class="row">
      <${Tag} class=${`tag fixed ${STATE_KIND[child.state] ?? "bad"}`}>${CHILD_STATES[child.state] ?? child.state}<//>
      <a class="background-title" href=${linkTo("chat", child.id)} onClick=${onClose}>${child.title || child.id}</a>
      <span class="muted small nowrap"><${Elapsed} seconds=${child.seconds} at=${at} runs=${runs} />${
        child.cost_usd > 0 && ` · ${money(child.cost_usd)}`
      }</span>
      ${runs && may("chat") && html`<${Button} kind="quiet" icon="stop" onClick=${end}>${t("Stop")}<//>`}
    </div>
    ${child.doing && html`<p class="background-doing">${child.doing}</p>`}
    ${may("chat") && html`<${Tell} child=${child} runs=${runs} again=${again} />`}
  </li>`;
}

/** @param {{ seconds: number, at: number, runs: boolean }} props */
function Elapsed({ seconds, at, runs }) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    if (!runs) return;
    const timer = setInterval(() => setNow(Date.now()), TICK_MS);
    return () => clearInterval(timer);
  }, [runs]);
  const since = runs ? Math.max(0, now - at) / 1000 : 0;
  return html`${duration(Math.max(1, Math.round(seconds + since)))}`;
}

/**
 * A message: into its turn while it works, or as its next task.
 * @param {{ child: ChildStatus, runs: boolean, again: () => Promise<void> }} props
 */
function Tell({ child, runs, again }) {
  const [text, setText] = useState("");
  const send = async (/** @type {Event} */ event) => {
    event.preventDefault();
    if (!text.trim()) return;
    /** @type {Delivery} */
    const delivery = runs ? "steer" : "queue";
    const path = sessionPath(child.id, "messages");
    if (!(await tryTo(() => api.post(path, { text, delivery })))) return;
    setText("");
    await again();
  };
  return html`<form class="background-tell" onSubmit=${send}>
    <input class="input" aria-label=${t("Tell it something")} placeholder=${t("Tell it something")} value=${text}
      onInput=${(/** @type {FieldEvent} */ event) => setText(event.target.value)} />
    <button type="submit" class="button" disabled=${!text.trim()}>${t("Send")}</button>
  </form>`;
}
