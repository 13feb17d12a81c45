// Copies text, even if the page is not served over a secure connection.
import { t } from "../translation.js";
import { html, useState } from "../ui.js";
import { Button } from "./basics.js";
import { toast } from "./toast.js";

/** @param {string} text */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text);
  }
}

/** @param {string} text */
function copyBySelection(text) {
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "offscreen";
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done;
}

/**
 * A button that copies; it says so for a moment.
 * @param {{ text: string | (() => string), label?: string }} props
 */
export function Copy({ text, label = t("Copy") }) {
  const [done, setDone] = useState(false);
  const run = async () => {
    const isCopied = await copy(typeof text === "function" ? text() : text);
    if (!isCopied) return toast(t("The browser did not allow copying."), "bad");
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  };
  const [icon, name] = done ? ["check", t("Copied")] : ["copy", label];
  return html`<${Button} kind="quiet" class="copy" icon=${icon} label=${name} onClick=${run} />`;
}
