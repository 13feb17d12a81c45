// The keys that answer approval requests. They answer the request that has the focus, or the only one that is open.
/** @import { Ref } from "../../types/page.d.ts" */

import { useKeys } from "../../app/keys.js";
import { toast } from "../../app/parts.js";
import { t } from "../../app/translation.js";
import { Store, useLayoutEffect, useRef, useState, useStore } from "../../app/ui.js";

const GRACE_MS = 300; // milliseconds before a key can be meant for a request that has just appeared

/** @typedef {{ answer: string, label: string, key: string }} Choice */

/**
 * A request that keys can answer. `since`: when keys began to be meant for it.
 * @typedef {object} OpenCard
 * @property {Ref<HTMLElement | null>} box
 * @property {Choice[]} offered
 * @property {(choice: any) => unknown} answer
 * @property {number} since
 */

/** Every request that is shown and not answered yet. */
const openCards = new Store(/** @type {OpenCard[]} */ ([]));

/**
 * Lets keys answer a request while it is open. Returns whether it is the only one.
 * @param {boolean} isOpen
 * @param {Omit<OpenCard, "since">} request
 */
export function useApprovalKeys(isOpen, request) {
  const [card] = useState(() => ({ ...request, since: performance.now() }));
  Object.assign(card, request);
  const cards = useStore(openCards);
  useLayoutEffect(() => {
    if (!isOpen) return;
    openCards.set([...openCards.value, card]);
    return () => openCards.set(openCards.value.filter((one) => one !== card));
  }, [isOpen]);
  const isOnly = cards.length === 1 && cards[0] === card;
  const wasOnly = useRef(false);
  if (isOnly && !wasOnly.current) card.since = performance.now(); // keys were meant for the one before
  wasOnly.current = isOnly;
  useKeys(
    choicesOf(cards[0] === card ? cards : []).map(({ answer, label, key }) => ({
      keys: `Alt+${key}`,
      label,
      group: t("Waiting for you"),
      typing: true,
      run: () => answerByKey(answer),
    })),
  );
  return isOnly;
}

/**
 * What can be answered to at least one of the requests.
 * @param {OpenCard[]} cards
 */
function choicesOf(cards) {
  return [...new Map(cards.flatMap((card) => card.offered).map((one) => [one.key, one])).values()];
}

/** @param {string} answer */
function answerByKey(answer) {
  const cards = openCards.value;
  const focused = document.activeElement?.closest(".asking");
  const only = cards.length === 1 ? cards[0] : null;
  const card = focused ? cards.find((one) => one.box.current === focused) : only;
  if (!card) {
    toast(
      t(
        "More than one request is open. Click the one you mean, or go to it with Tab, and press the keys again.",
      ),
    );
    return true;
  }
  const isOffered = card.offered.some((one) => one.answer === answer);
  if (!isOffered || performance.now() - card.since < GRACE_MS) return false;
  card.answer(answer);
  return true;
}
