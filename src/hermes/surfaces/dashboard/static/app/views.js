// The table of views. `key` follows `g` on the keyboard; `scope` is what a browser needs to see it;
// `shared` views are for a store that several machines use.
/** @import { View } from "../types/page.d.ts" */
/** @type {View[]} */
import { t } from "./translation.js";

export const VIEWS = [
  {
    name: "chat",
    label: t("Chat"),
    icon: "chat",
    scope: "observe",
    key: "c",
    load: () => import("../views/chat.js"),
  },
  {
    name: "sessions",
    label: t("Sessions"),
    icon: "sessions",
    scope: "observe",
    key: "s",
    load: () => import("../views/sessions.js"),
  },
  {
    name: "live",
    label: t("Live"),
    icon: "live",
    scope: "observe",
    key: "l",
    load: () => import("../views/live.js"),
  },
  {
    name: "terminal",
    label: t("Terminal"),
    icon: "terminal",
    scope: "terminal",
    key: "t",
    load: () => import("../views/terminal.js"),
  },
  {
    name: "board",
    label: t("Board"),
    icon: "board",
    scope: "observe",
    key: "b",
    load: () => import("../views/board.js"),
  },
  {
    name: "learning",
    label: t("Learning"),
    icon: "learning",
    scope: "observe",
    key: "m",
    load: () => import("../views/learning.js"),
  },
  {
    name: "schedules",
    label: t("Schedules"),
    icon: "schedules",
    scope: "observe",
    key: "h",
    load: () => import("../views/schedules.js"),
  },
  {
    name: "plugins",
    label: t("Plugins"),
    icon: "plugins",
    scope: "observe",
    key: "p",
    load: () => import("../views/plugins.js"),
  },
  {
    name: "hosts",
    label: t("Hosts"),
    icon: "hosts",
    scope: "observe",
    shared: true,
    key: "o",
    load: () => import("../views/hosts.js"),
  },
  {
    name: "settings",
    label: t("Settings"),
    icon: "settings",
    scope: "observe",
    key: "e",
    load: () => import("../views/settings.js"),
  },
];

/** @param {string} name */
export function findView(name) {
  return VIEWS.find((view) => view.name === name);
}
