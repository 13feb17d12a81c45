"""The page names every module that its first view needs, so that none waits until another was read."""

import re
from pathlib import Path

from hermes.surfaces import dashboard

_STATIC = Path(dashboard.__file__).with_name("static")
_IMPORT = re.compile(
    r'^(?:import|export)\b[^;"]*?from "([./][^"]+)";|^import "([./][^"]+)";',
    re.MULTILINE,
)
_PRELOAD = re.compile(r'rel="modulepreload" href="/static/([^"]+)"')


def needed(*entries: str) -> set[str]:
    """The modules, and what they import at once."""
    found: set[Path] = set()
    waiting = [_STATIC / entry for entry in entries]
    while waiting:
        module = waiting.pop().resolve()
        if module not in found:
            found.add(module)
            waiting += [
                _resolve(module, one or other)
                for one, other in _IMPORT.findall(module.read_text())
            ]
    return {str(module.relative_to(_STATIC.resolve())) for module in found}


def _resolve(module: Path, address: str) -> Path:
    if address.startswith("/static/"):
        return _STATIC / address.removeprefix("/static/")
    return module.parent / address


def test_the_page_names_every_module_of_the_chat() -> None:
    named = _PRELOAD.findall((_STATIC / "index.html").read_text())
    assert sorted(named) == sorted(
        needed("app/main.js", "views/chat.js") - {"app/main.js"}
    )
