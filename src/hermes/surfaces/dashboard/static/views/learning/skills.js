// The skills: how often each is used, whether it is offered, and whether it is pinned.
/** @import { SkillChange, SkillRow } from "../../types/page.d.ts" */

import { api, may } from "../../app/api.js";
import { Button, Empty, Tag, Time } from "../../app/parts/basics.js";
import { Dialog } from "../../app/parts/dialog.js";
import { Markdown } from "../../app/parts/markdown.js";
import { tryTo } from "../../app/parts/toast.js";
import { linkTo, navigate } from "../../app/router.js";
import { t, withElements } from "../../app/translation.js";
import { html, useState } from "../../app/ui.js";
import { SearchBox } from "../inputs.js";
import { useLoaded, whenLoaded } from "../loading.js";

/** @typedef {(skill: SkillRow, body: SkillChange) => void} Change */

/** @type {Record<string, [string, string]>} */
const ORIGINS = {
  bundled: ["", t("bundled with Hermes")],
  agent: ["accent", t("made by Hermes")],
  installed: ["", t("installed")],
  user: ["good", t("yours")],
};

/**
 * `open` is the name of the skill that is shown whole.
 * @param {{ open: string }} props
 */
export function Skills({ open }) {
  const skills = useLoaded(() => api.get("/api/skills"), []);
  const [words, setWords] = useState("");
  /**
   * @param {SkillRow} skill
   * @param {SkillChange} body
   */
  const change = async (skill, body) => {
    const answer = await tryTo(() => api.patch(addressOf(skill.name), body));
    if (answer) skills.put(answer);
  };
  /** @param {SkillRow} one */
  const isWanted = (one) =>
    `${one.name} ${one.description}`.toLowerCase().includes(words.toLowerCase());
  return html`
    <div class="stack">
      <${SearchBox} label=${t("Search the skills")} value=${words} onInput=${setWords} />
      ${whenLoaded(skills, ({ skills: all }) => html`<${SkillList} list=${all.filter(isWanted)} change=${change} />`)}
      ${open && html`<${SkillText} key=${open} name=${open} />`}
    </div>
  `;
}

/** @param {{ list: SkillRow[], change: Change }} props */
function SkillList({ list, change }) {
  if (!list.length)
    return html`<${Empty} icon="learning" title=${t("No matching skills")}>${t("No skill matches your search.")}<//>`;
  return html`
    <ul class="plain skill-list">
      ${list.map((one) => html`<${Skill} key=${one.name} one=${one} change=${change} />`)}
    </ul>
  `;
}

/** @param {{ one: SkillRow, change: Change }} props */
function Skill({ one, change }) {
  const [kind, origin] = ORIGINS[one.origin] ?? ["", one.origin];
  const uses = [
    one.views && t("read {count} time", "read {count} times", { count: one.views }),
    one.commands && t("called {count} time", "called {count} times", { count: one.commands }),
  ]
    .filter(Boolean)
    .join(", ");
  const last = html`<${Time} at=${one.last_used} />`;
  return html`
    <li class="card skill" data-skill=${one.name}>
      <div class="grow">
        <div class="row wrap">
          <a id=${`skill-${one.name}`} class="skill-name" href=${linkTo("learning", "skills", one.name)}>${one.name}</a>
          <${Tag} kind=${kind} title=${one.source}>${origin}<//>
          ${one.pinned && html`<${Tag} kind="warn">${t("pinned")}<//>`}
        </div>
        <p class="small">${one.description}</p>
        ${one.problem && html`<p class="field-error">${t("Not offered: {problem}.", { problem: one.problem })}</p>`}
        <p class="muted small">
          ${uses ? withElements(t("{uses}, last used {time}"), { uses, time: last }) : t("not used yet")}</p>
      </div>
      <${Switches} one=${one} change=${(/** @type {SkillChange} */ body) => change(one, body)} />
    </li>
  `;
}

/** @param {{ one: SkillRow, change: (body: SkillChange) => void }} props */
function Switches({ one, change }) {
  const fixed = !may("admin");
  return html`
    <div class="skill-switches">
      <${Button}
        kind="quiet"
        icon="pin"
        class=${one.pinned ? "pinned" : ""}
        aria-pressed=${String(one.pinned)}
        disabled=${fixed}
        label=${
          one.pinned
            ? t("Let Hermes change {name}", { name: one.name })
            : t("Pin {name}: only you can change it", { name: one.name })
        }
        onClick=${() => change({ pinned: !one.pinned })}
      />
      <input
        type="checkbox"
        class="switch"
        role="switch"
        aria-label=${t("Offer {name}", { name: one.name })}
        checked=${one.enabled}
        disabled=${fixed}
        onChange=${(event) => change({ enabled: event.target.checked })}
      />
    </div>
  `;
}

/** @param {{ name: string }} props */
function SkillText({ name }) {
  const text = useLoaded(async () => (await api.get(addressOf(name))).text, [name]);
  const close = () => navigate("/learning/skills");
  return html`
    <${Dialog} title=${name} class="wide" onClose=${close}>
      ${whenLoaded(text, (words) => html`<${Markdown} text=${words} />`)}
    <//>
  `;
}

/**
 * @param {string} name
 * @returns {`/api/skills/${string}`}
 */
function addressOf(name) {
  return `/api/skills/${encodeURIComponent(name)}`;
}
