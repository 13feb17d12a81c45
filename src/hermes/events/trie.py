"""Matches topics to subscriptions.

Owns the segment trie. Writers hold the bus's lock; a reader needs none, because every change is one
store that it sees either before or after: a finished branch is linked, a tuple is replaced, an
empty branch is unlinked.
"""

from typing import Generic, TypeVar

ONE = "*"
ANY = "**"

Value = TypeVar("Value")


class _Node(Generic[Value]):
    __slots__ = ("any", "kids", "one", "values")

    def __init__(self) -> None:
        self.kids: dict[str, _Node[Value]] = {}
        self.one: _Node[Value] | None = None
        self.any: _Node[Value] | None = None
        self.values: tuple[Value, ...] = ()

    def child(self, segment: str) -> "_Node[Value] | None":
        if segment == ONE:
            return self.one
        if segment == ANY:
            return self.any
        return self.kids.get(segment)

    def link(self, segment: str, node: "_Node[Value]") -> None:
        if segment == ONE:
            self.one = node
        elif segment == ANY:
            self.any = node
        else:
            self.kids[segment] = node

    def unlink(self, segment: str) -> None:
        if segment == ONE:
            self.one = None
        elif segment == ANY:
            self.any = None
        else:
            del self.kids[segment]

    def is_empty(self) -> bool:
        return not (self.values or self.kids or self.one or self.any)


class Trie(Generic[Value]):
    """Values stored under dotted patterns: `*` matches one segment, `**` any number of them."""

    __slots__ = ("_root",)

    def __init__(self) -> None:
        self._root: _Node[Value] = _Node()

    def add(self, pattern: str, value: Value) -> None:
        """Stores `value` under `pattern`; the same one may be stored under others too."""
        segments = pattern.split(".")
        node = self._root
        for position, segment in enumerate(segments):
            child = node.child(segment)
            if child is None:
                node.link(segment, _branch(segments[position + 1 :], value))
                return
            node = child
        node.values = (*node.values, value)

    def remove(self, pattern: str, value: Value) -> None:
        """Removes `value` and prunes empty branches; a missing value is ignored."""
        node = self._root
        path: list[tuple[_Node[Value], str]] = []
        for segment in pattern.split("."):
            child = node.child(segment)
            if child is None:
                return
            path.append((node, segment))
            node = child
        node.values = tuple(kept for kept in node.values if kept is not value)
        while path and node.is_empty():
            node, segment = path.pop()
            node.unlink(segment)

    def match(self, topic: str) -> list[Value]:
        """Returns every value whose pattern matches `topic`, once per pattern, in no particular order."""
        here = [self._root]
        # A `**` swallows any number of segments: once reached, its node stays a place to go on from.
        open_ended: dict[_Node[Value], None] = {}
        _follow_any(here, open_ended)
        for segment in topic.split("."):
            reached: list[_Node[Value]] = []
            for node in (*here, *open_ended) if open_ended else here:
                kid = node.kids.get(segment)
                if kid is not None:
                    reached.append(kid)
                one = node.one
                if one is not None:
                    reached.append(one)
            if not reached and not open_ended:
                return []
            here = reached
            _follow_any(here, open_ended)
        return [value for node in (*here, *open_ended) for value in node.values]

    def is_empty(self) -> bool:
        """Whether nothing is stored, not even an empty branch."""
        return self._root.is_empty()


def _branch(segments: list[str], value: Value) -> _Node[Value]:
    """Builds a complete branch from its tip, so that no reader ever meets a partial one."""
    node: _Node[Value] = _Node()
    node.values = (value,)
    for segment in reversed(segments):
        parent: _Node[Value] = _Node()
        parent.link(segment, node)
        node = parent
    return node


def _follow_any(
    nodes: list[_Node[Value]], open_ended: dict[_Node[Value], None]
) -> None:
    """Adds the `**` nodes that can be entered from `nodes` without consuming a segment."""
    for node in nodes:
        deeper = node.any
        while deeper is not None and deeper not in open_ended:
            open_ended[deeper] = None
            deeper = deeper.any
