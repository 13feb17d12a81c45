// MCP servers: what they offer, adding and removing one, trying it, and signing in at it.
/** @import { Failure, FieldEvent, McpServer } from "../../types/page.d.ts" */
import { api, asFailure, inSentences, may } from "../../app/api.js";
import { Button, Empty, Tag } from "../../app/parts/basics.js";
import { confirm } from "../../app/parts/dialog.js";
import { plural } from "../../app/parts/format.js";
import { toast, tryTo } from "../../app/parts/toast.js";
import { html, useEffect, useState } from "../../app/ui.js";
import { FieldError } from "../inputs.js";
import { useLoaded, whenLoaded } from "../loading.js";

const POLL_MS = 2000;
/** @type {Record<string, string>} */
const STATES = { connected: "good", failed: "bad", connecting: "warn" };
/** @type {Record<string, [string, string]>} */
const LOGINS = { "signed in": ["good", "signed in"], ended: ["warn", "login expired"] };

export function Servers() {
  const servers = useLoaded(() => api.get("/api/mcp"), []);
  return html`
    <div class="stack">
      ${whenLoaded(
        servers,
        ({ servers: list }) => html`<${ServerList} list=${list} again=${servers.again} />`,
      )}
      ${may("admin") && html`<${AddServer} again=${servers.again} />`}
    </div>
  `;
}

/** @param {{ list: McpServer[], again: () => Promise<void> }} props */
function ServerList({ list, again }) {
  if (!list.length)
    return html`<${Empty} icon="plugins" title="No MCP servers">MCP servers add tools. Add one below.<//>`;
  return html`
    <ul class="plain lined card">
      ${list.map((one) => html`<${Server} key=${one.name} one=${one} again=${again} />`)}
    </ul>
  `;
}

