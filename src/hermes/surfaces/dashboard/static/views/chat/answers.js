// Sends what a person answers to a request for approval or to a question.
import { api, errorText, sessionPath } from "../../app/api.js";
import { toast } from "../../app/parts.js";
import { refreshWaiting } from "../../app/pending_requests.js";
import { t } from "../../app/translation.js";

/**
 * Sends an answer, or the value of a promise; shows a message if another answer came first.
 * @param {`/api/sessions/${string}/${"approvals" | "questions"}/${string}`} path
 * @param {object | Promise<object>} body
 * @param {(state: string) => void} set
 * @returns {Promise<boolean>}
 */
export async function give(path, body, set) {
  set("sending");
  try {
    const { counted } = await api.post(path, /** @type {any} */ (await body));
    if (!counted) toast(t("This was already answered, or nothing waits for the answer any more."));
    set("given");
    refreshWaiting();
    return counted;
  } catch (error) {
    set("");
    toast(errorText(error), "bad");
    return false;
  }
}

/**
 * Answers a question with text. Resolves to whether the answer counted.
 * @param {{ session: string, call: string }} question
 * @param {string} text
 * @param {(state: string) => void} [set]
 * @param {string[]} [recordings] in which it was said
 */
export function answerQuestion({ session, call }, text, set = () => {}, recordings = []) {
  return give(sessionPath(session, "questions", call), { text, recordings }, set);
}
