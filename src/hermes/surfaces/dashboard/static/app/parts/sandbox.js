// Frames for what a model wrote: one that runs nothing, and one that runs scripts.

const STILL_POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:; " + // not translated
  "media-src data: blob:; font-src data:; " + // not translated
  "base-uri 'none'; form-action 'none'";
const STILL_HEAD = `<!doctype html><meta charset="utf-8"><meta http-equiv="x-dns-prefetch-control" content="off">
<meta http-equiv="Content-Security-Policy" content="${STILL_POLICY}">`;

/**
 * Shows a page without running anything in it: its frame may not, whatever the page says.
 * @param {HTMLIFrameElement} frame
 * @param {string} text
 */
export function showStill(frame, text) {
  frame.setAttribute("sandbox", "");
  frame.setAttribute("referrerpolicy", "no-referrer");
  // A link may connect to its server ahead of time, which no policy forbids, and a browser connects before the policy
  // stops a page that wants to go elsewhere. A frame could hold both. A `meta` may stand where a link may.
  const harmless = text
    .replace(/(<\/?)link\b/gi, "$1meta")
    .replace(/(<\/?)(?=i?frame)/gi, "$1x-")
    .replace(/http-equiv/gi, "x-http-equiv");
  frame.srcdoc = STILL_HEAD + harmless;
}

/**
 * Whether this browser can keep the scripts of a page off the network: `preview.html` must see all text that becomes
 * elements.
 */
export const canRunScripts = () => "trustedTypes" in window;

// The document of the second frame comes from /preview, which the server sends with a sandbox policy: an origin of its
// own, no cookies, no network. The attribute says the same once more.
const READY_MS = 1000; // after its load, a document has said that it is there; an error page says nothing
const LOAD_MS = 3000; // for an address of its own, whose name may never be found

/**
 * Opens the frame and gives it what it shows. Resolves when it is there.
 * @param {HTMLIFrameElement} frame that has no address yet
 * @param {{ html: string } | { scripts: string[] }} content
 * @param {MessagePort[]} [ports]
 * @returns {Promise<void>}
 */
export async function openSandbox(frame, content, ports = []) {
  frame.setAttribute("referrerpolicy", "no-referrer");
  const own = "html" in content && addressOfItsOwn();
  const isThere = own && (await opens(frame, own, "allow-scripts allow-same-origin", LOAD_MS));
  if (!isThere) await opens(frame, "/preview", "allow-scripts");
  // Its origin may be opaque, so it can't be named; the frame ignores messages of anybody but this page.
  frame.contentWindow?.postMessage(content, "*", ports);
}

/**
 * An address on this machine under a name that nothing else has, or "". There, the document can cancel each attempt to
 * leave, before the browser connects. See preview_origins.py.
 */
function addressOfItsOwn() {
  const { protocol, hostname, port } = location;
  if (protocol !== "http:" || !["127.0.0.1", "localhost"].includes(hostname)) return "";
  if (!("navigation" in window)) return "";
  const random = crypto.getRandomValues(new Uint8Array(16));
  const name = [...random].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return `http://preview-${name}.localhost${port && `:${port}`}/preview`;
}

/**
 * Loads the document; false if something else came, such as an error page.
 * @param {HTMLIFrameElement} frame
 * @param {string} address
 * @param {string} rights
 * @param {number} [patience] in milliseconds; without it, the load is waited for
 * @returns {Promise<boolean>}
 */
function opens(frame, address, rights, patience) {
  frame.setAttribute("sandbox", rights);
  return new Promise((resolve) => {
    let isLoaded = false;
    let isReady = false;
    const look = () => isLoaded && isReady && finish(true);
    const hear = (/** @type {MessageEvent} */ { source, data }) => {
      if (source !== frame.contentWindow || data !== "ready") return;
      isReady = true;
      look();
    };
    const load = () => {
      isLoaded = true;
      look();
      setTimeout(() => finish(false), READY_MS);
    };
    const finish = (/** @type {boolean} */ isThere) => {
      removeEventListener("message", hear);
      frame.removeEventListener("load", load);
      resolve(isThere);
    };
    addEventListener("message", hear);
    frame.addEventListener("load", load, { once: true });
    frame.src = address;
    if (patience) setTimeout(() => finish(false), patience);
  });
}
