// Settings: the typed settings, what was spent, the policy, models, tools, MCP servers, and the doctor.
/** @import { Child, Route } from "../types/page.d.ts" */
import { navigate } from "../app/router.js";
import { html, useStyle } from "../app/ui.js";
import { Doctor } from "./settings/doctor.js";
import { Models } from "./settings/models.js";
import { Policy } from "./settings/policy.js";
import { SettingsList } from "./settings/settings_list.js";
import { Servers, Tools } from "./settings/tools_and_servers.js";
import { Usage } from "./settings/usage.js";
import { Tabs } from "./tabs.js";

/** @type {[string, string, () => Child][]} */
const PARTS = [
  ["general", "Settings", () => html`<${SettingsList} />`],
  ["usage", "Usage", () => html`<${Usage} />`],
  ["policy", "Policy", () => html`<${Policy} />`],
  ["models", "Models", () => html`<${Models} />`],
  ["tools", "Tools", () => html`<${Tools} />`],
  ["mcp", "MCP servers", () => html`<${Servers} />`],
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
