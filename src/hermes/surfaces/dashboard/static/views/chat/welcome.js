// A new chat: suggestions, and the folder it will work in.
import { api, may } from "../../app/api.js";
import { Icon, Words } from "../../app/parts.js";
import { t } from "../../app/translation.js";
import { fileAddress, html, useRef, useState } from "../../app/ui.js";

const IDEAS = [
  {
    icon: "folder",
    title: t("Look around"),
    text: t("What is in this folder, and how is it organized?"),
  },
  {
    icon: "tool",
    title: t("Fix something"),
    text: t("Run the tests and fix what fails. Tell me what was wrong."),
  },
  {
    icon: "globe",
    title: t("Research"),
    text: `${t("Find out what changed in the latest release of")} `,
  },
  { icon: "thought", title: t("Plan"), text: `${t("Help me plan this:")} ` },
];

/**
 * @param {object} props
 * @param {string} [props.problem]
 * @param {(text: string) => void} props.onIdea
 * @param {string} props.folder
 * @param {(folder: string) => void} props.setFolder
 */
export function Welcome({ problem = "", onIdea, folder, setFolder }) {
  const [folders, setFolders] = useState(/** @type {string[]} */ ([]));
  const asked = useRef(false);
  const askFolders = () => {
    if (asked.current) return;
    asked.current = true;
    api.get("/api/sessions", { limit: 50 }).then(
      (answer) =>
        setFolders(
          [...new Set(answer.sessions.map((one) => one.cwd).filter(Boolean))].slice(0, 12),
        ),
      () => {
        asked.current = false;
      },
    );
  };
  return html`<div class="welcome">
    <img src=${fileAddress("favicon.svg")} alt="" width="52" height="52" /><h1>${t("What should we work on?")}</h1>
    ${
      problem &&
      html`<p class="note warn" role="status"><${Icon} name="warn" size=${16} /><span>
      <${Words} text=${problem} />
      ${may("admin") && html` <a href="#/settings/models">${t("Connect a model")}</a>`}</span></p>`
    }
    <ul class="ideas">${IDEAS.map(
      (idea) => html`<li key=${idea.title}><button type="button"
      onClick=${() => onIdea(idea.text)}><${Icon} name=${idea.icon} /><strong>${idea.title}</strong><span
        class="muted">${idea.text.replace(/ $/, " …")}</span></button></li>`,
    )}</ul>
    <label class="folder"><span class="muted">${t("Working folder")}</span><input class="input mono" list="folders"
      placeholder=${t("the folder the dashboard was started in")} value=${folder}
        onFocus=${askFolders} onInput=${(event) => setFolder(event.target.value)} /><datalist id="folders">
          ${folders.map((one) => html`<option key=${one} value=${one} />`)}</datalist></label>
  </div>`;
}
