// Skills: what there is, how it is used, whether it is offered, and whether only the user may change it.
import { api, may } from "../../app/api.js";
import { Button, Empty, Icon, Tag, Time } from "../../app/parts/basics.js";
import { Dialog } from "../../app/parts/dialog.js";
import { plural } from "../../app/parts/format.js";
import { Markdown } from "../../app/parts/markdown.js";
import { trying } from "../../app/parts/toast.js";
import { navigate, pathTo } from "../../app/router.js";
import { html, useState } from "../../app/ui.js";
import { Loaded, useLoaded } from "../loading.js";

const ORIGINS = { bundled: ["", "came with Hermes"], agent: ["accent", "made by Hermes"], installed: ["", "installed"], user: ["good", "yours"] };

/** `open` is the name of the skill that is shown whole. */
export function Skills({ open }) {
  const skills = useLoaded(() => api.get("/api/skills"), []);
  const [words, setWords] = useState("");
  const change = async (skill, body) => {
    const answer = await trying(() => api.patch(`/api/skills/${encodeURIComponent(skill.name)}`, body));
    if (answer) skills.put(answer);
  };
  const shown = (skills.value?.skills ?? []).filter((one) => `${one.name} ${one.description}`.toLowerCase().includes(words.toLowerCase()));
  return html`<div class="stack"><label class="search-box"><${Icon} name="search" /><span class="unseen">Search the skills</span><input class="input" type="search" placeholder="Search the skills" value=${words} onInput=${(event) => setWords(event.target.value)} /></label>
    <${Loaded} of=${skills}>${() => (shown.length ? html`<ul class="plain skill-list">${shown.map((one) => html`<${Skill} key=${one.name} one=${one} change=${change} />`)}</ul>` : html`<${Empty} icon="learning" title="No skill">Nothing fits what you typed.<//>`)}<//>
    ${open && html`<${Whole} key=${open} name=${open} />`}</div>`;
}

function Skill({ one, change }) {
  const [kind, origin] = ORIGINS[one.origin] ?? ["", one.origin];
  const uses = [one.views && `read ${plural(one.views, "time")}`, one.commands && `called ${plural(one.commands, "time")}`].filter(Boolean).join(", ");
  const id = `skill-${one.name}`;
  return html`<li class="card skill" data-skill=${one.name}>
    <div class="grow"><div class="row wrap"><a id=${id} class="skill-name" href=${`#${pathTo("learning", "skills", one.name)}`}>${one.name}</a><${Tag} kind=${kind} title=${one.source}>${origin}<//>${one.pinned && html`<${Tag} kind="warn">pinned<//>`}</div>
      <p class="small">${one.description}</p>${one.problem && html`<p class="field-error">Not offered: ${one.problem}.</p>`}
      <p class="muted small">${uses ? html`${uses}, last <${Time} at=${one.last_used} />` : "not used yet"}</p></div>
    <div class="skill-switches"><${Button} kind="quiet" icon="pin" class=${one.pinned ? "pinned" : ""} aria-pressed=${String(one.pinned)} disabled=${!may("admin")} label=${one.pinned ? `Let Hermes change ${one.name} again` : `Pin ${one.name}: only you change it`} onClick=${() => change(one, { pinned: !one.pinned })} />
      <input type="checkbox" class="switch" role="switch" aria-label=${`Offer ${one.name}`} checked=${one.enabled} disabled=${!may("admin")} onChange=${(event) => change(one, { enabled: event.target.checked })} /></div>
  </li>`;
}

function Whole({ name }) {
  const text = useLoaded(async () => (await api.get(`/api/skills/${encodeURIComponent(name)}`)).text, [name]);
  const close = () => navigate("/learning/skills");
  return html`<${Dialog} title=${name} class="wide" onClose=${close}><${Loaded} of=${text}>${(words) => html`<${Markdown} text=${words} />`}<//><//>`;
}
