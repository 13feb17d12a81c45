// Starts the page: asks for this browser's scopes, and draws the frame.

import { api, profile, scopes, sharedStore } from "./api.js";
import { watchAttention } from "./attention.js";
import { Frame } from "./frame.js";
import { keepFocus } from "./kept_focus.js";
import { listen } from "./keys.js";
import { connection, watch } from "./pending_requests.js";
import { t } from "./translation.js";
import { afterFrame, html, render } from "./ui.js";

const WORKER_DELAY_MS = 1500;
const root = /** @type {HTMLElement} */ (document.getElementById("app"));
listen();

function whoAmI() {
  if (scopes.value !== null) return;
  api.get("/api/auth").then(
    (who) => {
      sharedStore.set(who.shared_store);
      profile.set(who.profile ?? "");
      scopes.set(who.scopes);
    },
    () => {}, // A 401 shows the sign-in screen; any other error is retried once the feed is live.
  );
}

whoAmI();
connection.watch((state) => state === "live" && whoAmI());
// In a task of its own: a slow phone can answer a touch between running the modules and drawing.
setTimeout(() => {
  root.replaceChildren();
  render(html`<${Frame} />`, root);
  afterFrame(() => {
    watch();
    watchAttention();
    keepFocus();
  });
});

/** The worker can't read the page's sentences: what it may have to say without the server is left in its cache. */
async function startWorker() {
  await navigator.serviceWorker?.register("/service-worker.js");
  const shell = await caches.open("hermes-shell");
  await shell.put("/notice-words", new Response(t("Something happened in a session.")));
}

// Only once the page is there: what the worker keeps is not needed to draw it. Without https it is not available.
addEventListener("load", () => setTimeout(() => startWorker().catch(() => {}), WORKER_DELAY_MS));
