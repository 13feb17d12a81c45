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

/**
 * Opens the frame and gives it what it shows. Resolves when it is there.
 * @param {HTMLIFrameElement} frame that has no address yet
 * @param {{ html: string } | { scripts: string[] }} content
 * @param {MessagePort[]} [ports]
 * @returns {Promise<void>}
 */
export function openSandbox(frame, content, ports = []) {
  frame.setAttribute("sandbox", "allow-scripts");
  frame.setAttribute("referrerpolicy", "no-referrer");
  const ready = new Promise((/** @type {(value?: undefined) => void} */ resolve) => {
    frame.addEventListener("load", () => resolve(), { once: true });
  });
  frame.src = "/preview";
  // Its origin is opaque, so it can't be named; the frame ignores messages of anybody but this page.
  return ready.then(() => frame.contentWindow?.postMessage(content, "*", ports));
}
