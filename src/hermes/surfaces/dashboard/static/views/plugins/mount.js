// Mounts a plugin's module: loads it, passes it what it may use, and removes it completely at the end.
/** @import { FeedState, HermesEvent, PluginRow, PluginTools, Ref } from "../../types/page.d.ts" */
import { api } from "../../app/api.js";
import { BusFeed } from "../../app/feed.js";
import { Loading, Problem } from "../../app/parts/basics.js";
import { t } from "../../app/translation.js";
import * as ui from "../../app/ui.js";
import { fileOf, labelOf } from "./plugin_store.js";

const { html, useEffect, useElement, useState } = ui;

/**
 * A plugin's module in an element: [its place, as a ref; {loading, error}; trying it again].
 * @param {PluginRow} plugin
 * @param {string} kind
 * @returns {[Ref<HTMLElement>, { loading: boolean, error: unknown }, () => void]}
 */
export function useMounted(plugin, kind) {
  const place = /** @type {Ref<HTMLElement>} */ (useElement());
  const [state, setState] = useState({ loading: true, error: /** @type {unknown} */ (null) });
  const [round, setRound] = useState(0);
  useEffect(() => {
    const stage = new Stage(plugin, kind, (error) => setState({ loading: false, error }));
    setState({ loading: true, error: null });
    stage.begin(place.current).then(() => setState((was) => ({ ...was, loading: false })));
    return () => stage.end();
  }, [plugin.name, plugin.hash, kind, round]);
  return [place, state, () => setRound(round + 1)];
}

/**
 * A plugin's page or widget. One that fails is shown with its error; the rest of the page goes on.
 * @param {{ plugin: PluginRow, kind: string }} props
 */
export function Mounted({ plugin, kind }) {
  const [place, { loading, error }, again] = useMounted(plugin, kind);
  const problem = Boolean(error) && {
    message: t("The plugin {name} failed.", { name: labelOf(plugin) }),
    hint: errorText(error),
  };
  return html`
    <div class=${`plugin-place in-${kind}`}>
      ${loading && html`<${Loading} label=${labelOf(plugin)} />`}
      ${problem && html`<${Problem} error=${problem} retry=${again} />`}
      <div ref=${place} class="plugin-own" data-plugin=${plugin.name} />
    </div>
  `;
}

/** One life of a plugin's module in one place of the page. */
class Stage {
  #ended = false;
  /** @type {Set<BusFeed>} */
  #feeds = new Set();
  /** @type {HTMLLinkElement | null} */
  #sheet = null;
  /** @type {(() => void) | null} */
  #unmount = null;
  /** @type {HTMLElement | null} */
  #root = null;

  /**
   * @param {PluginRow} plugin
   * @param {string} kind
   * @param {(error: unknown) => void} onError
   */
  constructor(plugin, kind, onError) {
    this.plugin = plugin;
    this.kind = kind;
    this.onError = onError;
  }

  /** @param {HTMLElement} place */
  async begin(place) {
    try {
      const mount = await (this.plugin.uses_sdk ? this.#sdkPage() : this.#module());
      if (this.#ended) return;
      // An element of its own: what a plugin leaves behind goes with it, and the page never looks inside.
      this.#root = document.createElement("div");
      place.replaceChildren(this.#root);
      const unmount = await mount(this.#root);
      this.#unmount = typeof unmount === "function" ? /** @type {() => void} */ (unmount) : null;
      if (this.#ended) this.#leave();
    } catch (error) {
      this.#fail(error);
    }
  }

  /** @returns {Promise<(root: HTMLElement) => unknown>} */
  async #module() {
    this.#dress();
    const { entry } = this.plugin;
    const module = await import(fileOf(this.plugin, entry));
    if (typeof module.default !== "function")
      throw new Error(t("{file} has no default export that is a function.", { file: entry }));
    const tools = { api, events: this.#events(), html, ui, kind: this.kind };
    return (root) => module.default(root, tools);
  }

  /** @returns {Promise<(root: HTMLElement) => unknown>} */
  async #sdkPage() {
    const host = await import("./sdk_host.js");
    return (root) => host.mountPage(this.plugin, root);
  }

  end() {
    this.#ended = true;
    for (const feed of this.#feeds) feed.close();
    this.#leave();
    this.#sheet?.remove();
    this.#root?.remove();
  }

  #leave() {
    const unmount = this.#unmount;
    this.#unmount = null;
    try {
      unmount?.();
    } catch (error) {
      console.warn(`The plugin ${this.plugin.name} failed to unmount:`, error); // not translated
    }
  }

  #dress() {
    if (!this.plugin.css) return;
    const sheet = document.createElement("link");
    sheet.rel = "stylesheet";
    sheet.href = fileOf(this.plugin, this.plugin.css);
    this.#sheet = sheet;
    document.head.append(sheet);
  }

  /**
   * The bus, for a plugin: what it subscribes ends with it.
   * @returns {PluginTools["events"]}
   */
  #events() {
    return {
      subscribe: (pattern, callback, onLive) => {
        const take = (/** @type {HermesEvent[]} */ events) => {
          for (const event of events) {
            if (event.type === "feed.hello") continue;
            try {
              callback(/** @type {never} */ (event));
            } catch (error) {
              this.#fail(error);
            }
          }
        };
        const onState = (/** @type {FeedState} */ state) => state === "live" && onLive?.();
        const feed = new BusFeed(pattern, { onEvents: take, onState });
        this.#feeds.add(feed);
        return () => {
          this.#feeds.delete(feed);
          feed.close();
        };
      },
    };
  }

  /** @param {unknown} error */
  #fail(error) {
    console.warn(`The plugin ${this.plugin.name} failed:`, error); // not translated
    if (!this.#ended) this.onError(error);
  }
}

/** @param {unknown} error */
function errorText(error) {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}
