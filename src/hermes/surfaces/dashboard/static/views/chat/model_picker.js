// The choice of the model of a chat.
/** @import { Answer } from "../../types/page.d.ts" */
import { api } from "../../app/api.js";
import { Dialog, Icon, Loading } from "../../app/parts.js";
import { t } from "../../app/translation.js";
import { html, useEffect, useState } from "../../app/ui.js";

/**
 * Which model answers from the next message on.
 * @param {{ current: string | null, onChoose: (name: string) => void, onClose: () => void }} props
 */
export function ModelPicker({ current, onChoose, onClose }) {
  const [models, setModels] = useState(/** @type {Answer<"GET", "/api/models"> | null} */ (null));
  const [name, setName] = useState("");
  useEffect(() => {
    api
      .get("/api/models")
      .then(setModels, () => setModels({ current: "", label: "", choices: [] }));
  }, []);
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (name.trim()) onChoose(name.trim());
  };
  const wanted = name.trim().toLowerCase();
  const shown = (models?.choices ?? []).filter(
    (one) => one.name !== models?.current && one.name.toLowerCase().includes(wanted),
  );
  return html`<${Dialog} title=${t("Choose a model")} onClose=${onClose}><form class="stack"
    onSubmit=${submit}>
    <input class="input" aria-label=${t("Model")} placeholder=${t("provider:model, or part of a name below")} autofocus
      value=${name} onInput=${(event) => setName(event.target.value)} />
    ${
      models === null
        ? html`<${Loading} />`
        : html`<ul class="choices">
      <li><button type="button" class="more-row" aria-pressed=${!current ? "true" : "false"}
        onClick=${() => onChoose("")}><${Icon} name=${!current ? "check" : "settings"} />
          ${models.current || t("none")}<span class="muted">${t("from the settings")}</span></button></li>
      ${shown.map(
        (one) => html`<li key=${one.name}><button type="button" class="more-row"
        aria-pressed=${current === one.name ? "true" : "false"} onClick=${() => onChoose(one.name)}><${Icon}
          name=${current === one.name ? "check" : "right"} />${one.name}<span class="muted">${one.source}</span>
            </button></li>`,
      )}
    </ul>`
    }
    <p class="muted">${t("Used in this session from your next message on.")}</p></form><//>`;
}
