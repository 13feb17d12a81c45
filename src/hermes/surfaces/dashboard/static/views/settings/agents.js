// Agents and commands from files: those of the home, and those of the folder in which the dashboard was started.
/** @import { ListedAgent, ShownFile } from "../../types/api.d.ts" */
import { api } from "../../app/api.js";
import { Empty, Problem, Tag } from "../../app/parts/basics.js";
import { Dialog } from "../../app/parts/dialog.js";
import { t, withElements } from "../../app/translation.js";
import { html, useState } from "../../app/ui.js";
import { useLoaded, whenLoaded } from "../loading.js";

export function Agents() {
  const agents = useLoaded(() => api.get("/api/commands/agent.list"), []);
  const project = useLoaded(() => api.get("/api/commands/project.show"), []);
  return html`
    <div class="stack">
      ${whenLoaded(agents, ({ agents: list }) => html`<${AgentList} list=${list} />`)}
      ${whenLoaded(project, ({ files, folder }) => html`<${CommandList} files=${files} folder=${folder} />`)}
    </div>
  `;
}

/** @param {{ list: ListedAgent[] }} props */
function AgentList({ list }) {
  const [open, setOpen] = useState("");
  return html`
    <section class="card stack tight">
      <h2>${t("Agents")}</h2>
      <p class="muted">${t("A prompt with limits of its own.")}${" "}
        ${withElements(t("Use one with {use} in a chat; make one with {make}."), {
          use: html`<code>/agent NAME</code>`,
          make: html`<code>hermes agent new</code>`,
        })}</p>
      ${
        !list.length &&
        html`<${Empty} icon="user" title=${t("No agents")}>${t("You have no agents of your own yet.")}<//>`
      }
      <ul class="plain lined">
        ${list.map(
          (one) => html`<li key=${one.name} class="tool-row">
            <div class="row">
              <button type="button" class="link" onClick=${() => setOpen(one.name)}>${one.name}</button>
              <${Tag}>${one.where}<//>
              ${one.mode && html`<${Tag}>${one.mode}<//>`}
              <span class="spring" />
              ${
                !one.usable &&
                html`<${Tag} kind="warn">
                  ${one.problem ? t("has a problem") : t("waits for your trust")}
                <//>`
              }
            </div>
            <p class="muted small">${one.problem || one.description}</p>
          </li>`,
        )}
      </ul>
      ${open && html`<${AgentDialog} name=${open} onClose=${() => setOpen("")} />`}
    </section>
  `;
}

/** @param {{ name: string, onClose: () => void }} props */
function AgentDialog({ name, onClose }) {
  const agent = useLoaded(() => api.get("/api/commands/agent.show", { name }), [name]);
  return html`<${Dialog} title=${name} onClose=${onClose}>${whenLoaded(
    agent,
    (one) => html`
      <p>${one.description}</p>
      <dl class="facts">
        <dt>${t("Model")}</dt><dd>${one.model || t("that of the session")}</dd>
        <dt>${t("Tools")}</dt><dd>${one.tools.join(", ") || t("those of the session")}</dd>
        <dt>${t("Mode")}</dt><dd>${one.mode || t("that of the session")}</dd>
        <dt>${t("File")}</dt><dd><code>${one.path || t("built in")}</code></dd>
      </dl>
      ${one.problems.map((text) => html`<${Problem} key=${text} error=${{ message: text }} />`)}
      <pre tabindex="0">${one.prompt}</pre>
    `,
  )}<//>`;
}

/** @param {{ files: ShownFile[], folder: string }} props */
function CommandList({ files, folder }) {
  const commands = files.filter((one) => one.kind === "command");
  return html`
    <section class="card stack tight">
      <h2>${t("Commands from files")}</h2>
      <p class="muted">${withElements(
        t("Markdown files in {commands} of the home or of {folder}."),
        {
          commands: html`<code>.hermes/commands</code>`,
          folder: html`<code>${folder}</code>`,
        },
      )}${" "}
        ${withElements(t("Each is a command with {slash} in a chat."), { slash: html`<code>/</code>` })}</p>
      ${!commands.length && html`<p class="muted">${t("There are none.")}</p>`}
      <ul class="plain lined">
        ${commands.map(
          (one) => html`<li key=${one.path} class="tool-row">
            <div class="row"><code>/${one.name}</code><span class="spring" />
              ${!one.trusted && html`<${Tag} kind="warn">${t("waits for your trust")}<//>`}</div>
            <p class="muted small">${one.description}</p>
          </li>`,
        )}
      </ul>
    </section>
  `;
}
