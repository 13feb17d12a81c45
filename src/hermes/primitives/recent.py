"""A map that keeps the newest entries and drops the oldest."""

from collections.abc import Callable, Iterator, MutableMapping
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class RecentDict(MutableMapping[K, V]):
    """A map of at most `max_entries`, ordered from the oldest to the newest.

    Setting a key makes it the newest; reading it does so only through `get_or_make`. If there are too many entries, the
    oldest is removed and passed to `on_evict`.
    """

    __slots__ = ("_entries", "_max_entries", "_on_evict")

    def __init__(
        self, max_entries: int, on_evict: Callable[[K, V], object] | None = None
    ) -> None:
        self._entries: dict[K, V] = {}
        self._max_entries = max_entries
        self._on_evict = on_evict

    def __getitem__(self, key: K) -> V:
        return self._entries[key]

    def __setitem__(self, key: K, value: V) -> None:
        entries = self._entries
        entries.pop(key, None)
        entries[key] = value
        if len(entries) > self._max_entries:
            oldest = next(iter(entries))
            evicted = entries.pop(oldest)
            if self._on_evict is not None:
                self._on_evict(oldest, evicted)

    def __delitem__(self, key: K) -> None:
        del self._entries[key]

    # pyrefly: ignore[missing-override-decorator]
    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[K]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def get_or_make(self, key: K, make: Callable[[], V]) -> V:
        """Returns the value of `key` and makes it the newest entry. Calls `make` if there is none."""
        value = self._entries[key] if key in self._entries else make()
        self[key] = value
        return value
