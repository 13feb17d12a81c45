// The hash of a request for approval as it is shown: an answer that allows something carries it, and counts for that
// request alone. The server computes the same (`core/answers.py`).
const FIELDS = ["call_id", "name", "arguments", "summary", "reason", "reach", "shape", "scope", "binding", "memorable"];

/** SHA-256, in hexadecimal digits. */
export async function approvalHash(request) {
  const text = JSON.stringify(FIELDS.map((name) => request[name]));
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
