// Starts the page: asks for this browser's scopes, and draws the frame.
import { api, scopes, sharedStore } from "./api.js";
import { Frame } from "./frame.js";
import { listen } from "./keys.js";
import { connection, watch } from "./pending_requests.js";
import { html, render } from "./ui.js";

const root = /** @type {HTMLElement} */ (document.getElementById("app"));
listen();

function whoAmI() {
  if (scopes.value !== null) return;
  api.get("/api/auth").then(
    (who) => {
      sharedStore.set(who.shared_store);
      scopes.set(who.scopes);
    },
    () => {}, // A 401 shows the sign-in screen; any other error is retried once the feed is live.
  );
}

whoAmI();
connection.watch((state) => state === "live" && whoAmI());
root.replaceChildren();
render(html`<${Frame} />`, root);
watch();
