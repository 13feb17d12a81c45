// Sessions: the list with its search, and the timeline of one.
/** @import { Route } from "../types/page.d.ts" */
import { html, useStyle } from "../app/ui.js";
import { SessionList } from "./sessions/list.js";
import { Timeline } from "./sessions/timeline.js";

/** @param {{ route: Route }} props */
export default function Sessions({ route }) {
  const ready = useStyle("views/sessions.css");
  if (!ready) return null;
  const [id] = route.parts;
  return id
    ? html`<${Timeline} key=${id} id=${id} route=${route} />`
    : html`<${SessionList} route=${route} />`;
}
