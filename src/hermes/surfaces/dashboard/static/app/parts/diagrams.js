// Diagrams: Mermaid draws them in a sandboxed frame, and the page shows the result as a picture.
import { t } from "../translation.js";
import { fileAddress } from "../ui.js";
import { openSandbox } from "./sandbox.js";

const LIBRARY = "/static/vendor/mermaid-js-tiny-12.0.0/mermaid.js";
const TIMEOUT_MS = 20_000;
const MOST_KEPT = 60; // pictures

/** @typedef {{ svg: string, width: number, height: number }} Drawing */
/** @typedef {Drawing & { id: number, error?: string }} DiagramReply */
/** @typedef {{ frame: HTMLIFrameElement, port: MessagePort }} DiagramHost */

/** @type {Promise<DiagramHost> | null} */
let host = null;
/** @type {Map<number, (reply: DiagramReply) => void>} */
const waiting = new Map();
/** @type {Map<string, Promise<Drawing>>} */
const kept = new Map();
let last = 0;

/** @param {string} address */
async function textAt(address) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(t("{address} is not there.", { address }));
  return answer.text();
}

/** @returns {Promise<DiagramHost>} */
async function openHost() {
  const files = [LIBRARY, fileAddress("app/diagram_frame.js")];
  const scripts = await Promise.all(files.map(textAt));
  const frame = document.createElement("iframe");
  frame.title = t("Diagrams");
  frame.tabIndex = -1;
  frame.setAttribute("aria-hidden", "true");
  // Out of sight, but with a size: without one, Mermaid could not measure text.
  frame.style.cssText = "position:fixed;left:-3000px;top:0;width:1200px;height:800px;border:0";
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = ({ data }) => waiting.get(data?.id)?.(data);
  const ready = openSandbox(frame, { scripts }, [port2]);
  document.body.append(frame);
  await ready;
  return { frame, port: port1 };
}

/**
 * One line of what Mermaid's parser says: where, and what it did not expect.
 * @param {string} text
 */
function reasonOf(text) {
  const where = text.split("\n")[0].replace(/[:.]\s*$/, "");
  const got = /, got '(.+)'/.exec(text)?.[1];
  return (got ? t("{where}, unexpected {got}.", { where, got }) : `${where}.`).slice(0, 200);
}

/**
 * A diagram as a picture. Throws an Error that says why there is none.
 * @param {string} text
 * @param {boolean} isDark
 * @returns {Promise<Drawing>}
 */
export function draw(text, isDark) {
  const key = `${isDark} ${text}`;
  const found = kept.get(key) ?? request(text, isDark);
  kept.delete(key);
  kept.set(key, found); // the one that was used last is dropped last
  for (const old of kept.keys()) if (kept.size > MOST_KEPT) kept.delete(old);
  return found;
}

/**
 * @param {string} text
 * @param {boolean} isDark
 * @returns {Promise<Drawing>}
 */
async function request(text, isDark) {
  host ??= openHost();
  const mine = host;
  try {
    const { frame, port } = await mine;
    const id = ++last;
    const reply = await new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        if (host === mine) host = null;
        frame.remove(); // it may be busy for good; the next diagram gets another frame
        reject(new Error(t("Drawing took too long.")));
      }, TIMEOUT_MS);
      waiting.set(id, (answer) => {
        clearTimeout(timer);
        waiting.delete(id);
        resolve(answer);
      });
      port.postMessage({ id, text, isDark });
    });
    if (reply.error) throw new Error(reasonOf(reply.error));
    return reply;
  } catch (error) {
    if (error instanceof TypeError && host === mine) host = null; // it could not be loaded
    throw error;
  }
}
