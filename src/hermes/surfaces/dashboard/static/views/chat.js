// The chat.
import { html } from "../app/ui.js";
import { Empty } from "../app/parts.js";

export default function Chat() {
  return html`<${Empty} icon="chat" title="Chat" />`;
}
