// The typed settings: each with its meaning, its value and where that comes from; searched, and shown by section.
/** @import { Answer, Ref, SettingRow } from "../../types/page.d.ts" */
import { api } from "../../app/api.js";
import { useKeys } from "../../app/keys.js";
import { Empty } from "../../app/parts/basics.js";
import { t, withElements } from "../../app/translation.js";
import { html, kept, useElement, useMemo, useState } from "../../app/ui.js";
import { SearchBox } from "../inputs.js";
import { useLoaded, whenLoaded } from "../loading.js";
import { asTyped, Setting } from "./setting.js";
import { GROUPS, groupOf, sectionTitle, settingLabel } from "./setting_words.js";

/**
 * @typedef {object} SectionsProps
 * @property {Answer<"GET", "/api/settings">} value
 * @property {string} words
 * @property {boolean} changedOnly
 * @property {boolean} showsKeys
 * @property {() => Promise<void>} again
 */

export function SettingsList() {
  const settings = useLoaded(() => api.get("/api/settings"), []);
  const [words, setWords] = useState("");
  const [changedOnly, setChangedOnly] = useState(false);
  const [showsKeys, setShowsKeys] = useState(() => kept.get("settings.keys") === "on");
  /** @param {boolean} on */
  const showKeys = (on) => {
    kept.set("settings.keys", on ? "on" : null);
    setShowsKeys(on);
  };
  const search = /** @type {Ref<HTMLInputElement>} */ (useElement());
  useKeys([
    {
      keys: "/",
      label: t("Search the settings"),
      group: t("Settings"),
      run: () => search.current.select(),
    },
  ]);
  return html`
    <div class="stack">
      <div class="toolbar" role="search">
        <${SearchBox}
          field=${search}
          label=${t("Search the settings")}
          placeholder=${t("Search by name, meaning or value")}
          value=${words}
          onInput=${setWords}
        />
        <label class="check">
          <input type="checkbox" checked=${changedOnly} onChange=${(event) => setChangedOnly(event.target.checked)} />
          ${t("Only changed settings")}
        </label>
        <label class="check">
          <input type="checkbox" checked=${showsKeys} onChange=${(event) => showKeys(event.target.checked)} />
          ${t("Show keys")}
        </label>
      </div>
      ${whenLoaded(
        settings,
        (value) => html`
          <${Sections} value=${value} words=${words} changedOnly=${changedOnly}
            showsKeys=${showsKeys} again=${settings.again} />
        `,
      )}
    </div>
  `;
}

/** @param {SectionsProps} props */
function Sections({ value, words, changedOnly, showsKeys, again }) {
  const sections = useMemo(() => {
    const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
    const shown = value.settings.filter(
      (one) =>
        (!changedOnly || one.origin !== "default") &&
        wanted.every((word) => textOf(one).includes(word)),
    );
    return inOrder([...grouped(shown)]);
  }, [words, changedOnly, value]);
  return html`
    <p class="muted small">
      ${withElements(t("Settings are stored in {file}."), { file: html`<code>${value.file}</code>` })}${" "}
      ${withElements(
        t("Keys and passwords are not among them: they are in {file}, and {command} stores them."),
        {
          file: html`<code>.env</code>`,
          command: html`<code>hermes config set</code>`,
        },
      )}
    </p>
    ${
      !sections.length &&
      html`<${Empty} icon="search" title=${t("No matching settings")}>${t("No setting matches your search.")}<//>`
    }
    <div class="with-toc">
      <${Contents} names=${sections.map(([name]) => name)} />
      <div class="stack">
        ${sections.map(
          ([name, list]) => html`
          <${Section} key=${name} name=${name} about=${value.sections[name]} list=${list}
            showsKeys=${showsKeys} again=${again} />
        `,
        )}
      </div>
    </div>
  `;
}

/** @param {{ names: string[] }} props */
function Contents({ names }) {
  /** @param {string} name */
  const go = (name) =>
    document
      .getElementById(`section-${name}`)
      ?.scrollIntoView({ block: "start", behavior: "smooth" });
  return html`
    <nav class="toc" aria-label=${t("Sections")}>
      ${GROUPS.map(([group], index) => {
        const inside = names.filter((name) => groupOf(name) === index);
        return (
          inside.length > 0 &&
          html`
          <p key=${group} class="toc-group">${group}</p>
          ${inside.map(
            (name) => html`
            <button key=${name} type="button" class="link" onClick=${() => go(name)}>${sectionTitle(name)}</button>
          `,
          )}
        `
        );
      })}
    </nav>
  `;
}

/**
 * @param {{ name: string, about: string, list: SettingRow[], showsKeys: boolean, again: () => Promise<void> }} props
 */
function Section({ name, about, list, showsKeys, again }) {
  return html`
    <section id=${`section-${name}`} class="card setting-section" aria-labelledby=${`title-${name}`}>
      <header>
        <h2 id=${`title-${name}`}>${sectionTitle(name)}</h2>
        ${about && html`<p class="muted">${about}</p>`}
      </header>
      ${list.map((one) => html`<${Setting} key=${one.key} one=${one} showsKey=${showsKeys} again=${again} />`)}
    </section>
  `;
}

/** @param {SettingRow} one */
function textOf(one) {
  return `${one.key} ${settingLabel(one.key)} ${one.description} ${asTyped(one.value)} ${one.origin}`.toLowerCase();
}

/**
 * Sections by their group, in its order.
 * @param {[string, SettingRow[]][]} sections
 */
function inOrder(sections) {
  const place = (/** @type {string} */ name) => {
    const group = groupOf(name);
    return group * 100 + GROUPS[group][1].indexOf(name);
  };
  return sections.sort(([one], [other]) => place(one) - place(other));
}

/** @param {SettingRow[]} list */
function grouped(list) {
  const groups = new Map();
  for (const one of list) {
    const [section] = one.key.split(".");
    groups.set(section, [...(groups.get(section) ?? []), one]);
  }
  return groups;
}
