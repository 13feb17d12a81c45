// Who made a change, with a link to the session.
/** @import { Origin } from "../../types/page.d.ts" */

import { linkTo } from "../../app/router.js";
import { t } from "../../app/translation.js";
import { html } from "../../app/ui.js";

/** @type {Record<string, string>} */
const BY = {
  user: t("by you"),
  model: t("by Hermes in a session"),
  review: t("by a review"),
  hermes: t("by Hermes"),
  import: t("by an import"),
};

/** @param {{ origin: Origin }} props */
export function OriginLabel({ origin }) {
  const words = BY[origin.by ?? "user"] ?? t("by {who}", { who: origin.by ?? "" });
  return origin.session ? html`<a href=${linkTo("sessions", origin.session)}>${words}</a>` : words;
}
