// The table of views. `key` follows `g` on the keyboard; `scope` is what a browser needs to see it;
// `shared` views are for a store that several machines use.
/** @import { View } from "../types/page.d.ts" */
/** @type {View[]} */
export const VIEWS = [
  {
    name: "chat",
    label: "Chat",
    icon: "chat",
    scope: "observe",
    key: "c",
    load: () => import("../views/chat.js"),
  },
  {
    name: "sessions",
    label: "Sessions",
    icon: "sessions",
    scope: "observe",
    key: "s",
    load: () => import("../views/sessions.js"),
  },
  {
    name: "live",
    label: "Live",
    icon: "live",
    scope: "observe",
    key: "l",
    load: () => import("../views/live.js"),
  },
  {
    name: "terminal",
    label: "Terminal",
    icon: "terminal",
    scope: "terminal",
    key: "t",
    load: () => import("../views/terminal.js"),
  },
  {
    name: "learning",
    label: "Learning",
    icon: "learning",
    scope: "observe",
    key: "m",
    load: () => import("../views/learning.js"),
  },
  {
    name: "schedules",
    label: "Schedules",
    icon: "schedules",
    scope: "observe",
    key: "h",
    load: () => import("../views/schedules.js"),
  },
  {
    name: "plugins",
    label: "Plugins",
    icon: "plugins",
    scope: "observe",
    key: "p",
    load: () => import("../views/plugins.js"),
  },
  {
    name: "hosts",
    label: "Hosts",
    icon: "hosts",
    scope: "observe",
    shared: true,
    key: "o",
    load: () => import("../views/hosts.js"),
  },
  {
    name: "settings",
    label: "Settings",
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
