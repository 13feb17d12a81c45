// Places around every view that plugins for the original agent can fill. Empty without such a plugin.
/** @import { Ref } from "../../types/page.d.ts" */
import { html, useEffect, useElement, useStore } from "../../app/ui.js";
import { plugins, sdkPluginsOf } from "./plugin_store.js";

/**
 * The names of the original's slots, by our places. `{page}` is the original's name of the current view.
 * @type {Record<string, string[]>}
 */
const PLACES = {
  above: ["header-left", "header-right", "header-banner", "pre-main", "{page}:top"],
  below: ["{page}:bottom", "post-main", "sidebar", "footer-left", "footer-right"],
  over: ["backdrop", "overlay"],
};

/** @type {Record<string, string>} */
const PAGES = { schedules: "cron", learning: "skills", settings: "config", live: "logs" };

/** @param {{ place: string, view: string }} props */
export function PluginSlots({ place, view }) {
  const running = sdkPluginsOf(useStore(plugins));
  const marks = running.map((one) => one.hash).join();
  const element = /** @type {Ref<HTMLElement>} */ (useElement());
  useEffect(() => {
    if (!running.length) return undefined;
    const drawn = fill(element.current, place, PAGES[view] ?? view, running);
    return () => void drawn.then((leave) => leave());
  }, [marks, view]);
  if (!running.length) return null;
  return html`<div ref=${element} key=${`${view} ${marks}`} class=${`plugin-slots slots-${place}`} />`;
}

/**
 * @param {HTMLElement} element
 * @param {string} place
 * @param {string} page
 * @param {import("../../types/page.d.ts").PluginRow[]} running
 * @returns {Promise<() => void>}
 */
async function fill(element, place, page, running) {
  try {
    const host = await import("./sdk_host.js");
    const root = document.createElement("div");
    element.replaceChildren(root);
    const leave = host.mountSlots(
      PLACES[place].map((name) => name.replace("{page}", page)),
      root,
    );
    host.keepSlotsOf(running.map((one) => one.name));
    // The page of a plugin says why its script fails; here there would be no room.
    await Promise.allSettled(running.map(host.loadScript));
    return leave;
  } catch (error) {
    console.warn("The slots of plugins can't be filled:", error); // not translated
    return () => {};
  }
}
