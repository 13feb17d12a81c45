// Text that a person has to judge: invisible and text-reordering characters are shown by their code.
// Joiners and variation selectors stay: they are part of words and emoji, and harmless.
const HIDDEN = new RegExp(
  `[${[
    "\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180e",
    "\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u2800\\u3164\\ufeff\\uffa0\\ufff9-\\ufffb",
    "\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e0fff}",
  ].join("")}]`,
  "gu",
);

/**
 * The text with every such character as its code, such as ⟦U+202E⟧.
 * @param {string} text
 */
export function revealHidden(text) {
  return text.replace(
    HIDDEN,
    (sign) => `⟦U+${(sign.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}⟧`,
  );
}

/**
 * The same for all strings in JSON; other text is treated as a whole.
 * @param {string} text
 */
export function revealHiddenJson(text) {
  try {
    return JSON.stringify(
      JSON.parse(text, (_, value) => (typeof value === "string" ? revealHidden(value) : value)),
    );
  } catch {
    return revealHidden(text);
  }
}
