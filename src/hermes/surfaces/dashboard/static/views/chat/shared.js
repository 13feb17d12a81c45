// What a new chat and an open session share: dialogs that are loaded when they are used, and what is chosen.
/** @import { Child, Mode } from "../../types/page.d.ts" */
import { may } from "../../app/api.js";
import { Dialog, Loading, Problem, tryTo } from "../../app/parts.js";
import { t } from "../../app/translation.js";
import { html, kept, useEffect, useState } from "../../app/ui.js";
import { MODES, mayChoose } from "./approvals.js";

export const BACKGROUND_WORK = () => import("./background_work.js");
export const LOADING = html`<div class="scroll"><${Loading} label=${t("Loading the session")} /></div>`;
const MARKDOWN = () =>
  import("../../app/parts/markdown.js").then((one) => ({ default: one.Markdown }));

/**
 * @typedef {{ kind: "said", title: string, text: string, next?: string }} SaidOverlay
 * @typedef {{ kind: "model" | "approvals" | "context" | "diff" | "files" | "cost" | "background", turn?: string }
 *   | SaidOverlay} Overlay
 */

/**
 * The model chosen for a session in this browser; "" for that of the settings, null for none chosen.
 * @param {string} id
 * @returns {[string | null, (name: string | null) => void]}
 */
export function useModel(id) {
  const [model, set] = useState(() => kept.get(`model.${id || "new"}`));
  const choose = (/** @type {string | null} */ name) => {
    kept.set(`model.${id || "new"}`, name);
    set(name);
  };
  return [model, choose];
}

/**
 * What `/approvals MODE` does: chooses, or shows the choice.
 * @param {(mode: Mode) => void} choose
 * @param {() => void} show
 */
export function chooseMode(choose, show) {
  return async (/** @type {string} */ name) => {
    const mode = MODES.find((one) => one.name === name)?.name;
    if (!mode || (mode !== "ask" && !may("approve"))) show();
    else if (await mayChoose(mode)) choose(mode);
  };
}

/** @typedef {() => Promise<{ default: any }>} Load */

/** @type {Map<Load, { default: any }>} */
const loadedParts = new Map();

/**
 * A part that is loaded when it is first used; `children` stand in for it meanwhile. A dialog that can't be loaded is
 * closed.
 * @param {{ load: Load, onClose?: () => void, children?: Child, [name: string]: unknown }} props
 */
export function OnDemand({ load, children = null, ...props }) {
  const [loaded, setLoaded] = useState(() => loadedParts.get(load) ?? null);
  const [isMissing, setIsMissing] = useState(false);
  useEffect(() => {
    if (loaded) return;
    tryTo(load).then((module) => {
      if (!module) return props.onClose ? props.onClose() : setIsMissing(true);
      loadedParts.set(load, module);
      setLoaded(module);
    });
  }, []);
  if (isMissing) {
    const message = t("{view} could not be shown.", { view: t("Chat") });
    return html`<${Problem} error=${{ message }} retry=${() => location.reload()} />`;
  }
  return loaded ? html`<${loaded.default} ...${props} />` : children;
}

/**
 * What a command says.
 * @param {{ said: SaidOverlay, onClose: () => void }} props
 */
export function Said({ said, onClose }) {
  return html`<${Dialog} title=${said.title} class="wide" onClose=${onClose}>
    <${OnDemand} load=${MARKDOWN} text=${said.text}><${Loading} label=${said.title} /><//><//>`;
}
