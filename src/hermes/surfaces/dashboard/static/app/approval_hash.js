// The hash of a request for approval as it is shown: an answer that allows something carries it, and counts for that
// request alone. The server computes the same (`core/answers.py`).
/** @import { ApprovalRequest } from "../types/page.d.ts" */
/** @type {(keyof ApprovalRequest)[]} */
const FIELDS = [
  "call_id",
  "name",
  "arguments",
  "summary",
  "reason",
  "reach",
  "shape",
  "scope",
  "binding",
  "memorable",
];

/**
 * SHA-256, in hexadecimal digits.
 * @param {ApprovalRequest} request
 */
export async function approvalHash(request) {
  const bytes = new TextEncoder().encode(JSON.stringify(FIELDS.map((name) => request[name])));
  // Browsers offer theirs over https and on this machine only; a proxy may serve the page over http.
  if (!crypto.subtle) return sha256(bytes);
  const digest = await crypto.subtle.digest("SHA-256", bytes);
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * The SHA-256 of FIPS 180-4, in hexadecimal digits.
 * @param {Uint8Array} bytes
 */
function sha256(bytes) {
  /** @type {number[]} */
  const primes = [];
  for (let n = 2; primes.length < 64; n++) if (primes.every((prime) => n % prime)) primes.push(n);
  /** @param {number} root */
  const fraction = (root) => ((root % 1) * 2 ** 32) | 0;
  const constants = primes.map((prime) => fraction(Math.cbrt(prime)));
  const state = primes.slice(0, 8).map((prime) => fraction(Math.sqrt(prime)));
  const padded = new DataView(new ArrayBuffer((((bytes.length + 8) >> 6) + 1) << 6));
  new Uint8Array(padded.buffer).set(bytes);
  padded.setUint8(bytes.length, 0x80);
  padded.setBigUint64(padded.byteLength - 8, BigInt(bytes.length) * 8n);
  for (let at = 0; at < padded.byteLength; at += 64) addBlock(state, padded, at, constants);
  return state.map((word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
}

/**
 * @param {number[]} state
 * @param {DataView} data
 * @param {number} at
 * @param {number[]} constants
 */
function addBlock(state, data, at, constants) {
  /**
   * @param {number} word
   * @param {number} bits
   */
  const turned = (word, bits) => (word >>> bits) | (word << (32 - bits));
  /** @type {number[]} */
  const w = [];
  let [a, b, c, d, e, f, g, h] = state;
  for (let i = 0; i < 64; i++) {
    if (i < 16) w[i] = data.getInt32(at + 4 * i);
    else {
      const [x, y] = [w[i - 15], w[i - 2]];
      const [s0, s1] = [
        turned(x, 7) ^ turned(x, 18) ^ (x >>> 3),
        turned(y, 17) ^ turned(y, 19) ^ (y >>> 10),
      ];
      w[i] = (w[i - 16] + s0 + w[i - 7] + s1) | 0;
    }
    const chosen = (e & f) ^ (~e & g);
    const t1 =
      (h + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + chosen + constants[i] + w[i]) | 0;
    const t2 = ((turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    [a, b, c, d, e, f, g, h] = [(t1 + t2) | 0, a, b, c, (d + t1) | 0, e, f, g];
  }
  [a, b, c, d, e, f, g, h].forEach((word, i) => {
    state[i] = (state[i] + word) | 0;
  });
}
