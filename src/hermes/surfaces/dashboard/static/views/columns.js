// The head of a table of numbers.
import { html } from "../app/ui.js";

/** @param {{ titles: string[] }} props */
export function Columns({ titles }) {
  return html`
    <thead>
      <tr>${titles.map((title, index) => html`<th key=${index} scope="col">${title}</th>`)}</tr>
    </thead>
  `;
}
