// Notifications of this browser: while the page is open, and by web push while it is not.
import { api, errorText } from "../../app/api.js";
import { notifying, setNotifying } from "../../app/attention.js";
import { toast } from "../../app/parts/toast.js";
import { t } from "../../app/translation.js";
import { html, useEffect, useState, useStore } from "../../app/ui.js";
import { useLoaded, whenLoaded } from "../loading.js";

export function Notifications() {
  const push = useLoaded(() => api.get("/api/push"), []);
  return html`
    <section class="card stack">
      <h2>${t("Notifications on this device")}</h2>
      <p class="muted">${t("When Hermes waits for your answer or has finished, and this page is not in front.")}</p>
      <${WhileOpen} />
      ${whenLoaded(push, ({ available, key }) => html`<${WhileClosed} available=${available} serverKey=${key} />`)}
    </section>
  `;
}

function WhileOpen() {
  const isOn = useStore(notifying);
  const isPossible = "Notification" in window;
  /** @param {Event & { target: HTMLInputElement }} event */
  const change = async (event) => {
    const isWanted = event.target.checked;
    const isNow = await setNotifying(isWanted);
    event.target.checked = isNow;
    if (isWanted && !isNow)
      toast(t("The browser does not allow notifications of this page."), "bad");
  };
  return html`<label class="key-switch">
    <input type="checkbox" class="switch" role="switch" checked=${isOn} disabled=${!isPossible} onChange=${change} />
    <span>${t("While the page is open")}<span class="muted">${
      isPossible
        ? t("Shown by this browser.")
        : t("This browser has no notifications here. They need https.")
    }</span></span></label>`;
}

/** @param {{ available: boolean, serverKey: string }} props */
function WhileClosed({ available, serverKey }) {
  const [isOn, setOn] = useState(false);
  const isPossible = available && "serviceWorker" in navigator && "PushManager" in window;
  useEffect(() => {
    if (isPossible) subscription().then((one) => setOn(one !== null));
  }, [isPossible]);
  /** @param {Event & { target: HTMLInputElement }} event */
  const change = async (event) => {
    const { target } = event;
    try {
      if (target.checked) await subscribe(serverKey);
      else await leave();
    } catch (error) {
      toast(t("Web push could not be changed: {error}", { error: errorText(error) }), "bad");
    }
    const isNow = (await subscription()) !== null;
    setOn(isNow);
    target.checked = isNow;
  };
  const why = available
    ? t("This browser has no web push here. It needs https, on iPhones also the installed app.")
    : t("The dashboard lacks the library cryptography (the extra push).");
  return html`<label class="key-switch">
    <input type="checkbox" class="switch" role="switch" checked=${isOn} disabled=${!isPossible} onChange=${change} />
    <span>${t("While it is closed (web push)")}<span class="muted">${
      isPossible
        ? t("A push carries no text: your browser asks this dashboard what happened.")
        : why
    }</span></span></label>`;
}

async function subscription() {
  const worker = await navigator.serviceWorker.getRegistration("/");
  return (await worker?.pushManager.getSubscription()) ?? null;
}

/** @param {string} serverKey */
async function subscribe(serverKey) {
  const worker = await navigator.serviceWorker.register("/service-worker.js");
  await navigator.serviceWorker.ready;
  const made = await worker.pushManager.subscribe({
    userVisibleOnly: true,
    applicationServerKey: serverKey,
  });
  await api.post("/api/push", { endpoint: made.endpoint });
}

async function leave() {
  const made = await subscription();
  if (!made) return;
  await api.post("/api/push/leave", { endpoint: made.endpoint });
  await made.unsubscribe();
}
