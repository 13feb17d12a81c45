// The frame around every view: navigation, theme, connection, palette, key help, and the signed-out screen.
/** @import { Binding, Route, View as ViewEntry, ViewModule } from "../types/page.d.ts" */

import { PluginSlots } from "../views/plugins/slots.js";
import { usePluginTabs, withTabs } from "../views/plugins/tabs.js";
import { may, profile, scopes, sharedStore, signedOut } from "./api.js";
import { setTitle } from "./attention.js";
import { shown, singleKeys, toggleSingleKeys, useBindings, useKeys } from "./keys.js";
import { overlay, showKeys, showMore, showPalette } from "./overlay.js";
import { Palette } from "./palette.js";
import { Button, Icon, Loading, Problem } from "./parts/basics.js";
import { Dialog, OpenDialog } from "./parts/dialog.js";
import { Toasts } from "./parts/toast.js";
import { connection, storeAway, waiting } from "./pending_requests.js";
import { navigate, useRoute } from "./router.js";
import { nextTheme, THEME_NAMES, theme } from "./theme.js";
import { t } from "./translation.js";
import {
  fileAddress,
  html,
  loadStyle,
  PHONE,
  useEffect,
  useMedia,
  useState,
  useStore,
} from "./ui.js";
import { findView, VIEWS } from "./views.js";

const ON_BAR = 4; // views on the bar of a phone; the rest is behind "More"

export function Frame() {
  const gone = useStore(signedOut);
  return gone ? html`<${SignedOut} />` : html`<${SignedInFrame} />`;
}

function SignedInFrame() {
  const route = useRoute();
  const shownOver = useStore(overlay);
  useStore(scopes);
  const isShared = useStore(sharedStore);
  const isPhone = useMedia(PHONE);
  const own = VIEWS.filter((view) => may(view.scope) && (isShared || !view.shared));
  const views = withTabs(own, usePluginTabs());
  const place = `${route.view}/${route.parts[0]}`;
  const current = views.some((view) => view.name === place) ? place : route.view;
  useFrameKeys(views);
  const close = () => overlay.set(null);
  /** @param {Event} event */
  const skip = (event) => {
    event.preventDefault();
    document.getElementById("main")?.focus();
  };
  return html`
    <div class="frame">
      <a class="skip" href="#main" onClick=${skip}>${t("Skip to content")}</a>
      ${!isPhone && html`<${Rail} views=${views} current=${current} />`}
      <main id="main" class="main" tabindex="-1">
        <${Offline} />
        <${StoreAway} />
        <${PluginSlots} place="above" view=${route.view} />
        <${View} route=${route} />
        <${PluginSlots} place="below" view=${route.view} />
      </main>
      <${PluginSlots} place="over" view=${route.view} />
      ${isPhone && html`<${Bar} views=${views} current=${current} />`}
      ${shownOver === "palette" && html`<${Palette} onClose=${close} />`}
      ${shownOver === "keys" && html`<${KeyHelp} onClose=${close} />`}
      ${shownOver === "more" && html`<${More} views=${views.slice(ON_BAR)} onClose=${close} />`}
      <${OpenDialog} />
      <${Toasts} />
    </div>
  `;
}

/** @param {ViewEntry[]} views */
function useFrameKeys(views) {
  const group = t("Everywhere");
  const single = useStore(singleKeys);
  /**
   * @param {ViewEntry} view
   * @returns {Binding}
   */
  const goTo = (view) => ({
    keys: view.key && `g ${view.key}`,
    label: t("Go to {view}", { view: view.label }),
    group: t("Views"),
    icon: view.icon,
    run: () => navigate(`/${view.name}`),
  });
  useKeys([
    {
      keys: "Mod+k",
      label: t("Open the command palette"),
      group,
      typing: true,
      icon: "palette",
      hidden: true,
      run: showPalette,
    },
    {
      keys: "Mod+/",
      label: t("Show keyboard shortcuts"),
      group,
      typing: true,
      icon: "keys",
      run: showKeys,
    },
    { keys: "?", label: t("Show keyboard shortcuts"), group, hidden: true, run: showKeys },
    {
      label: single ? t("Turn single-key shortcuts off") : t("Turn single-key shortcuts on"),
      group,
      icon: "keys",
      run: toggleSingleKeys,
    },
    { label: t("Change the theme"), group, icon: "light", run: nextTheme },
    ...views.map(goTo),
  ]);
}

