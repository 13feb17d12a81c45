// What a person typed, and what was attached to it, in the text of a message.

const BLOCK = /\n\n<(attached path|skill name)="([^\n]*)">\n([\s\S]*?)\n<\/(?:attached|skill)>/g;

/** @typedef {{ kind: string, name: string, content: string }} Attachment */

/**
 * The text a person typed, and its attachments.
 * @param {string} text
 */
export function typed(text) {
  const along = [...text.matchAll(BLOCK)].map(([, head, name, content]) => ({
    kind: head.split(" ")[0],
    name,
    content,
  }));
  return { text: text.replace(BLOCK, ""), along };
}
