// Pasted, dropped or chosen pictures: read, and resized if large.
/** @import { AttachedPicture } from "../../types/page.d.ts" */
const KINDS = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);
const LARGE_BYTES = 3 * 1024 * 1024; // bytes from which a picture is made smaller
const LONGEST_PX = 2048; // pixels of its longer side then
const MOST = 20;

export { MOST };

/**
 * The pictures among files of a paste or a drop.
 * @param {DataTransfer | null} transfer
 */
export function picturesIn(transfer) {
  return [...(transfer?.files ?? [])].filter((file) => file.type.startsWith("image/"));
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
      `${file.name || "That"} can't be read as a picture. Use PNG, JPEG, GIF or WebP.`,
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
      blob ? resolve(blob) : reject(new Error("The picture could not be made smaller."));
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
    reader.onerror = () => reject(new Error("The picture could not be read."));
    reader.readAsDataURL(blob);
  });
}
