// The arguments of a tool call.

/**
 * Arguments of a call: the object, or null when they are not JSON.
 * @param {string} text
 * @returns {Record<string, any> | null}
 */
export function argumentsOf(text) {
  try {
    const value = JSON.parse(text || "{}");
    return value && typeof value === "object" && !Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}
