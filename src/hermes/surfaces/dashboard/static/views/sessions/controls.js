// Moving through a timeline: playing, stepping, sliding, how fast; and which kinds of steps are shown.
/** @import { Player } from "./player.js" */
/** @import { StepLog } from "./steps.js" */
/** @import { Step } from "../../types/page.d.ts" */
import { Button } from "../../app/parts/basics.js";
import { clock, inFull, money } from "../../app/parts/format.js";
import { t } from "../../app/translation.js";
import { html } from "../../app/ui.js";
import { Options } from "../inputs.js";
import { KINDS } from "./steps.js";

const SPEEDS = [1, 4, 16, 64].map((speed) => [speed, `${speed}×`]);

/** @param {{ player: Player, steps: Step[], step: Step, log: StepLog }} props */
export function Controls({ player, steps, step, log }) {
  const { at, go, playing, toggle } = player;
  const last = steps.length - 1;
  const place = t("{place} of {total}", { place: at + 1, total: steps.length });
  const when = clock(step.ts);
  const turn = step.turn
    ? t("turn {turn} of {total}", { turn: step.turn, total: log.turns.length })
    : t("before the first turn");
  const spent = t("{cost} · {number} token so far", "{cost} · {number} tokens so far", {
    cost: money(step.cost),
    count: step.tokens,
    number: inFull(step.tokens),
  });
  return html`
    <div class="controls">
      <${Button}
        icon=${playing ? "pause" : "play"}
        kind="primary"
        label=${playing ? t("Pause") : t("Play")}
        onClick=${toggle}
      />
      <${Button} kind="quiet" icon="left" label=${t("Step back")} onClick=${() => go(at - 1)} disabled=${at === 0} />
      <input
        class="slider"
        type="range"
        min="0"
        max=${last}
        value=${at}
        aria-label=${t("Position in the session")}
        aria-valuetext=${`${place}, ${step.title}, ${when}`}
        onInput=${(event) => go(Number(event.target.value))}
      />
      <${Button} kind="quiet" icon="right" label=${t("Step forward")} onClick=${() => go(at + 1)}
        disabled=${at === last} />
      <${Speed} player=${player} />
      <p class="whereabouts">
        <span>${place}</span>
        <span>${when}</span>
        <span>${turn}</span>
        <span class="spent">${spent}</span>
      </p>
    </div>
  `;
}

/** @param {{ player: Player }} props */
function Speed({ player: { speed, setSpeed } }) {
  return html`
    <label class="speed">
      <span class="unseen">${t("Speed")}</span>
      <select class="input" value=${speed} onChange=${(event) => setSpeed(Number(event.target.value))}>
        <${Options} choices=${SPEEDS} value=${speed} />
      </select>
    </label>
  `;
}

/**
 * Which kinds there are, in their colours; each can be hidden.
 * @param {{ log: StepLog, hidden: Set<string>, toggle: (kind: string) => void }} props
 */
export function Kinds({ log: { numbers }, hidden, toggle }) {
  const present = Object.entries(KINDS).filter(([kind]) => numbers[kind]);
  return html`
    <div class="kinds" role="group" aria-label=${t("Kinds of steps")}>
      ${present.map(
        ([kind, { label }]) => html`
        <button
          key=${kind}
          type="button"
          class=${`kind kind-${kind}`}
          aria-pressed=${hidden.has(kind) ? "false" : "true"}
          onClick=${() => toggle(kind)}
        >
          <i aria-hidden="true" />${label}<span class="number">${numbers[kind]}</span>
        </button>
      `,
      )}
    </div>
  `;
}
