// Who made a change, with a link to the session.
/** @import { Origin } from "../../types/page.d.ts" */
import { linkTo } from "../../app/router.js";
import { html } from "../../app/ui.js";

/** @type {Record<string, string>} */
const BY = {
  user: "by you",
  model: "by Hermes in a session",
  review: "by a review",
  hermes: "by Hermes",
  import: "by an import",
};

/** @param {{ origin: Origin }} props */
export function OriginLabel({ origin }) {
  const words = BY[origin.by ?? "user"] ?? `by ${origin.by}`;
  return origin.session ? html`<a href=${linkTo("sessions", origin.session)}>${words}</a>` : words;
}
