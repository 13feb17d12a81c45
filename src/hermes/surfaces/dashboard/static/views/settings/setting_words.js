// Settings in words: what each is called for people, and which belong together. The raw keys are shown on demand.
import { t } from "../../app/translation.js";

/** Groups of sections, in their order; sections that no group names come last. */
/** @type {[string, string[]][]} */
export const GROUPS = [
  [
    t("Models"),
    [
      "model",
      "auxiliary",
      "compression",
      "budget",
      "custom_providers",
      "local_models",
      "sign_ins",
      "codex",
    ],
  ],
  [t("Approvals"), ["approvals", "sandbox"]],
  [t("Tools"), ["tools", "web", "browser", "media", "mcp", "mcp_servers", "lsp", "worktrees"]],
  [t("Automation"), ["goals", "schedules", "boards"]],
  [t("Memory"), ["learning"]],
  [t("Interfaces"), ["display", "notify", "dashboard", "gateway", "api", "aliases"]],
  [
    t("Data and machines"),
    ["sessions", "store", "events", "worker", "webhooks", "traces", "logging"],
  ],
];

/** @type {Record<string, string>} */
const SECTIONS = {
  api: t("API server"),
  auxiliary: t("Helper models"),
  budget: t("Spending limits"),
  codex: "Codex",
  compression: t("Long conversations"),
  custom_providers: t("Custom providers"),
  gateway: t("Chat apps"),
  lsp: t("Language servers"),
  mcp: t("MCP tools"),
  mcp_servers: t("MCP servers"),
  notify: t("Notifications"),
  sandbox: t("Sandbox for commands"),
  sign_ins: t("Sign-ins"),
  sessions: t("Session files"),
  store: t("Database"),
  events: t("Event stream"),
  worktrees: t("Git worktrees"),
  aliases: t("Aliases"),
  approvals: t("Approvals"),
  boards: t("Boards"),
  browser: t("Browser"),
  dashboard: t("Dashboard"),
  display: t("Display"),
  goals: t("Goals"),
  learning: t("Learning"),
  local_models: t("Local models"),
  logging: t("Logging"),
  media: t("Media"),
  model: t("Model"),
  schedules: t("Schedules"),
  tools: t("Tools"),
  traces: t("Traces"),
  web: t("Web"),
  webhooks: t("Webhooks"),
  worker: t("Worker"),
};

/** @type {Record<string, string>} */
const LABELS = {
  "model.default": t("Model"),
  "model.api": t("Wire format"),
  "model.fallback": t("Models to fall back to"),
  "model.openai_runtime": t("Engine"),
  "model.max_attempts": t("Attempts per call"),
  "compression.threshold": t("Compress when the context is this full"),
  "compression.protect_first_n": t("First messages to keep"),
  "compression.protect_last_n": t("Last messages to keep"),
  "compression.engine": t("Plugin context engine"),
  "approvals.timeout": t("Approval timeout"),
  "budget.per_turn": t("Limit per turn"),
  "budget.per_session": t("Limit per session"),
  "budget.per_day": t("Limit per day"),
  "budget.max_steps": t("Model calls per turn (limit)"),
  "web.allow_hosts": t("Allowed hosts"),
  "browser.headless": t("Run without a window"),
  "tools.enabled": t("Tools to offer"),
  "tools.disabled": t("Tools not to offer"),
  "mcp.defer": t("Search for tools instead of listing them"),
  "learning.mode": t("What happens to proposals"),
  "dashboard.shell": t("Allow a shell in the page"),
  "display.keys": t("Key bindings"),
  "notify.when": t("When to notify"),
  "logging.level": t("Log level"),
};

/** @type {Record<string, string>} */
const WORDS = {
  api: "API",
  ca: "CA",
  id: "ID",
  imap: "IMAP",
  mcp: "MCP",
  n: "number",
  smtp: "SMTP",
  tls: "TLS",
  url: "URL",
  urls: "URLs",
};

/** @param {string} words */
function capital(words) {
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** @param {string} part of a key */
function inWords(part) {
  return part
    .split("_")
    .map((word) => WORDS[word] ?? word)
    .join(" ");
}

/** @param {string} section */
export function sectionTitle(section) {
  return SECTIONS[section] ?? capital(inWords(section));
}

/** @param {string} key such as `model.max_attempts` */
export function settingLabel(key) {
  if (LABELS[key]) return LABELS[key];
  const [section, ...parts] = key.split(".");
  if (!parts.length) return sectionTitle(section);
  return capital(parts.map(inWords).join(": "));
}

/** @param {string} section */
export function groupOf(section) {
  const found = GROUPS.findIndex(([, sections]) => sections.includes(section));
  return found < 0 ? GROUPS.length - 1 : found;
}
