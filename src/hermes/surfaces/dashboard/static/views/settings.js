// Settings: the typed settings, what was spent, the policy, models, tools, MCP servers, and the doctor.
/** @import { Child, Route } from "../types/page.d.ts" */
import { navigate } from "../app/router.js";
import { t } from "../app/translation.js";
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
  ["general", t("Settings"), () => html`<${SettingsList} />`],
  ["usage", t("Usage"), () => html`<${Usage} />`],
  ["policy", t("Permissions"), () => html`<${Policy} />`],
  ["models", t("Models"), () => html`<${Models} />`],
  ["tools", t("Tools"), () => html`<${Tools} />`],
  ["agents", t("Agents"), () => html`<${Agents} />`],
  ["mcp", t("MCP servers"), () => html`<${Servers} />`],
  ["platforms", t("Chat apps"), () => html`<${Platforms} />`],
  ["notifications", t("Notifications"), () => html`<${Notifications} />`],
  ["doctor", t("Doctor"), () => html`<${Doctor} />`],
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
      <header class="page-head"><h1>${t("Settings")}</h1></header>
      <${Tabs} label=${t("Settings sections")} tabs=${PARTS} current=${part} onPick=${go} />
    </div>
  `
  );
}
