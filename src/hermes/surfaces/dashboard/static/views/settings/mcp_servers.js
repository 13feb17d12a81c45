// MCP servers: what they offer, adding and removing one, trying it, and signing in at it.
/** @import { Failure, FieldEvent, McpServer } from "../../types/page.d.ts" */
import { api, asFailure, inSentences, may } from "../../app/api.js";
import { Button, Empty, Tag } from "../../app/parts/basics.js";
import { confirm } from "../../app/parts/dialog.js";
import { toast, tryTo } from "../../app/parts/toast.js";
import { t } from "../../app/translation.js";
import { html, useEffect, useState } from "../../app/ui.js";
import { FieldError } from "../inputs.js";
import { useLoaded, whenLoaded } from "../loading.js";

const POLL_MS = 2000;
/** @type {Record<string, string>} */
const STATES = { connected: "good", failed: "bad", connecting: "warn" };
/** @type {Record<string, string>} */
const STATE_NAMES = {
  connected: t("connected"),
  failed: t("failed"),
  connecting: t("connecting"),
};
/** @type {Record<string, [string, string]>} */
const LOGINS = { "signed in": ["good", t("signed in")], ended: ["warn", t("login expired")] };

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
    return html`<${Empty} icon="plugins" title=${t("No MCP servers")}>
      ${t("MCP servers add tools. Add one below.")}<//>`;
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
      toast(
        problems.join(" ") || t("{name} answered.", { name: one.name }),
        problems.length ? "bad" : "good",
      );
    });
  const remove = async () => {
    const text = t("New sessions won't have its tools.");
    const title = t("Remove {name}?", { name: one.name });
    if (await confirm({ title, text, action: t("Remove"), danger: true }))
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
        <${Tag} kind=${STATES[one.state] ?? ""}>${STATE_NAMES[one.state] ?? one.state}<//>
        ${words && html`<${Tag} kind=${kind}>${words}<//>`}
        <span class="spring" />
        <span class="muted small">${t("{count} tool", "{count} tools", { count: one.tools })}</span>
      </div>
      <p class="muted small mono wrap-anywhere">${one.where}</p>
      ${one.detail && html`<p class="small">${one.detail} ${one.hint}</p>`}
      ${one.changed.length > 0 && html`<${Changed} one=${one} accept=${() => test(true)} />`}
      ${
        may("admin") &&
        html`
        <div class="row wrap">
          <${Button} busy=${busy === "test"} onClick=${() => test()}>${t("Test")}<//>
          ${
            isRemote &&
            html`<${Button} onClick=${() => setLogin(true)}>
              ${words ? t("Sign in again") : t("Sign in")}
            <//>`
          }
          ${one.login === "signed in" && html`<${Button} kind="quiet" onClick=${leave}>${t("Sign out")}<//>`}
          <${Button} kind="quiet" icon="trash" busy=${busy === "remove"} onClick=${remove}>${t("Remove")}<//>
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
        <${Tag} kind="warn">${t("changed")}<//>${" "}
        ${t("{tools}: not offered until you accept them.", { tools: one.changed.join(", ") })}
      </p>
      ${may("admin") && html`<${Button} onClick=${accept}>${t("Accept the tools")}<//>`}
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
    toast(t("Signed in to {name}.", { name }), "good");
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
      if (state === "failed")
        setError({ message: t("You are not signed in: {problem}.", { problem }) });
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
    <div class="stack tight" role="group" aria-label=${t("Sign in to {name}", { name })}>
      ${error && html`<${FieldError} error=${error} />`}
      ${!address && !error && html`<p class="muted">${t("Asking {name} where to sign in…", { name })}</p>`}
      ${
        address &&
        html`
        <p><a class="button primary" href=${address} target="_blank"
          rel="noopener noreferrer">${t("Open the login page")}</a></p>
        <form class="field-row" onSubmit=${finish}>
          <input
            class="input"
            aria-label=${t("Address of the page the browser ended on")}
            placeholder="http://127.0.0.1:…"
            value=${pasted}
            onInput=${(/** @type {FieldEvent} */ event) => setPasted(event.target.value)}
          />
          <button type="submit" class="button" disabled=${!pasted.trim()}>${t("Finish")}</button>
        </form>
        <p class="muted small">
          ${t("If the browser ends on a page that can't be opened, it is not on the dashboard's machine.")}${" "}
          ${t("Paste the address of that page here.")}
        </p>
      `
      }
      <div><${Button} kind="quiet" onClick=${onEnd}>${t("Close")}<//></div>
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
      toast(t("Added {name}. New sessions have its tools.", { name: body.name }), "good");
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
      <h2>${t("Add a server")}</h2>
      <form class="stack tight" onSubmit=${submit}>
        <label class="stack tight">${t("Name")}
          <input class="input" value=${name} maxlength="32" pattern="[A-Za-z0-9_\\-]+" required
            onInput=${(/** @type {FieldEvent} */ event) => setName(event.target.value)} />
        </label>
        <label class="stack tight">${t("Address or command")}
          <input class="input" value=${where} placeholder=${t("https://example.org/mcp, or npx some-server")} required
            onInput=${(/** @type {FieldEvent} */ event) => setWhere(event.target.value)} />
        </label>
        <div class="row wrap">
          <button type="submit" class="button primary" disabled=${state.busy}>
            ${state.busy ? t("Testing…") : t("Test and add")}
          </button>
          ${
            state.error &&
            isRemote &&
            html`<${Button} onClick=${addAnyway}>${t("Add anyway, and sign in")}<//>`
          }
        </div>
        ${state.error && html`<${FieldError} error=${{ message: inSentences(state.error) }} />`}
      </form>
    </section>
  `;
}
