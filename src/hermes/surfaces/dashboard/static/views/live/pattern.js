// Patterns over topics as the bus has them: `*` is exactly one segment, `**` zero or more, anywhere.
import { t } from "../../app/translation.js";

/**
 * Several patterns with blanks or commas between them: [patterns, what is wrong].
 * @param {string} text
 * @returns {[string[], string]}
 */
export function parsePatterns(text) {
  const patterns = text.split(/[\s,]+/).filter(Boolean);
  const bad = patterns.find((pattern) => !pattern.split(".").every(isPart));
  if (bad) return [[], notPattern(bad)];
  return [patterns.length ? patterns : ["**"], ""];
}

/** @param {string} pattern */
function notPattern(pattern) {
  return t("{pattern} is not a pattern: a star stands for a whole segment between dots.", {
    pattern,
  });
}

/** @param {string} part */
function isPart(part) {
  return part !== "" && (!part.includes("*") || part === "*" || part === "**");
}

/**
 * A test for topics. Answers are remembered, as the same few topics come again and again.
 * @param {string[]} patterns
 * @returns {(topic: string) => boolean}
 */
export function matcher(patterns) {
  const wanted = patterns.map((pattern) => pattern.split("."));
  const known = new Map();
  return (topic) => {
    let found = known.get(topic);
    if (found === undefined) {
      const parts = topic.split(".");
      found = wanted.some((pattern) => fits(pattern, parts));
      if (known.size < 10_000) known.set(topic, found);
    }
    return found;
  };
}

/**
 * @param {string[]} pattern
 * @param {string[]} parts
 */
function fits(pattern, parts) {
  // Which prefixes of the topic the pattern so far can end at: no backtracking, however many stars there are.
  let ends = new Set([0]);
  for (const part of pattern) {
    const next = new Set();
    for (const end of ends) {
      if (part === "**") for (let to = end; to <= parts.length; to++) next.add(to);
      else if (end < parts.length && (part === "*" || part === parts[end])) next.add(end + 1);
    }
    ends = next;
  }
  return ends.has(parts.length);
}
