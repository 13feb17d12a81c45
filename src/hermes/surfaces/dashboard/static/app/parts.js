// Shared pieces of the views, under one name.

export { Ansi, readAnsi } from "./parts/ansi.js";
export { Button, Empty, Icon, Keys, Loading, Problem, Tag, Time, Words } from "./parts/basics.js";
export { Code } from "./parts/code.js";
export { Copy, copy } from "./parts/copy.js";
export { ask, confirm, Dialog } from "./parts/dialog.js";
export { Diff, readDiff } from "./parts/diff.js";
export {
  absolute,
  ago,
  clock,
  count,
  duration,
  money,
  plural,
  size,
  tokens,
} from "./parts/format.js";
export { Highlighted, languageOf, languageOfFile } from "./parts/highlight.js";
export { Markdown } from "./parts/markdown.js";
export { toast, tryTo } from "./parts/toast.js";
export { ToolCard } from "./parts/tool_card.js";
