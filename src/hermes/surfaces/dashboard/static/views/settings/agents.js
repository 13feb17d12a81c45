// Agents and commands from files: those of the home, and those of the folder in which the dashboard was started.
/** @import { ListedAgent, ShownFile } from "../../types/api.d.ts" */
import { api } from "../../app/api.js";
import { Empty, Problem, Tag } from "../../app/parts/basics.js";
import { Dialog } from "../../app/parts/dialog.js";
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
      <h2>Agents</h2>
      <p class="muted">A prompt with limits of its own. Use one with <code>/agent NAME</code> in a chat;
        make one with${" "}
        <code>hermes agent new</code>.</p>
      ${!list.length && html`<${Empty} icon="user" title="No agents">You have no agents of your own yet.<//>`}
      <ul class="plain lined">
        ${list.map(
          (one) => html`<li key=${one.name} class="tool-row">
            <div class="row">
              <button type="button" class="link" onClick=${() => setOpen(one.name)}>${one.name}</button>
              <${Tag}>${one.where}<//>
              ${one.mode && html`<${Tag}>${one.mode}<//>`}
              <span class="spring" />
              ${!one.usable && html`<${Tag} kind="warn">${one.problem ? "has a problem" : "waits for your trust"}<//>`}
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
        <dt>Model</dt><dd>${one.model || "that of the session"}</dd>
        <dt>Tools</dt><dd>${one.tools.join(", ") || "those of the session"}</dd>
        <dt>Mode</dt><dd>${one.mode || "that of the session"}</dd>
        <dt>File</dt><dd><code>${one.path || "built in"}</code></dd>
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
      <h2>Commands from files</h2>
      <p class="muted">Markdown files in <code>.hermes/commands</code> of the home or of
        <code>${folder}</code>. Each is a
        command with <code>/</code> in a chat.</p>
      ${!commands.length && html`<p class="muted">There are none.</p>`}
      <ul class="plain lined">
        ${commands.map(
          (one) => html`<li key=${one.path} class="tool-row">
            <div class="row"><code>/${one.name}</code><span class="spring" />
              ${!one.trusted && html`<${Tag} kind="warn">waits for your trust<//>`}</div>
            <p class="muted small">${one.description}</p>
          </li>`,
        )}
      </ul>
    </section>
  `;
}
