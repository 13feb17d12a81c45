// The host of plugins written for the original agent: its globals over our page, their scripts, pages and slots.
// It is loaded, with React, only when such a plugin is enabled.
/** @import { PluginRow } from "../../types/page.d.ts" */
import React from "/static/vendor/react-19.3.1/react.js";
import ReactClient from "/static/vendor/react-dom-19.3.1/client.js";
import { t } from "../../app/translation.js";
import { fileAddress, Store } from "../../app/ui.js";
import { fileOf, labelOf } from "./plugin_store.js";
import {
  authedFetch,
  buildWsAuthParam,
  buildWsUrl,
  client,
  fetchJSON,
  profileScope,
  utils,
} from "./sdk_client.js";
import { cn, components, useConfirmDelete, useToast } from "./sdk_components.js";

/** @typedef {(props: object) => unknown} ReactComponent */
/** @typedef {{ plugin: string, component: ReactComponent }} SlotEntry */

const h = React.createElement;

/** @type {Map<string, ReactComponent>} */
const pages = new Map();
/** Components by slot. */
const slots = new Store(/** @type {Record<string, SlotEntry[]>} */ ({}));
/** @type {Map<string, Promise<void>>} */
const scripts = new Map();

/** A plugin that throws while it draws is shown with its error; the rest of the page goes on. */
class Guard extends React.Component {
  state = { error: null };

  /** @param {unknown} error */
  static getDerivedStateFromError(error) {
    return { error };
  }

  render() {
    const { error } = /** @type {{ error: any }} */ (this.state);
    if (!error) return this.props.children;
    return h(
      "p",
      { role: "alert", className: "field-error" },
      t("The plugin {name} failed: {error}", {
        name: this.props.name,
        error: error.message ?? error,
      }),
    );
  }
}

/** @param {{ name: string, fallback?: unknown }} props */
function PluginSlot({ name, fallback = null }) {
  const [entries, setEntries] = React.useState(slots.value[name] ?? []);
  React.useEffect(() => {
    setEntries(slots.value[name] ?? []);
    return slots.watch((all) => setEntries(all[name] ?? []));
  }, [name]);
  if (!entries.length) return fallback;
  return entries.map((/** @type {SlotEntry} */ { plugin, component }) =>
    h(Guard, { key: plugin, name: plugin }, h(component, null)),
  );
}

const { useCallback, useContext, useEffect, useMemo, useRef, useState, createContext } = React;

const SDK = {
  sdkVersion: "1.2.0",
  React,
  hooks: {
    useCallback,
    useConfirmDelete,
    useContext,
    useEffect,
    useMemo,
    useRef,
    useState,
    useToast,
    createContext,
  },
  api: client,
  fetchJSON,
  authedFetch,
  buildWsUrl,
  buildWsAuthParam,
  components: { ...components, PluginSlot },
  utils: { cn, ...utils },
  useI18n: () => ({
    locale: "en",
    lang: "en",
    setLocale: () => {},
    t: (/** @type {string} */ key) => key,
  }),
  profileScope,
};

const registry = {
  /**
   * @param {string} name
   * @param {ReactComponent} component
   */
  register: (name, component) => void pages.set(name, component),
  /**
   * @param {string} plugin
   * @param {string} slot
   * @param {ReactComponent} component
   */
  registerSlot: (plugin, slot, component) => {
    const others = (slots.value[slot] ?? []).filter((one) => one.plugin !== plugin);
    slots.set({ ...slots.value, [slot]: [...others, { plugin, component }] });
  },
};

Object.assign(window, { __HERMES_PLUGIN_SDK__: SDK, __HERMES_PLUGINS__: registry });

/**
 * Loads a plugin's script, once for each state of its files.
 * @param {PluginRow} plugin
 */
export function loadScript(plugin) {
  const address = fileOf(plugin, plugin.entry);
  const loading = scripts.get(address) ?? addScript(plugin, address);
  scripts.set(address, loading);
  return loading;
}

/**
 * @param {PluginRow} plugin
 * @param {string} address
 * @returns {Promise<void>}
 */
function addScript(plugin, address) {
  addSheet(fileAddress("style/views/plugin-sdk.css"));
  if (plugin.css) addSheet(fileOf(plugin, plugin.css));
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = address;
    script.onload = () => resolve();
    script.onerror = () => {
      scripts.delete(address);
      reject(new Error(t("{file} can't be loaded.", { file: plugin.entry })));
    };
    document.body.append(script);
  });
}

/** @param {string} address */
function addSheet(address) {
  if (document.querySelector(`link[href="${address}"]`)) return;
  const sheet = document.createElement("link");
  sheet.rel = "stylesheet";
  sheet.href = address;
  document.head.append(sheet);
}

/**
 * Draws the page of a plugin. Returns a function that takes it away.
 * @param {PluginRow} plugin
 * @param {HTMLElement} element
 */
export async function mountPage(plugin, element) {
  await loadScript(plugin);
  const component = pages.get(plugin.name);
  if (!component) {
    const values = { file: plugin.entry, plugin: plugin.name };
    throw new Error(t("{file} did not register a page for {plugin}.", values));
  }
  return draw(element, h(Guard, { name: labelOf(plugin) }, h(component, null)));
}

/**
 * Draws what plugins have put into slots.
 * @param {string[]} names
 * @param {HTMLElement} element
 */
export function mountSlots(names, element) {
  return draw(
    element,
    names.map((name) => h(PluginSlot, { key: name, name })),
  );
}

/**
 * Forgets the slots of plugins that no longer run.
 * @param {string[]} running
 */
export function keepSlotsOf(running) {
  const kept = Object.entries(slots.value).map(([slot, entries]) => [
    slot,
    entries.filter((one) => running.includes(one.plugin)),
  ]);
  slots.set(Object.fromEntries(kept));
}

/**
 * @param {HTMLElement} element
 * @param {unknown} content
 */
function draw(element, content) {
  element.classList.add("sdk-plugin");
  const root = ReactClient.createRoot(element);
  root.render(content);
  // Later: React refuses to take a tree away while it draws.
  return () => queueMicrotask(() => root.unmount());
}
