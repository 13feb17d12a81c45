// The service worker: keeps the files of the page, shows notifications. It never keeps an answer of the API.
/** @import { WorkerScope } from "../types/page.d.ts" */

const SHELL = "hermes-shell";
const VERSIONED = /^\/static\/v\/[^/]+\//;
const worker = /** @type {WorkerScope} */ (/** @type {unknown} */ (self));

worker.addEventListener("install", () => worker.skipWaiting());
worker.addEventListener("activate", (event) => event.waitUntil(worker.clients.claim()));

worker.addEventListener("fetch", (event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  if (request.method !== "GET" || origin !== location.origin) return;
  if (request.mode === "navigate" && pathname === "/") event.respondWith(openPage(request));
  else if (VERSIONED.test(pathname) || pathname.startsWith("/static/vendor/"))
    event.respondWith(keepFile(request));
});

/**
 * The page from the server; the one of last time while the server can't be reached, which then says so.
 * @param {Request} request
 */
async function openPage(request) {
  const shell = await caches.open(SHELL);
  try {
    const answer = await fetch(request);
    if (answer.ok && answer.type === "basic" && !answer.redirected) {
      await shell.put("/", answer.clone());
      dropOtherVersions(shell, await answer.clone().text());
    }
    return answer;
  } catch (error) {
    const last = await shell.match("/");
    if (last) return last;
    throw error;
  }
}

/** @param {Request} request */
async function keepFile(request) {
  const shell = await caches.open(SHELL);
  const kept = await shell.match(request);
  if (kept) return kept;
  const answer = await fetch(request);
  if (answer.ok) await shell.put(request, answer.clone());
  return answer;
}

/**
 * @param {Cache} shell
 * @param {string} page
 */
async function dropOtherVersions(shell, page) {
  const files = /data-files="([^"]+)"/.exec(page)?.[1];
  for (const request of await shell.keys()) {
    const { pathname } = new URL(request.url);
    if (files && VERSIONED.test(pathname) && !pathname.startsWith(`${files}/`))
      await shell.delete(request);
  }
}

// A push carries no text. What happened is asked for here, with the cookie, so nobody on the way reads it.
worker.addEventListener("push", (event) => event.waitUntil(notify()));

async function notify() {
  const open = await worker.clients.matchAll({ type: "window" });
  if (open.some((page) => page.focused)) return;
  const answer = await fetch("/api/notice").catch(() => null);
  const notice = answer?.ok ? await answer.json() : null;
  await worker.registration.showNotification(notice?.title || "Hermes", {
    body: notice?.body || (await wordsOfPage()),
    tag: notice?.session_id || "hermes",
    icon: "/icon-192.png",
    badge: "/icon-192.png",
    data: { session: notice?.session_id || "" },
  });
  const waiting = notice?.waiting ?? 0;
  if (waiting) await navigator.setAppBadge?.(waiting);
}

/** What a notification says while the server can't be asked, as the page left it here in its language. */
async function wordsOfPage() {
  const left = await (await caches.open(SHELL)).match("/notice-words");
  return left ? left.text() : "";
}

worker.addEventListener("notificationclick", (event) => {
  event.notification.close();
  const { session } = event.notification.data ?? {};
  event.waitUntil(show(session ? `/#/chat/${encodeURIComponent(session)}` : "/"));
});

/** @param {string} address */
async function show(address) {
  const [page] = await worker.clients.matchAll({ type: "window" });
  if (!page) return worker.clients.openWindow(address);
  await page.navigate(address);
  return page.focus();
}
