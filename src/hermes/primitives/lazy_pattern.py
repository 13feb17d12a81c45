"""Regular expressions that are compiled on first use. Compiling is slow, and a start uses few of them."""

import re
from typing import Any, AnyStr, Generic, cast


class _LazyPattern(Generic[AnyStr]):
    def __init__(self, text: AnyStr, flags: int) -> None:
        self._text = text
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        """Compiles the pattern and stores the requested attribute, so that the next access is an ordinary one."""
        found = getattr(re.compile(self._text, self._flags), name)
        self.__dict__[name] = found
        return found


def lazy_pattern(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Acts as `re.compile` for a module's constant. Use the pattern's own methods: `re.sub(pattern, ...)` can't take
    it.
    """
    return cast("re.Pattern[AnyStr]", _LazyPattern(text, flags))
