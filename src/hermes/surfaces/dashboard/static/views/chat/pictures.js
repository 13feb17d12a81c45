// Pasted, dropped or chosen files: pictures are resized if large, anything else is sent as it is.
/** @import { AttachedFile, AttachedPicture } from "../../types/page.d.ts" */
import { t } from "../../app/translation.js";

const KINDS = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);
const LARGE_BYTES = 3 * 1024 * 1024; // bytes from which a picture is made smaller
const LONGEST_PX = 2048; // pixels of its longer side then
const MOST = 20;

export { MOST };

const LARGEST_BYTES = 11 * 1024 * 1024; // of a file; a request takes 16 MB, and base64 adds a third

/** @param {File} file */
export function isPicture(file) {
  return file.type.startsWith("image/") && file.type !== "image/svg+xml";
}

/**
 * A file as {name, data}. Throws an Error with a message for the user.
 * @param {File} file
 * @returns {Promise<AttachedFile>}
 */
export async function readFile(file) {
  if (file.size > LARGEST_BYTES)
    throw new Error(
      t("{name} is too large to send: more than 11 MB. Copy it to the machine.", {
        name: file.name,
      }),
    );
  return { name: file.name, data: await base64(file), bytes: file.size };
}

/**
 * A file as {media_type, data, url, name}. Throws an Error with a message for the user.
 * @param {File} file
 * @returns {Promise<AttachedPicture>}
 */
export async function readPicture(file) {
  const blob = KINDS.has(file.type) && file.size <= LARGE_BYTES ? file : await smaller(file);
  return {
    media_type: blob.type,
    data: await base64(blob),
    url: URL.createObjectURL(blob),
    source: "",
    name: file.name,
  };
}

/**
 * @param {File} file
 * @returns {Promise<Blob>}
 */
async function smaller(file) {
  let bitmap;
  try {
    bitmap = await createImageBitmap(file);
  } catch {
    throw new Error(
      file.name
        ? t("{name} can't be read as a picture. Use PNG, JPEG, GIF or WebP.", { name: file.name })
        : t("That can't be read as a picture. Use PNG, JPEG, GIF or WebP."),
    );
  }
  const scale = Math.min(1, LONGEST_PX / Math.max(bitmap.width, bitmap.height));
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [
    Math.round(bitmap.width * scale),
    Math.round(bitmap.height * scale),
  ];
  canvas.getContext("2d")?.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve, reject) => {
    const take = (/** @type {Blob | null} */ blob) =>
      blob ? resolve(blob) : reject(new Error(t("The picture could not be made smaller.")));
    canvas.toBlob(take, "image/jpeg", 0.88);
  });
}

/**
 * @param {Blob} blob
 * @returns {Promise<string>}
 */
function base64(blob) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).replace(/^[^,]*,/, ""));
    reader.onerror = () => reject(new Error(t("The file could not be read.")));
    reader.readAsDataURL(blob);
  });
}
