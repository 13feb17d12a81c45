// Reviews a plugin before it is enabled: shows every file. Exactly these files are enabled, by their hash.
/** @import { PluginFile, PluginRow, Saving } from "../../types/page.d.ts" */
import { api, asFailure } from "../../app/api.js";
import { Button, Icon } from "../../app/parts/basics.js";
import { Code } from "../../app/parts/code.js";
import { Dialog } from "../../app/parts/dialog.js";
import { size } from "../../app/parts/format.js";
import { languageOfFile } from "../../app/parts/highlight.js";
import { toast } from "../../app/parts/toast.js";
import { t } from "../../app/translation.js";
import { html, isOpen, useState } from "../../app/ui.js";
import { FieldError } from "../inputs.js";
import { useLoaded, whenLoaded } from "../loading.js";
import { labelOf, refreshPlugins } from "./plugin_store.js";

/** @param {{ name: string, onClose: () => void }} props */
export function ReviewDialog({ name, onClose }) {
  const content = useLoaded(() => api.get(`/api/plugins/${name}`), [name]);
  const [state, setState] = useState(/** @type {Saving} */ ({ busy: false, error: null }));
  const enable = async () => {
    setState({ busy: true, error: null });
    try {
      const answer = await api.put(`/api/plugins/${name}`, {
        enabled: true,
        hash: content.value?.plugin.hash,
      });
      await refreshPlugins(answer);
      const found = answer.plugins.find((one) => one.name === name);
      if (found?.state === "enabled") toast(t("Enabled {name}.", { name: labelOf(found) }), "good");
      onClose();
    } catch (error) {
      setState({ busy: false, error: asFailure(error) });
      content.again();
    }
  };
  const actions = html`
    <${Button} kind="quiet" onClick=${onClose}>${t("Not now")}<//>
    <${Button}
      kind="primary"
      icon="check"
      busy=${state.busy}
      disabled=${!content.value?.files.length}
      onClick=${enable}
    >
      ${t("Enable exactly this")}
    <//>
  `;
  return html`
    <${Dialog} title=${t("Enable {name}?", { name })} class="wide" onClose=${onClose} actions=${actions}>
      ${whenLoaded(
        content,
        ({ plugin, folder, files }) => html`
          <div class="stack">
            ${state.error && html`<${FieldError} error=${state.error} />`}
            <${Warning} plugin=${plugin} />
            <dl class="facts">
              <dt>${t("Folder")}</dt>
              <dd class="mono">${folder}</dd>
              <dt>${"SHA-256"}</dt>
              <dd class="mono hash">${plugin.hash}</dd>
            </dl>
            <h3>${t("{count} file", "{count} files", { count: files.length })}</h3>
            <${Files} files=${files} first=${`dashboard/${plugin.api}`} />
          </div>
        `,
      )}
    <//>
  `;
}

/** @param {{ plugin: PluginRow }} props */
function Warning({ plugin }) {
  const reach = plugin.api
    ? [
        t("Its Python code runs as you, inside the dashboard."),
        t("It can do whatever you can, see every event, and read every session."),
      ].join(" ")
    : t("Its page runs in this browser as you: it can do whatever this page can.");
  return html`
    <p class="row top">
      <${Icon} name="warn" />
      <span>${reach} ${t("Enable it only if you trust whoever wrote it.")}</span>
    </p>
  `;
}

/**
 * `first` is the path of the file that is shown at once.
 * @param {{ files: PluginFile[], first: string }} props
 */
function Files({ files, first }) {
  return html`
    <ul class="plain">
      ${files.map((file) => html`<${File} key=${file.path} file=${file} open=${file.path === first} />`)}
    </ul>
  `;
}

/** @param {{ file: PluginFile, open: boolean }} props */
function File({ file, open }) {
  const [shown, setShown] = useState(open);
  return html`
    <li>
      <details class="fold plugin-file" open=${open} onToggle=${(event) => setShown(isOpen(event))}>
        <summary><code>${file.path}</code> <span>${size(file.size)}</span></summary>
        ${shown && html`<${Text} file=${file} />`}
      </details>
    </li>
  `;
}

/** @param {{ file: PluginFile }} props */
function Text({ file: { path, text } }) {
  if (text !== null)
    return html`<${Code} name=${path} language=${languageOfFile(path)} text=${text} />`;
  return html`<p class="muted">${t("Not text, or too long to show. It is part of the hash.")}</p>`;
}
