// Sessions: the list with its search, and the timeline of one.
import { html, useStyle } from "../app/ui.js";
import { SessionList } from "./sessions/list.js";
import { Timeline } from "./sessions/timeline.js";

export default function Sessions({ route }) {
  const ready = useStyle("views/sessions.css");
  if (!ready) return null;
  const [id] = route.parts;
  return id
    ? html`<${Timeline} key=${id} id=${id} route=${route} />`
    : html`<${SessionList} route=${route} />`;
}
