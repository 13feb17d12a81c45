// A file that a turn wrote: opened in a dialog, or downloaded.
/** @import { Answer } from "../../types/page.d.ts" */

import { api, errorText, sessionPath } from "../../app/api.js";
import { IconLink } from "../../app/parts/basics.js";
import { languageOfFile } from "../../app/parts/highlight.js";
import { Button, Code, Dialog, Loading, size } from "../../app/parts.js";
import { t } from "../../app/translation.js";
import { html, useEffect, useState } from "../../app/ui.js";

/** @typedef {{ session: string, turn: string, path: string }} WrittenProps */
/** @typedef {Answer<"GET", "/api/sessions/x/written">} WrittenAnswer */

/** @param {WrittenProps} props */
function downloadAddress({ session, turn, path }) {
  return `${sessionPath(session, "written", "download")}?${new URLSearchParams({ path, turn })}`;
}

/**
 * Buttons to open and to download a file.
 * @param {WrittenProps} props
 */
export function WrittenActions(props) {
  const [open, setOpen] = useState(false);
  const name = props.path.split("/").pop() ?? "";
  return html`<span class="written">
    <${Button} kind="quiet" icon="eye" label=${t("Open {name}", { name })} onClick=${() => setOpen(true)} />
    <${IconLink} icon="download" label=${t("Download {name}", { name })} href=${downloadAddress(props)}
      download=${name} />
    ${open && html`<${WrittenFile} ...${props} onClose=${() => setOpen(false)} />`}
  </span>`;
}

/** @param {WrittenProps & { onClose: () => void }} props */
function WrittenFile({ onClose, ...file }) {
  const [found, setFound] = useState(
    /** @type {(WrittenAnswer & { error?: undefined }) | { error: unknown } | null} */ (null),
  );
  useEffect(() => {
    const { session, path, turn } = file;
    api
      .get(sessionPath(session, "written"), { path, turn })
      .then(setFound, (error) => setFound({ error }));
  }, []);
  return html`<${Dialog} title=${file.path} class="wide" onClose=${onClose}>
    ${
      found === null
        ? html`<${Loading} />`
        : "bytes" in found
          ? html`<${Content} found=${found} address=${downloadAddress(file)} />`
          : html`<p>${errorText(found.error)}</p>`
    }<//>`;
}

/** @param {{ found: WrittenAnswer, address: string }} props */
function Content({ found, address }) {
  const name = found.path.split("/").pop() ?? "";
  if (found.kind === "picture")
    return html`<img class="written-picture" src=${address} alt=${name} />`;
  if (found.kind === "other")
    return html`<p class="muted">${t("This file can't be shown here ({size}).", { size: size(found.bytes) })}</p>
      <p><a class="button" href=${address} download=${name}>${t("Download")}</a></p>`;
  return html`${
    found.is_cut &&
    html`<p
      class="muted">${t("Showing the beginning of {size}.", { size: size(found.bytes) })}</p>`
  }
    <${Code} text=${found.text} name=${name} language=${languageOf(name)} />`;
}

/**
 * The language of a file; endings that can be previewed are kept as they are.
 * @param {string} name
 */
function languageOf(name) {
  const ending = name.includes(".") ? (name.split(".").pop() ?? "").toLowerCase() : "";
  return /^(html?|svg|md|mmd|mermaid)$/.test(ending) ? ending : languageOfFile(name);
}
