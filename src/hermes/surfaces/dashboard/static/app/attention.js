// What waits for the user or has finished: in the title of the tab, on the app's icon, and as notifications.
/** @import { HermesEvent } from "../types/page.d.ts" */

import { changes, waiting } from "./pending_requests.js";
import { t } from "./translation.js";
import { kept, Store } from "./ui.js";

/** Sessions whose turn ended while nobody looked at them. */
export const finished = new Store(/** @type {Set<string>} */ (new Set()));

/** Whether this browser shows notifications while the page is open but not in front. */
export const notifying = new Store(kept.get("notifications") === "on");

let title = "Hermes";

/** @param {string} text */
export function setTitle(text) {
  title = text;
  show();
}

/**
 * Somebody looks at a session.
 * @param {string} session
 */
export function lookedAt(session) {
  if (!finished.value.has(session)) return;
  finished.set(new Set([...finished.value].filter((one) => one !== session)));
}

/** The session that the chat shows, from the address. */
function shownSession() {
  const [, view, session] = location.hash.split(/[/?]/);
  return view === "chat" ? decodeURIComponent(session ?? "") : "";
}

function show() {
  const count = waiting.value.length;
  const mark = count ? `(${count}) ` : finished.value.size ? "• " : "";
  document.title = mark + title;
  const badge = count + finished.value.size;
  if (badge) navigator.setAppBadge?.(badge).catch(() => {});
  else navigator.clearAppBadge?.().catch(() => {});
}

/** @param {HermesEvent | null} event */
function noteEnd(event) {
  if (event?.type !== "agent.turn.ended" || event.root_session_id !== undefined) return;
  const session = event.session_id ?? "";
  if (!document.hidden && shownSession() === session) return;
  finished.set(new Set([...finished.value, session]));
  notify(t("A turn has finished"), session);
}

/** @type {Set<string>} */
let known = new Set();

function noteWaiting() {
  const now = waiting.value.map((one) => `${one.session_id} ${one.call_id ?? one.kind}`);
  for (const [place, key] of now.entries()) {
    const one = waiting.value[place];
    if (!known.has(key)) notify(t("Hermes waits for your answer"), one.session_id, one.title);
  }
  known = new Set(now);
}

/**
 * @param {string} text
 * @param {string} session
 * @param {string} [about]
 */
function notify(text, session, about = "") {
  if (!document.hidden || !notifying.value || Notification.permission !== "granted") return;
  const note = new Notification(text, { body: about, tag: session, icon: "/icon-192.png" });
  note.onclick = () => {
    window.focus();
    location.hash = `/chat/${encodeURIComponent(session)}`;
    note.close();
  };
}

/** Begins to watch; the page does so once. */
export function watchAttention() {
  waiting.watch(() => {
    noteWaiting();
    show();
  });
  finished.watch(show);
  changes.watch(({ event }) => noteEnd(event));
}

/**
 * Turns notifications on or off. Resolves to whether they are on; the browser may refuse.
 * @param {boolean} isWanted
 */
export async function setNotifying(isWanted) {
  const isOn = isWanted && (await Notification.requestPermission()) === "granted";
  kept.set("notifications", isOn ? "on" : null);
  notifying.set(isOn);
  return isOn;
}
