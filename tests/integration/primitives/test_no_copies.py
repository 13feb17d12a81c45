"""The primitives have no copies in the other packages."""

import re
from pathlib import Path

import pytest

import hermes

_SOURCE = Path(hermes.__file__).parent
_COPIES = {
    "fcntl.flock: use hermes.primitives.file_lock": r"\bflock\(",
    "a bounded map: use hermes.primitives.recent": r"\bdel (self\.\w+)\[next\(iter\(\1\)\)\]",
    "tasks kept by hand: use hermes.primitives.tasks": r"add_done_callback\(self\.\w+\.discard\)",
    "a growing delay: use hermes.primitives.backoff": r"\bmin\((\w+) \* 2, |2(?:\.0)? \*\* \(",
    "a private folder: use hermes.primitives.files": r"\.mkdir\(mode=0o700, parents=True",
}
_APART = (_SOURCE / "primitives", _SOURCE / "plugins" / "bundled")


@pytest.mark.parametrize("what", _COPIES)
def test_a_primitive_has_no_copy(what: str) -> None:
    found = [
        f"{path.relative_to(_SOURCE)}: {match[0]}"
        for path in _SOURCE.rglob("*.py")
        if not any(folder in path.parents for folder in _APART)
        for match in re.finditer(_COPIES[what], path.read_text())
    ]
    assert not found, what