/** @param {{ one: McpServer, again: () => Promise<void> }} props */
function Server({ one, again }) {
  const [busy, setBusy] = useState("");
  const [login, setLogin] = useState(false);
  /**
   * @param {string} what
   * @param {() => Promise<unknown>} work
   */
  const run = async (what, work) => {
    setBusy(what);
    await tryTo(work);
    setBusy("");
    again();
  };
  const test = (accept = false) =>
    run(accept ? "accept" : "test", async () => {
      const found = await api.post("/api/commands/mcp.test", { name: one.name, accept });
      const problems = /** @type {{ warnings?: string[] }} */ (found).warnings ?? [];
      toast(problems.join(" ") || `${one.name} answered.`, problems.length ? "bad" : "good");
    });
  const remove = async () => {
    const text = "New sessions won't have its tools.";
    if (await confirm({ title: `Remove ${one.name}?`, text, action: "Remove", danger: true }))
      await run("remove", () => api.post("/api/commands/mcp.remove", { name: one.name }));
  };
  const leave = () => run("leave", () => api.post("/api/commands/mcp.logout", { name: one.name }));
  const endLogin = () => {
    setLogin(false);
    again();
  };
  const [kind, words] = LOGINS[one.login] ?? [];
  const isRemote = /^https?:/.test(one.where);
  return html`
    <li class="tool-row" data-server=${one.name}>
      <div class="row wrap">
        <strong>${one.name}</strong>
        <${Tag} kind=${STATES[one.state] ?? ""}>${one.state}<//>
        ${words && html`<${Tag} kind=${kind}>${words}<//>`}
        <span class="spring" />
        <span class="muted small">${plural(one.tools, "tool")}</span>
      </div>
      <p class="muted small mono wrap-anywhere">${one.where}</p>
      ${one.detail && html`<p class="small">${one.detail} ${one.hint}</p>`}
      ${one.changed.length > 0 && html`<${Changed} one=${one} accept=${() => test(true)} />`}
      ${
        may("admin") &&
        html`
        <div class="row wrap">
          <${Button} busy=${busy === "test"} onClick=${() => test()}>Test<//>
          ${isRemote && html`<${Button} onClick=${() => setLogin(true)}>${words ? "Sign in again" : "Sign in"}<//>`}
          ${one.login === "signed in" && html`<${Button} kind="quiet" onClick=${leave}>Sign out<//>`}
          <${Button} kind="quiet" icon="trash" busy=${busy === "remove"} onClick=${remove}>Remove<//>
        </div>
      `
      }
      ${login && html`<${Login} name=${one.name} onEnd=${endLogin} />`}
    </li>
  `;
}

/** @param {{ one: McpServer, accept: () => void }} props */
function Changed({ one, accept }) {
  return html`
    <div class="row wrap">
      <p class="small grow">
        <${Tag} kind="warn">changed<//> ${one.changed.join(", ")}: not offered until you accept them.
      </p>
      ${may("admin") && html`<${Button} onClick=${accept}>Accept the tools<//>`}
    </div>
  `;
}

/**
 * A login under way: the browser comes back to the dashboard's machine by itself, or the person pastes its address.
 * @param {{ name: string, onEnd: () => void }} props
 */
function Login({ name, onEnd }) {
  const [address, setAddress] = useState("");
  const [pasted, setPasted] = useState("");
  const [error, setError] = useState(/** @type {Failure | null} */ (null));
  const path = /** @type {const} */ (`/api/mcp/${encodeURIComponent(name)}/login`);
  const done = () => {
    toast(`Signed in to ${name}.`, "good");
    onEnd();
  };
  useEffect(() => {
    api.post(path).then(
      (begun) => setAddress(begun.address),
      (reason) => setError(asFailure(reason)),
    );
  }, []);
  useEffect(() => {
    if (!address) return undefined;
    const timer = setInterval(async () => {
      const { state, problem } = await api.get(path);
      if (state === "done") done();
      if (state === "failed") setError({ message: `You are not signed in: ${problem}.` });
    }, POLL_MS);
    return () => clearInterval(timer);
  }, [address]);
  /** @param {Event} event */
  const finish = async (event) => {
    event.preventDefault();
    try {
      await api.post("/api/commands/mcp.login", { name, address: pasted.trim() });
      done();
    } catch (reason) {
      setError(asFailure(reason));
    }
  };
  return html`
    <div class="stack tight" role="group" aria-label=${`Sign in to ${name}`}>
      ${error && html`<${FieldError} error=${error} />`}
      ${!address && !error && html`<p class="muted">Asking ${name} where to sign in…</p>`}
      ${
        address &&
        html`
        <p><a class="button primary" href=${address} target="_blank"
          rel="noopener noreferrer">Open the login page</a></p>
        <form class="field-row" onSubmit=${finish}>
          <input
            class="input"
            aria-label="Address of the page the browser ended on"
            placeholder="http://127.0.0.1:…"
            value=${pasted}
            onInput=${(/** @type {FieldEvent} */ event) => setPasted(event.target.value)}
          />
          <button type="submit" class="button" disabled=${!pasted.trim()}>Finish</button>
        </form>
        <p class="muted small">
          If the browser ends on a page that can't be opened, it is not on the dashboard's machine.
          Paste the address of that page here.
        </p>
      `
      }
      <div><${Button} kind="quiet" onClick=${onEnd}>Close<//></div>
    </div>
  `;
}

/** @param {{ again: () => Promise<void> }} props */
function AddServer({ again }) {
  const [name, setName] = useState("");
  const [where, setWhere] = useState("");
  const [state, setState] = useState({ busy: false, error: /** @type {Failure | null} */ (null) });
  /** @param {Event} event */
  const submit = async (event) => {
    event.preventDefault();
    setState({ busy: true, error: null });
    const typed = where.trim();
    const isRemote = /^https?:\/\//.test(typed);
    const body = isRemote
      ? { name: name.trim(), url: typed }
      : { name: name.trim(), command_line: typed.split(/\s+/) };
    try {
      await api.post("/api/commands/mcp.add", body);
      setName("");
      setWhere("");
      setState({ busy: false, error: null });
      toast(`Added ${body.name}. New sessions have its tools.`, "good");
      await again();
    } catch (error) {
      setState({ busy: false, error: asFailure(error) });
    }
  };
  const addAnyway = async () => {
    if (
      await tryTo(() =>
        api.post("/api/commands/mcp.add", { name: name.trim(), url: where.trim(), no_test: true }),
      )
    ) {
      setState({ busy: false, error: null });
      setName("");
      setWhere("");
      await again();
    }
  };
  const isRemote = /^https?:\/\//.test(where.trim());
  return html`
    <section class="card stack tight">
      <h2>Add a server</h2>
      <form class="stack tight" onSubmit=${submit}>
        <label class="stack tight">Name
          <input class="input" value=${name} maxlength="32" pattern="[A-Za-z0-9_\\-]+" required
            onInput=${(/** @type {FieldEvent} */ event) => setName(event.target.value)} />
        </label>
        <label class="stack tight">Address or command
          <input class="input" value=${where} placeholder="https://example.org/mcp, or npx some-server" required
            onInput=${(/** @type {FieldEvent} */ event) => setWhere(event.target.value)} />
        </label>
        <div class="row wrap">
          <button type="submit" class="button primary" disabled=${state.busy}>
            ${state.busy ? "Testing…" : "Test and add"}
          </button>
          ${
            state.error &&
            isRemote &&
            html`<${Button} onClick=${addAnyway}>Add anyway, and sign in<//>`
          }
        </div>
        ${state.error && html`<${FieldError} error=${{ message: inSentences(state.error) }} />`}
      </form>
    </section>
  `;
}
