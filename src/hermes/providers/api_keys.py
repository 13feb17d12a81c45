"""The keys of one provider, and which of them is in use. Never shown."""


class KeyRing:
    """At least one key, perhaps an empty one for services that want none."""

    __slots__ = ("_at", "_keys")

    def __init__(self, keys: tuple[str, ...] = ()) -> None:
        self._keys = keys or ("",)
        self._at = 0

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def current(self) -> str:
        """The key to use now."""
        return self._keys[self._at]

    def rotate(self) -> None:
        """Go on with the next key; later calls begin with it."""
        self._at = (self._at + 1) % len(self._keys)

    def __repr__(self) -> str:
        return f"KeyRing({len(self._keys)} keys)"

    def __reduce__(self) -> str:
        raise TypeError("Keys can't be pickled: they would end up in a file or a log.")
