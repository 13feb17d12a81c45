// How the sessions began that were looked at lately: their names in lists until they have a title.

const MOST = 50; // sessions

/** @type {Map<string, string>} */
const beginnings = new Map();

/**
 * @param {string} session
 * @param {string} words
 */
export function noteBeginning(session, words) {
  if (words) beginnings.set(session, words);
  if (beginnings.size > MOST) beginnings.delete([...beginnings.keys()][0]);
}

/**
 * How a session began, or "" if that is not known.
 * @param {string} session
 */
export function knownBeginning(session) {
  return beginnings.get(session) ?? "";
}
