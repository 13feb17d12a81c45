// Attachments of an earlier message, which go along again when it is edited. The server has them; this only names them.
/** @import { EarlierAttachments, UserItem } from "../../types/page.d.ts" */
import { sessionPath } from "../../app/api.js";
import { Button, Icon } from "../../app/parts.js";
import { t } from "../../app/translation.js";
import { html, kept, useEffect, useState } from "../../app/ui.js";
import { typed } from "./message_parts.js";

/**
 * All attachments of a message; null if there are none. Files that its words name are attached by them.
 * @param {string} session
 * @param {UserItem} item
 * @returns {EarlierAttachments | null}
 */
export function attachmentsOf(session, item) {
  const { text, along } = typed(item.text);
  const images = item.images.flatMap(({ source }, index) => (isNamed(text, source) ? [] : [index]));
  const files = along
    .filter((one) => one.kind === "attached" && !isNamed(text, one.name))
    .map((one) => one.name);
  return held({ session, seq: item.seq, images, files, recordings: [...item.recordings.keys()] });
}

/**
 * Whether a message's words name a file with `@`: by its path, or by its end.
 * @param {string} text
 * @param {string} path
 */
function isNamed(text, path) {
  const named = [...text.matchAll(/@"?([^\s"]+)/g)].map(([, name]) => name);
  return named.some((name) => path === name || path.endsWith(`/${name}`));
}

/**
 * Attachments, or null if none are left.
 * @param {EarlierAttachments} earlier
 */
function held(earlier) {
  const { images, files, recordings } = earlier;
  return images.length + files.length + recordings.length ? earlier : null;
}

/** @param {string} session */
const keyOf = (session) => `earlier.${session || "new"}`;

/**
 * Keeps them with the draft of a session.
 * @param {string} session
 * @param {EarlierAttachments | null} earlier
 */
export function keepEarlier(session, earlier) {
  kept.set(keyOf(session), earlier && JSON.stringify(earlier));
}

/**
 * Those of the draft of a session.
 * @param {string} session
 * @returns {[EarlierAttachments | null, (earlier: EarlierAttachments | null) => void]}
 */
export function useEarlier(session) {
  const [earlier, setEarlier] = useState(() => read(kept.get(keyOf(session))));
  useEffect(() => keepEarlier(session, earlier), [session, earlier]);
  return [earlier, setEarlier];
}

/**
 * @param {string | null} stored
 * @returns {EarlierAttachments | null}
 */
function read(stored) {
  try {
    return JSON.parse(stored ?? "null");
  } catch {
    return null;
  }
}

/**
 * Shows them; with `onChange`, they can be removed.
 * @param {{ earlier: EarlierAttachments, onChange?: (earlier: EarlierAttachments | null) => void }} props
 */
export function EarlierChips({ earlier, onChange }) {
  /** @param {string} name @param {EarlierAttachments} rest */
  const remove = (name, rest) =>
    onChange &&
    html`<${Button} kind="quiet" icon="close" label=${t("Remove {name}", { name })}
      onClick=${() => onChange(held(rest))} />`;
  /** @template T @param {T[]} list @param {T} one */
  const without = (list, one) => list.filter((other) => other !== one);
  const { session, seq, images, files, recordings } = earlier;
  return html`${
    images.length > 0 &&
    html`<ul class="attached">${images.map((index) => {
      const name = t("Picture {number}", { number: index + 1 });
      return html`<li key=${index}><img src=${sessionPath(session, "pictures", `${seq}`, `${index}`)} alt=${name} />
        ${remove(name, { ...earlier, images: without(images, index) })}</li>`;
    })}</ul>`
  }${
    files.length + recordings.length > 0 &&
    html`<ul class="attached-files">${files.map((path) => {
      const name = path.split("/").pop() ?? path;
      return html`<li key=${path} class="tag"><${Icon} name="file" size=${14} /><span title=${path}>${name}</span>
        ${remove(name, { ...earlier, files: without(files, path) })}</li>`;
    })}${recordings.map(
      (
        index,
      ) => html`<li key=${index} class="tag"><${Icon} name="mic" size=${14} /><span>${t("Recording")}</span>
        ${remove(t("Recording"), { ...earlier, recordings: without(recordings, index) })}</li>`,
    )}</ul>`
  }`;
}