/** @param {{ views: ViewEntry[], current: string }} props */
function Rail({ views, current }) {
  const look = useStore(theme);
  const name = useStore(profile);
  return html`
    <nav class="rail" aria-label=${t("Views")}>
      <a class="rail-home" href="#/chat" aria-label=${t("Hermes: new chat")}>
        <img src=${fileAddress("favicon.svg")} alt="" width="32" height="32" />
      </a>
      ${name && html`<span class="rail-profile" title=${t("Profile: {name}", { name })}>${name}</span>`}
      ${views.map((view) => html`<${Place} key=${view.name} view=${view} current=${current} />`)}
      <span class="spring" />
      <${Connection} />
      <${Button} kind="quiet" icon=${look}
        label=${t("Theme: {theme}. Change theme", { theme: THEME_NAMES[look] ?? look })}
        onClick=${nextTheme} />
      <${Button} kind="quiet" icon="search" label=${t("Commands (Ctrl K)")} onClick=${showPalette} />
      <${Button} kind="quiet" icon="keys" label=${t("Keyboard shortcuts (Ctrl /)")} onClick=${showKeys} />
    </nav>
  `;
}

/** @param {{ views: ViewEntry[], current: string }} props */
function Bar({ views, current }) {
  const isBehind = views.slice(ON_BAR).some((view) => view.name === current);
  return html`
    <nav class="bar" aria-label=${t("Views (compact)")}>
      ${views.slice(0, ON_BAR).map((view) => html`<${Place} key=${view.name} view=${view} current=${current} />`)}
      <button type="button" class=${`place ${isBehind ? "current" : ""}`} onClick=${showMore}>
        <${Icon} name="more" size=${22} />
        <span>${t("More")}</span>
      </button>
    </nav>
  `;
}

