// Settings in words: what each is called for people, and which belong together. The raw keys are shown on demand.

/** Groups of sections, in their order; sections that no group names come last. */
/** @type {[string, string[]][]} */
export const GROUPS = [
  [
    "Models",
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
  ["Approvals", ["approvals", "sandbox"]],
  ["Tools", ["tools", "web", "browser", "media", "mcp", "mcp_servers", "lsp", "worktrees"]],
  ["Automation", ["goals", "schedules", "boards"]],
  ["Memory", ["learning"]],
  ["Interfaces", ["display", "notify", "dashboard", "gateway", "api", "aliases"]],
  ["Data and machines", ["sessions", "store", "events", "worker", "webhooks", "traces", "logging"]],
];

/** @type {Record<string, string>} */
const SECTIONS = {
  api: "API server",
  auxiliary: "Helper models",
  budget: "Spending limits",
  codex: "Codex",
  compression: "Long conversations",
  custom_providers: "Custom providers",
  gateway: "Chat apps",
  lsp: "Language servers",
  mcp: "MCP tools",
  mcp_servers: "MCP servers",
  notify: "Notifications",
  sandbox: "Sandbox for commands",
  sign_ins: "Sign-ins",
  sessions: "Session files",
  store: "Database",
  events: "Event stream",
  worktrees: "Git worktrees",
};

/** @type {Record<string, string>} */
const LABELS = {
  "model.default": "Model",
  "model.api": "Wire format",
  "model.fallback": "Models to fall back to",
  "model.openai_runtime": "Engine",
  "model.max_attempts": "Attempts per call",
  "compression.threshold": "Compress when the context is this full",
  "compression.protect_first_n": "First messages to keep",
  "compression.protect_last_n": "Last messages to keep",
  "compression.engine": "Plugin context engine",
  "approvals.timeout": "Approval timeout",
  "budget.per_turn": "Limit per turn",
  "budget.per_session": "Limit per session",
  "budget.per_day": "Limit per day",
  "budget.max_steps": "Model calls per turn (limit)",
  "web.allow_hosts": "Allowed hosts",
  "browser.headless": "Run without a window",
  "tools.enabled": "Tools to offer",
  "tools.disabled": "Tools not to offer",
  "mcp.defer": "Search for tools instead of listing them",
  "learning.mode": "What happens to proposals",
  "dashboard.shell": "Allow a shell in the page",
  "display.keys": "Key bindings",
  "notify.when": "When to notify",
  "logging.level": "Log level",
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
