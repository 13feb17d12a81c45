// Schedules: the jobs, one of them with its past, and the form in which they are made and changed.
/** @import { Route } from "../types/page.d.ts" */
import { html, useStyle } from "../app/ui.js";
import { JobForm } from "./schedules/form.js";
import { Job } from "./schedules/job.js";
import { JobList } from "./schedules/list.js";

/** @param {{ route: Route }} props */
export default function Schedules({ route }) {
  const ready = useStyle("views/schedules.css");
  if (!ready) return null;
  const [id, part] = route.parts;
  if (id === "new" || part === "edit")
    return html`<${JobForm} key=${route.path} id=${id === "new" ? "" : id} />`;
  return id ? html`<${Job} key=${id} id=${id} />` : html`<${JobList} />`;
}
