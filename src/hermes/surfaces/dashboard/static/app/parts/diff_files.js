// A unified diff of several files, split into its files, and those as a tree.

/**
 * @typedef {object} ChangedFile
 * @property {string} path
 * @property {string} was what it was called before, if that is another name
 * @property {"added" | "deleted" | "renamed" | "changed"} status
 * @property {number} added
 * @property {number} removed
 * @property {string} text its part of the diff
 */

/** @typedef {{ name: string, folders: FileTree[], files: ChangedFile[] }} FileTree */

/** @type {Record<string, number>} */
const ESCAPES = { n: 10, t: 9, r: 13, '"': 34, "\\": 92, a: 7, b: 8, f: 12, v: 11 };

/**
 * A name as git writes it: in quotes, with escapes, where it has unusual letters.
 * @param {string} name
 */
export function unquote(name) {
  if (!/^".*"$/.test(name)) return name.replace(/\t$/, "");
  const bytes = [];
  for (const [, octal, sign, plain] of name.slice(1, -1).matchAll(/\\(\d{3})|\\(.)|([^\\]+)/gu)) {
    if (octal) bytes.push(parseInt(octal, 8));
    else if (sign) bytes.push(ESCAPES[sign] ?? sign.charCodeAt(0));
    else bytes.push(...new TextEncoder().encode(plain));
  }
  return new TextDecoder().decode(new Uint8Array(bytes));
}

/**
 * @param {string} line
 * @param {string} prefix
 */
function nameIn(line, prefix) {
  const name = unquote(line.slice(prefix.length));
  return name.replace(/^[ab]\//, "");
}

/**
 * @param {string} text
 * @returns {ChangedFile}
 */
function readFile(text) {
  const lines = text.split("\n");
  const body = lines.findIndex((line) => line.startsWith("@@ "));
  const head = body < 0 ? lines : lines.slice(0, body);
  const rest = body < 0 ? [] : lines.slice(body);
  const find = (/** @type {string} */ prefix) => {
    const line = head.find((one) => one.startsWith(prefix));
    const name = line ? nameIn(line, prefix) : "";
    return name === "/dev/null" ? "" : name;
  };
  const [before, after] = [
    find("--- ") || find("rename from "),
    find("+++ ") || find("rename to "),
  ];
  const path = after || before || headerName(head[0]);
  const isRenamed = head.some((line) => line.startsWith("rename to "));
  const isNew = head.some((line) => line.startsWith("new file"));
  const isGone = head.some((line) => line.startsWith("deleted file"));
  return {
    path,
    was: isRenamed ? before : "",
    status: isNew ? "added" : isGone ? "deleted" : isRenamed ? "renamed" : "changed",
    added: rest.filter((line) => line.startsWith("+")).length,
    removed: rest.filter((line) => line.startsWith("-")).length,
    text,
  };
}

/**
 * The name in `diff --git a/NAME b/NAME`, for files whose content has no lines.
 * @param {string} [line]
 */
function headerName(line = "") {
  const names = line.replace(/^diff --git /, "");
  const half = names.slice(Math.ceil(names.length / 2));
  return unquote(half).replace(/^b\//, "");
}

/**
 * The files of a diff, and the lines behind them that are about none.
 * @param {string} diff
 * @returns {{ files: ChangedFile[], notes: string[] }}
 */
export function splitFiles(diff) {
  const [first, ...parts] = diff.split(/^(?=diff --git )/m);
  const all = first.startsWith("diff --git ") ? [first, ...parts] : parts;
  /** @type {string[]} */
  const notes = first.startsWith("diff --git ") ? [] : first.split("\n");
  const files = all.map((text) => {
    const lines = text.replace(/\n$/, "").split("\n");
    while (
      /^(?:permissions of|not shown:|not saved:|\.\.\. [\d,]+ more lines)/.test(lines.at(-1) ?? "")
    )
      notes.push(lines.pop() ?? "");
    return readFile(lines.join("\n"));
  });
  return { files, notes: notes.filter(Boolean) };
}

/**
 * Files as a tree. Folders with nothing but one folder in them are one row.
 * @param {ChangedFile[]} files
 * @returns {FileTree}
 */
export function treeOf(files) {
  /** @type {FileTree} */
  const top = { name: "", folders: [], files: [] };
  for (const file of files) {
    let at = top;
    for (const name of file.path.split("/").slice(0, -1)) {
      let next = at.folders.find((one) => one.name === name);
      if (!next) {
        next = { name, folders: [], files: [] };
        at.folders.push(next);
      }
      at = next;
    }
    at.files.push(file);
  }
  return { ...top, folders: top.folders.map(joined) };
}

/**
 * @param {FileTree} tree
 * @returns {FileTree}
 */
function joined(tree) {
  if (tree.files.length || tree.folders.length !== 1)
    return { ...tree, folders: tree.folders.map(joined) };
  const [only] = tree.folders;
  return joined({ ...only, name: `${tree.name}/${only.name}` });
}