/** @param {{ view: ViewEntry, current: string }} props */
function Place({ view, current }) {
  const open = useStore(waiting).length;
  const badge = view.name === "chat" && open > 0;
  const here = current === view.name;
  return html`
    <a class=${`place ${here ? "current" : ""}`} href=${`#/${view.name}`} aria-current=${here ? "page" : undefined}>
      ${view.draw?.() ?? html`<${Icon} name=${view.icon} size=${22} />`}
      <span class="place-name">${view.label}</span>
      ${
        badge &&
        html`<span class="badge"
          aria-label=${t("{count} waiting for you", "{count} waiting for you", { count: open })}>${open}</span>`
      }
    </a>
  `;
}

/** @param {{ views: ViewEntry[], onClose: () => void }} props */
function More({ views, onClose }) {
  const look = useStore(theme);
  /** @param {() => void} [run] */
  const close = (run) => () => {
    onClose();
    run?.();
  };
  /**
   * @param {string} icon
   * @param {string} label
   * @param {() => void} onClick
   */
  const action = (icon, label, onClick) => html`
    <li>
      <button type="button" class="more-row" onClick=${onClick}><${Icon} name=${icon} />${label}</button>
    </li>
  `;
  return html`
    <${Dialog} title=${t("More")} class="sheet" onClose=${onClose}>
      <ul class="more">
        ${views.map(
          (view) => html`
          <li key=${view.name}>
            <a class="more-row" href=${`#/${view.name}`} onClick=${close()}>
              ${view.draw?.() ?? html`<${Icon} name=${view.icon} />`}${view.label}
            </a>
          </li>
        `,
        )}
        ${action(look, t("Theme: {theme}", { theme: THEME_NAMES[look] ?? look }), nextTheme)}
        ${action("palette", t("Commands"), close(showPalette))}
        ${action("keys", t("Keyboard shortcuts"), close(showKeys))}
      </ul>
    <//>
  `;
}

const STATES = {
  connecting: t("Connecting"),
  live: t("Connected"),
  waiting: t("Reconnecting"),
  closed: t("Not connected"),
};

function Connection() {
  const state = useStore(connection);
  return html`
    <span class=${`connection ${state}`} role="status" title=${STATES[state]}>
      <span class="unseen">${STATES[state]}</span>
    </span>
  `;
}

/** Shows a lost connection on phones, which have no rail, and only if it lasts. */
function Offline() {
  const state = useStore(connection);
  const [late, setLate] = useState(false);
  const away = state === "waiting" || state === "closed";
  useEffect(() => {
    if (!away) return setLate(false);
    const timer = setTimeout(() => setLate(true), 1500);
    return () => clearTimeout(timer);
  }, [away]);
  return (
    late &&
    html`
    <div class="offline" role="status">
      <${Icon} name="warn" size=${16} /> ${t("The dashboard can't be reached. Reconnecting …")}
    </div>
  `
  );
}

/** Shows that the dashboard waits for its database. */
function StoreAway() {
  const away = useStore(storeAway);
  return (
    away &&
    html`
    <div class="offline store-away" role="status">
      <${Icon} name="warn" size=${16} />${" "}
      ${t("Store unreachable, waiting. Everything continues by itself when it is back.")}
    </div>
  `
  );
}

/** @type {Map<string, ViewModule>} */
const loaded = new Map();

/** @param {{ route: Route }} props */
function View({ route }) {
  const view = findView(route.view);
  const [module, setModule] = useState(() => loaded.get(route.view) ?? null);
  useEffect(() => {
    if (!view) return undefined;
    let isCurrent = true; // a view that was left may still be loading
    loadStyle(`views/${view.name}.css`);
    setModule(loaded.get(view.name) ?? null);
    view.load?.().then(
      (one) => {
        loaded.set(view.name, one);
        if (isCurrent) setModule(one);
      },
      (error) => isCurrent && setModule({ error }),
    );
    return () => {
      isCurrent = false;
    };
  }, [view]);
  useEffect(() => {
    setTitle(view ? `${view.label} · Hermes` : "Hermes");
  }, [view]);
  if (!view) {
    const error = {
      message: t("There is no such view."),
      hint: t("Choose one from the navigation."),
    };
    return html`<${Problem} error=${error} />`;
  }
  if (module?.error) {
    const hint = module.error.message;
    const message = t("{view} could not be shown.", { view: view.label });
    return html`<${Problem} error=${{ message, hint }} retry=${reload} />`;
  }
  const Shown = module?.default;
  if (!Shown || loaded.get(view.name) !== module) return html`<${Loading} label=${view.label} />`;
  return html`<${Shown} key=${view.name} route=${route} />`;
}

/** A browser never retries a module that failed to load, so the page is reloaded at the same place. */
function reload() {
  location.reload();
}

/** @param {{ onClose: () => void }} props */
function KeyHelp({ onClose }) {
  const list = useBindings().filter((one) => one.keys);
  const single = useStore(singleKeys);
  const groups = [...new Set(list.map((one) => one.group ?? t("Here")))];
  /** @param {string} group */
  const inGroup = (group) => list.filter((one) => (one.group ?? t("Here")) === group);
  return html`
    <${Dialog} title=${t("Keyboard shortcuts")} onClose=${onClose}>
      <div class="key-groups">
        ${groups.map((group) => html`<${KeyGroup} key=${group} name=${group} list=${inGroup(group)} />`)}
      </div>
      <label class="key-switch">
        <input type="checkbox" class="switch" role="switch" checked=${single} onChange=${toggleSingleKeys} />
        <span>${t("Single-key shortcuts")}<span class="muted">
          ${t("Shortcuts without Ctrl or Alt, such as J and K in lists. In the chat, what you type always goes into the message.")}</span></span>
      </label>
    <//>
  `;
}

/** @param {{ name: string, list: Binding[] }} props */
function KeyGroup({ name, list }) {
  return html`
    <h3>${name}</h3>
    <dl class="key-list">
      ${list.map(
        (one) => html`
        <div key=${one.keys}>
          <dt>${one.label}</dt>
          <dd class="keys">${shown(one.keys ?? "").map((key) => html`<kbd>${key}</kbd>`)}</dd>
        </div>
      `,
      )}
    </dl>
  `;
}

function SignedOut() {
  return html`
    <main id="main" class="alone">
      <img src=${fileAddress("favicon.svg")} alt="" width="56" height="56" />
      <h1>${t("You are signed out")}</h1>
      <p>
        ${t("This browser is no longer signed in to the dashboard. Nothing is lost: sessions continue without it.")}</p>
      <p>${t("To get a one-time link, run this on the machine where Hermes runs:")}</p>
      <p><code>hermes dashboard --link</code></p>
      <p><a class="button primary" href="/login">${t("Sign in")}</a></p>
    </main>
  `;
}
