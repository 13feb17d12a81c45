// Connecting a model: a key or a sign-in, a server of one's own, or a small local model.
import { Icon } from "../../app/parts/basics.js";
import { t } from "../../app/translation.js";
import { html, useState } from "../../app/ui.js";
import { KeyWay } from "./connect_key.js";
import { LocalWay } from "./connect_local.js";
import { ServerWay } from "./connect_server.js";
import { SignInWay } from "./connect_sign_in.js";

/** @typedef {{ onConnected: () => void }} WayProps */

/** @type {[string, string, string, string, (props: WayProps) => unknown][]} */
const WAYS = [
  [
    "key",
    "key",
    t("Use an API key or an account"),
    t(
      "From Anthropic, OpenAI, OpenRouter, Google or another provider; or Codex's sign-in, if it is installed.",
    ),
    KeyOrAccountWay,
  ],
  [
    "server",
    "globe",
    t("Use a server of your own"),
    t("Ollama, LM Studio, llama.cpp, vLLM or any address. Running servers are found."),
    ServerWay,
  ],
  [
    "local",
    "download",
    t("Use a small local model, no account"),
    t("It runs on the dashboard's machine. Nothing leaves it."),
    LocalWay,
  ],
];

/** @param {WayProps} props */
function KeyOrAccountWay({ onConnected }) {
  return html`
    <${KeyWay} onConnected=${onConnected} />
    <h3>${t("Sign in with an account")}</h3>
    <${SignInWay} onConnected=${onConnected} />
  `;
}

/** @param {WayProps} props */
export function Connect({ onConnected }) {
  const [way, setWay] = useState("");
  const chosen = WAYS.find(([name]) => name === way);
  const connected = () => {
    setWay("");
    onConnected();
  };
  return html`
    <section class="card stack">
      <h2>${t("Connect a model")}</h2>
      <div class="ways" role="group" aria-label=${t("What should answer?")}>
        ${WAYS.map(
          ([name, icon, title, text]) => html`
          <button
            key=${name}
            type="button"
            class="way"
            aria-pressed=${String(name === way)}
            onClick=${() => setWay(name === way ? "" : name)}
          >
            <${Icon} name=${icon} />
            <strong>${title}</strong>
            <span class="muted small">${text}</span>
          </button>
        `,
        )}
      </div>
      ${chosen && html`<${chosen[4]} key=${way} onConnected=${connected} />`}
    </section>
  `;
}
