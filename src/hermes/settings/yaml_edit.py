"""Changes one value in a YAML text and preserves every other byte.

Values are replaced at the marks of the parsed nodes. Where that is not possible (flow mappings, anchors), a ruamel.yaml
round trip keeps comments but may change whitespace. The caller validates the result.
"""

import io
import json
import re

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.nodes import CollectionNode, MappingNode, Node, ScalarNode

from hermes.settings.config_problems import compose
from hermes.settings.yaml_read import parse_yaml

_PLAIN = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./+@ -]*(?<! )")
_UNSAFE = re.compile(r"[\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]")


def with_value(text: str, path: tuple[str, ...], value: object) -> list[str]:
    """Yields candidates for `text` with `value` at `path`, the least invasive first."""
    bom, body = text[: text.startswith("\ufeff")], text.removeprefix("\ufeff")
    spliced = _Splice(body).set(path, value)
    candidates = [] if spliced is None else [bom + spliced]
    return [*candidates, bom + _round_trip(body, path, value)]


def without_value(text: str, path: tuple[str, ...]) -> list[str]:
    """Yields candidates for `text` without the key at `path`, the least invasive first."""
    bom, body = text[: text.startswith("\ufeff")], text.removeprefix("\ufeff")
    spliced = _Splice(body).remove(path)
    candidates = [] if spliced is None else [bom + spliced]
    return [*candidates, bom + _round_trip(body, path, ...)]


def scalar(value: object, style: str | None = None) -> str:
    """Formats `value` as one line of YAML. Text keeps the quotes named by `style`, if possible."""
    if isinstance(value, float) and value in {float("inf"), float("-inf")}:
        return ".inf" if value > 0 else "-.inf"
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if style == "'" and value.isprintable():
        return "'" + value.replace("'", "''") + "'"
    if (
        style is None
        and _PLAIN.fullmatch(value)
        and parse_yaml(f"v: {value}") == {"v": value}
    ):
        return value
    quoted = json.dumps(value, ensure_ascii=False)
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", quoted)


