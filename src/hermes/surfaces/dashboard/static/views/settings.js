// Settings: the typed settings, what was spent, the policy, models, tools, MCP servers, and the doctor.
/** @import { Child, Route } from "../types/page.d.ts" */
import { navigate } from "../app/router.js";
import { html, useStyle } from "../app/ui.js";
import { Agents } from "./settings/agents.js";
import { Doctor } from "./settings/doctor.js";
import { Servers } from "./settings/mcp_servers.js";
import { Models } from "./settings/models.js";
import { Notifications } from "./settings/notifications.js";
import { Platforms } from "./settings/platforms.js";
import { Policy } from "./settings/policy.js";
import { SettingsList } from "./settings/settings_list.js";
import { Tools } from "./settings/tools.js";
import { Usage } from "./settings/usage.js";
import { Tabs } from "./tabs.js";

/** @type {[string, string, () => Child][]} */
const PARTS = [
  ["general", "Settings", () => html`<${SettingsList} />`],
  ["usage", "Usage", () => html`<${Usage} />`],
  ["policy", "Permissions", () => html`<${Policy} />`],
  ["models", "Models", () => html`<${Models} />`],
  ["tools", "Tools", () => html`<${Tools} />`],
  ["agents", "Agents", () => html`<${Agents} />`],
  ["mcp", "MCP servers", () => html`<${Servers} />`],
  ["platforms", "Chat apps", () => html`<${Platforms} />`],
  ["notifications", "Notifications", () => html`<${Notifications} />`],
  ["doctor", "Doctor", () => html`<${Doctor} />`],
];

/** @param {{ route: Route }} props */
export default function Settings({ route }) {
  const ready = useStyle("views/settings.css");
  const part = route.parts[0] ?? "general";
  /** @param {string} name */
  const go = (name) => navigate(`/settings/${name}`, { replace: true });
  return (
    ready &&
    html`
    <div class="page settings">
      <header class="page-head"><h1>Settings</h1></header>
      <${Tabs} label="Settings sections" tabs=${PARTS} current=${part} onPick=${go} />
    </div>
  `
  );
}
