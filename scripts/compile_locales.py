"""Compiles the translations in `src/hermes/locales`: each `.po` file to the `.mo` file that the program reads.

Compiled files are not in the repository. The build runs this as a hook, so wheels and editable installs have them;
`make` runs it when a translation has changed.
"""

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_SOURCE = Path(__file__).resolve().parent.parent / "src"
LOCALES = _SOURCE / "hermes" / "locales"

sys.path.insert(0, str(_SOURCE))  # a build has no installed Hermes to import

from hermes.text.po_file import PoKey, parse_po, write_mo  # noqa: E402


def compile_locales(folder: Path) -> None:
    """Write the `.mo` file of each language whose content has changed."""
    for source in sorted(folder.glob("*.po")):
        translations = parse_po(source.read_text("utf-8"))
        (header,) = translations.pop(PoKey("", ""))
        content = write_mo(translations, header)
        target = source.with_suffix(".mo")
        if not target.exists() or target.read_bytes() != content:
            target.write_bytes(content)


class LocalesHook(BuildHookInterface[Any]):
    """Compiles the translations before a wheel is built."""

    PLUGIN_NAME = "custom"

    # pyrefly: ignore[missing-override-decorator]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - hatchling's signature
        compile_locales(Path(self.root) / "src" / "hermes" / "locales")


if __name__ == "__main__":
    compile_locales(LOCALES)