class _Splice:
    """The text of one file and the nodes in it."""

    def __init__(self, text: str) -> None:
        self.text = text
        documents = compose(text)
        self.root = documents[0] if documents else None
        self.ending = "\r\n" if "\r\n" in text else "\n"

    def set(self, path: tuple[str, ...], value: object) -> str | None:
        """Returns the new text, or None if this shape needs the round trip."""
        if self.root is None or _is_null(self.root):
            return (
                self._append(path, value)
                if not self.text.strip() or self._only_comments()
                else None
            )
        node, parent, key = self.root, self.root, None
        for depth, name in enumerate(path):
            if _is_null(node) and key is not None:
                return self._fill(key, parent, path[depth:], value)
            if not isinstance(node, MappingNode) or node.anchor:
                return None
            entry = _entry(node, name)
            if entry is None:
                insert = self._insert_flow if node.flow_style else self._insert
                return insert(node, path[depth:], value)
            parent, key, node = node, entry[0], entry[1]
        if key is None:
            return None
        return self._overwrite(key, node, parent, value)

    def remove(self, path: tuple[str, ...]) -> str | None:
        node: Node | None = self.root
        key: Node | None = None
        parent = node
        for name in path:
            if not isinstance(node, MappingNode):
                return None
            entry = _entry(node, name)
            if entry is None:
                return self.text
            parent, (key, node) = node, entry
        if key is None or node is None or parent is None or node.anchor:
            return None
        if isinstance(parent, MappingNode) and parent.flow_style:
            return self._remove_flow(parent, key, node)
        start = self._line_start(key.start_mark.index)
        if self.text[start : key.start_mark.index].strip(" "):
            return None
        end = self._content_end(node, key, parent)
        return self.text[:start] + self.text[self._next_line(end) :]

    def _overwrite(
        self, key: Node, node: Node, parent: Node, value: object
    ) -> str | None:
        if (
            node.anchor
            or node.start_mark.index < key.end_mark.index
            or str(node.tag).startswith("!")
        ):
            return None
        if _is_null(node) and not node.value:
            at = self._after_colon(key)
            return f"{self.text[:at]} {scalar(value)}{self.text[at:]}"
        if not isinstance(node, ScalarNode):
            if not _is_flow(node):
                return None
            return (
                self.text[: node.start_mark.index]
                + scalar(value)
                + self.text[node.end_mark.index :]
            )
        end = node.end_mark.index
        if node.style in {"|", ">"}:
            end = self._content_end(node, key, parent)
        style = (
            node.style if node.style in {"'", '"'} and isinstance(value, str) else None
        )
        return (
            self.text[: node.start_mark.index] + scalar(value, style) + self.text[end:]
        )

    def _fill(
        self, key: Node | None, parent: Node, path: tuple[str, ...], value: object
    ) -> str | None:
        """Adds the first key to an empty section."""
        if key is None:
            return None
        line_end = self._line_end(self._after_colon(key))
        indent = parent.start_mark.column + self._step()
        return self._put(line_end, self._block(path, value, indent))

    def _insert(
        self, node: MappingNode, path: tuple[str, ...], value: object
    ) -> str | None:
        """Adds a key after the last one of a block; at the end of the file if that block is the
        whole file.
        """
        if node is self.root and not re.search(r"^\.\.\.", self.text, re.MULTILINE):
            return self._append(path, value)
        key, last = node.value[-1]
        if last.anchor or (
            last.start_mark.index < key.end_mark.index and not _is_null(last)
        ):
            return None
        end = self._content_end(last, key, node)
        return self._put(
            self._line_end(end), self._block(path, value, node.start_mark.column)
        )

    def _insert_flow(
        self, node: MappingNode, path: tuple[str, ...], value: object
    ) -> str | None:
        """Adds a key to `{a: 1}`, after the last one."""
        if len(path) > 1:
            return None
        entry = f"{scalar(path[0])}: {scalar(value)}"
        if not node.value:
            return (
                self.text[: node.start_mark.index]
                + f"{{{entry}}}"
                + self.text[node.end_mark.index :]
            )
        at = node.value[-1][1].end_mark.index
        return f"{self.text[:at]}, {entry}{self.text[at:]}"

    def _remove_flow(self, parent: MappingNode, key: Node, node: Node) -> str:
        """Removes a key from `{a: 1, b: 2}` with its comma."""
        place = next(index for index, pair in enumerate(parent.value) if pair[0] is key)
        start, end = key.start_mark.index, node.end_mark.index
        if place > 0:
            start = parent.value[place - 1][1].end_mark.index
        elif len(parent.value) > 1:
            end = parent.value[1][0].start_mark.index
        return self.text[:start] + self.text[end:]

    def _append(self, path: tuple[str, ...], value: object) -> str:
        column = (
            self.root.start_mark.column if isinstance(self.root, MappingNode) else 0
        )
        return self._put(
            len(self.text.rstrip("\r\n")), self._block(path, value, column)
        )

    def _put(self, at: int, block: str) -> str:
        before, after = self.text[:at], self.text[at:]
        if not before:
            return block + self.ending + after
        return before + self.ending + block + (after or self.ending)

    def _block(self, path: tuple[str, ...], value: object, column: int) -> str:
        lines = [
            " " * (column + depth * self._step()) + scalar(name) + ":"
            for depth, name in enumerate(path)
        ]
        return self.ending.join(lines) + " " + scalar(value)

    def _step(self) -> int:
        """Returns the file's indentation width."""
        if isinstance(self.root, MappingNode):
            for _, value in self.root.value:
                if isinstance(value, MappingNode) and not value.flow_style:
                    return value.start_mark.column - self.root.start_mark.column
        return 2

    def _content_end(self, node: Node, key: Node, parent: Node) -> int:
        """Returns where a value ends, before its comment or line end."""
        while not isinstance(node, ScalarNode) and not _is_flow(node) and node.value:
            if isinstance(node, MappingNode):
                parent, (key, node) = node, node.value[-1]
            else:
                parent, node = node, node.value[-1]
        if _is_null(node) and not node.value:
            return self._after_colon(key)
        if not isinstance(node, ScalarNode) or node.style not in {"|", ">"}:
            return node.end_mark.index
        end = self._line_end(node.start_mark.index)
        while end < len(self.text):
            start = self._next_line(end)
            line = self.text[start : self._line_end(start)]
            if (
                line.strip()
                and len(line) - len(line.lstrip(" ")) <= parent.start_mark.column
            ):
                break
            end = self._line_end(start)
            if start >= len(self.text):
                break
        return len(self.text[:end].rstrip())

    def _after_colon(self, key: Node) -> int:
        return self.text.index(":", key.end_mark.index) + 1

    def _line_start(self, index: int) -> int:
        return self.text.rfind("\n", 0, index) + 1

    def _line_end(self, index: int) -> int:
        end = self.text.find("\n", index)
        end = len(self.text) if end < 0 else end
        if end and self.text[end - 1] == "\r" and end > index:
            return end - 1
        return end

    def _next_line(self, index: int) -> int:
        end = self.text.find("\n", index)
        return len(self.text) if end < 0 else end + 1

    def _only_comments(self) -> bool:
        return all(
            not line.strip() or line.lstrip().startswith("#")
            for line in self.text.split("\n")
        )


def _entry(node: MappingNode, name: str) -> tuple[Node, Node] | None:
    return next(((key, value) for key, value in node.value if key.value == name), None)


def _is_null(node: Node) -> bool:
    return isinstance(node, ScalarNode) and str(node.tag).endswith(":null")


def _is_flow(node: Node) -> bool:
    return isinstance(node, CollectionNode) and bool(node.flow_style)


def _round_trip(text: str, path: tuple[str, ...], value: object) -> str:
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 4096
    data = yaml.load(text)
    data = CommentedMap() if data is None else data
    below = data
    for name in path[:-1]:
        if below.get(name) is None:
            if value is ...:
                return text
            below[name] = CommentedMap()
        below = below[name]
    if value is ...:
        below.pop(path[-1], None)
    else:
        below[path[-1]] = value
    output = io.StringIO()
    yaml.dump(data, output)
    dumped = output.getvalue()
    return (
        dumped.replace("\r\n", "\n").replace("\n", "\r\n") if "\r\n" in text else dumped
    )
