// The timeline of a session: scrub, step or play through what was said, done and asked, with what it had cost by then.
import { api, may } from "../../app/api.js";
import { useKeys } from "../../app/keys.js";
import { Button, Empty, Icon, Loading, Problem, Tag, Time } from "../../app/parts/basics.js";
import { clock, count, money, plural } from "../../app/parts/format.js";
import { navigate, pathTo } from "../../app/router.js";
import { html, useEffect, useMemo, useRef, useState } from "../../app/ui.js";
import { Rows } from "../rows.js";
import { useLoaded } from "../loading.js";
import { addressOf, remove, rename, titleOf } from "./actions.js";
import { Details } from "./details.js";
import { wordsOf } from "./marked.js";
import { usePlayer } from "./player.js";
import { useStory } from "./stories.js";
import { KINDS } from "./story.js";
import { Strip } from "./strip.js";

const ROW = 52; // pixels
const SETTLE = 400; // milliseconds before the place is in the address

export function Timeline({ id, route }) {
  const { story, version, state, gone } = useStory(id);
  const turns = state === "replaying" ? "" : `${story.turns.length} ${story.turns.at(-1)?.reason}`;
  const about = useLoaded(() => api.get(addressOf({ id })), [id, turns]);
  const children = useLoaded(async () => (await api.get(addressOf({ id }, "children"))).sessions, [id, turns]);
  const [hidden, setHidden] = useState(() => new Set());
  const steps = useMemo(() => story.steps.filter((step) => !hidden.has(step.kind)), [version, hidden]);
  const player = usePlayer(steps, { ready: state !== "replaying", seq: Number(route.query.get("at")) || 0 });
  const step = steps[player.at];
  usePlace(id, route, step, player.moved);
  useTimelineKeys(player, story, steps);
  if (gone) return html`<${Empty} icon="trash" title="This session is gone">It was deleted. <a href="#/sessions">Back to the sessions</a>.<//>`;
  if (about.error && !about.value) return html`<div class="page"><${Problem} error=${about.error} retry=${about.again} /></div>`;
  const toggle = (kind) => setHidden((was) => (was.has(kind) ? new Set([...was].filter((one) => one !== kind)) : new Set([...was, kind])));
  return html`<div class="page timeline">
    <${Head} session=${about.value?.session ?? { id, title: "" }} detail=${about.value} about=${about} story=${story} children=${children.value ?? []} />
    ${!step ? (state === "replaying" ? html`<${Loading} />` : html`<${Kinds} story=${story} hidden=${hidden} toggle=${toggle} /><${Empty} icon="sessions" title="Nothing to show">Nothing happened here yet, or everything is hidden.<//>`)
      : html`<section class="card scrubber" aria-label="Timeline">
        <${Strip} steps=${steps} story=${story} at=${player.at} onMove=${player.go} />
        <${Controls} player=${player} steps=${steps} step=${step} story=${story} />
        <${Kinds} story=${story} hidden=${hidden} toggle=${toggle} />
      </section>
      <div class="timeline-parts">
        <${Rows} class="card step-rows" items=${steps} height=${ROW} reveal=${player.at} label="Steps of the session"
          row=${(one, index) => html`<${StepRow} key=${one.seq} step=${one} current=${index === player.at} onPick=${() => player.go(index)} />`} />
        <${Details} step=${step} pattern=${wordsOf(route.query.get("q") ?? "")} />
      </div>`}
  </div>`;
}

function Head({ session, detail, about, story, children }) {
  const changed = async (work) => (await work) && about.again();
  const deleted = async () => (await remove(session)) && navigate("/sessions");
  return html`<header class="timeline-head">
    <a class="button quiet bare" href="#/sessions" aria-label="All sessions" title="All sessions"><${Icon} name="left" /></a>
    <div class="timeline-title"><h1>${titleOf(session)}</h1>
      <p class="session-meta"><span>${session.surface}</span>${session.model && html`<span>${session.model}</span>`}${session.cwd && html`<span class="session-cwd" title=${session.cwd}>${session.cwd}</span>`}
        ${session.created && html`<${Time} at=${session.created} />`}${detail?.running && html`<${Tag} kind="accent">at work<//>`}${detail?.waiting.length > 0 && html`<${Tag} kind="warn">waits for you<//>`}</p>
      ${(children.length > 0 || session.kind === "child" || session.kind === "branch") && html`<nav class="family" aria-label="Related sessions">
        ${session.parent && html`<a href=${`#${pathTo("sessions", session.parent)}`}><${Icon} name="up" size=${14} />${session.kind === "branch" ? "Branched from" : "Works for"} this session</a>`}
        ${children.map((child) => html`<a key=${child.id} href=${`#${pathTo("sessions", child.id)}`}><${Icon} name="branch" size=${14} />${titleOf(child)}</a>`)}</nav>`}
    </div>
    <div class="timeline-sum"><strong>${money(story.cost)}</strong><span>${count(story.tokens)} tokens · ${plural(story.turns.length, "turn")}</span>${story.unpriced > 0 && html`<span>${plural(story.unpriced, "call")} of unknown price</span>`}</div>
    <div class="session-actions always">
      <a class="button" href=${`#${pathTo("chat", session.id)}`}><${Icon} name="chat" />Open in chat</a>
      ${may("chat") && html`<${Button} kind="quiet" icon="edit" label="Rename" onClick=${() => changed(rename(session))} />`}
      <a class="button quiet bare" href=${addressOf(session, "export")} download aria-label="Export" title="Export"><${Icon} name="download" /></a>
      ${may("admin") && html`<${Button} kind="quiet" icon="trash" label="Delete" onClick=${deleted} />`}
    </div>
  </header>`;
}

function Controls({ player, steps, step, story }) {
  const place = `${player.at + 1} of ${steps.length}`;
  const when = clock(step.ts);
  return html`<div class="controls">
    <${Button} icon=${player.playing ? "pause" : "play"} kind="primary" label=${player.playing ? "Pause" : "Play"} onClick=${player.toggle} />
    <${Button} kind="quiet" icon="left" label="Step back" onClick=${() => player.go(player.at - 1)} disabled=${player.at === 0} />
    <input class="slider" type="range" min="0" max=${steps.length - 1} value=${player.at} aria-label="Place in the session"
      aria-valuetext=${`${place}, ${step.title}, ${when}`} onInput=${(event) => player.go(Number(event.target.value))} />
    <${Button} kind="quiet" icon="right" label="Step on" onClick=${() => player.go(player.at + 1)} disabled=${player.at === steps.length - 1} />
    <label class="speed"><span class="unseen">Speed</span><select class="input" value=${player.speed} onChange=${(event) => player.setSpeed(Number(event.target.value))}>
      ${[1, 4, 16, 64].map((speed) => html`<option key=${speed} value=${speed} selected=${speed === player.speed}>${speed}×</option>`)}</select></label>
    <p class="whereabouts"><span>${place}</span><span>${when}</span><span>${step.turn ? `turn ${step.turn} of ${story.turns.length}` : "before the first turn"}</span>
      <span class="spent">${money(step.cost)} · ${step.tokens.toLocaleString("en")} tokens so far</span></p>
  </div>`;
}

/** Which kinds there are, in their colours; each can be hidden. */
function Kinds({ story, hidden, toggle }) {
  const numbers = story.numbers;
  return html`<div class="kinds" role="group" aria-label="What is shown">${Object.entries(KINDS).filter(([kind]) => numbers[kind]).map(([kind, { label }]) => html`<button key=${kind} type="button"
    class=${`kind kind-${kind}`} aria-pressed=${hidden.has(kind) ? "false" : "true"} onClick=${() => toggle(kind)}><i aria-hidden="true" />${label}<span class="number">${numbers[kind]}</span></button>`)}</div>`;
}

function StepRow({ step, current, onPick }) {
  return html`<button type="button" class=${`step-row kind-${step.kind}`} aria-current=${current ? "step" : undefined} onClick=${onPick} tabindex=${current ? 0 : -1}>
    <i aria-hidden="true" /><span class="step-title">${step.title}</span><time>${clock(step.ts)}</time><span class="step-text">${step.text.slice(0, 200)}</span>
  </button>`;
}

/** Keeps the place in the address, once it has been moved to and rests. */
function usePlace(id, route, step, moved) {
  const query = useRef(route.query);
  query.current = route.query;
  useEffect(() => {
    if (!step || !moved) return undefined;
    const timer = setTimeout(() => {
      const next = new URLSearchParams(query.current);
      next.set("at", step.seq);
      navigate(`${pathTo("sessions", id)}?${next}`, { replace: true });
    }, SETTLE);
    return () => clearTimeout(timer);
  }, [step?.seq, moved]);
}

function useTimelineKeys(player, story, steps) {
  const group = "Timeline";
  const turn = (direction) => () => {
    const here = steps[player.at]?.index ?? 0;
    const starts = story.turns.map((one) => one.from);
    const target = direction > 0 ? starts.find((from) => from > here) : starts.findLast((from) => from < here);
    const found = target === undefined ? (direction > 0 ? steps.length - 1 : 0) : steps.findIndex((step) => step.index >= target);
    player.go(found);
  };
  useKeys([
    { keys: " ", label: "Play or pause", group, run: (event) => (event.target.closest?.("button, a") ? false : player.toggle()) },
    { keys: "ArrowLeft", label: "Step back", group, run: () => player.go(player.at - 1) },
    { keys: "ArrowRight", label: "Step on", group, run: () => player.go(player.at + 1) },
    { keys: "k", label: "Step back", group, hidden: true, run: () => player.go(player.at - 1) },
    { keys: "j", label: "Step on", group, hidden: true, run: () => player.go(player.at + 1) },
    { keys: "Shift+ArrowLeft", label: "Turn before", group, run: turn(-1) },
    { keys: "Shift+ArrowRight", label: "Turn after", group, run: turn(1) },
    { keys: "Home", label: "To the beginning", group, run: () => player.go(0) },
    { keys: "End", label: "To the end", group, run: () => player.go(steps.length - 1) },
  ]);
}
