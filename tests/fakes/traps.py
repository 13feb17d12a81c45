"""A folder as an attacker would leave it: code or programs that are loaded from it leave a mark."""

import os
from pathlib import Path

_MODULES = (
    *("sitecustomize.py", "usercustomize.py", "json.py", "asyncio.py", "msgspec.py"),
    *(
        "webbrowser.py",
        "hermes_events.py",
        "hermes/__init__.py",
        "hermes/__main__.py",
        "pip/__init__.py",
    ),
    *("pip/__main__.py", "hermes/providers/embedded/engine_child.py"),
)
_PROGRAMS = (
    *(
        "git",
        "rg",
        "bwrap",
        "codex",
        "node",
        "npx",
        "curl",
        "python",
        "python3",
        "hermes",
        "chromium",
        "google-chrome",
    ),
    *(
        "nano",
        "vim",
        "vi",
        "sensible-editor",
        "systemctl",
        "wl-paste",
        "xclip",
        "pngpaste",
        "xdg-open",
        "ssh",
        "env",
    ),
)


class Traps:
    """The folder; `sprung` names what was loaded or run from it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._marks = folder.with_name(f"{folder.name}-marks")
        self._marks.mkdir(parents=True)
        for name in _MODULES:
            module = folder / name
            module.parent.mkdir(parents=True, exist_ok=True)
            module.write_text(f"open({str(self._mark(name))!r}, 'w').close()\n")
        (folder / "own.pth").write_text(
            f"import os; open({str(self._mark('own.pth'))!r}, 'w').close()\n"
        )
        (folder / "pyvenv.cfg").write_text(
            f"home = {folder}\ninclude-system-site-packages = true\n"
        )
        for place in (
            folder,
            folder / ".venv" / "bin",
            folder / "node_modules" / ".bin",
        ):
            place.mkdir(parents=True, exist_ok=True)
            for name in _PROGRAMS:
                if not (place / name).exists():
                    (place / name).write_text(
                        f"#!/bin/sh\n: > '{self._mark(name)}'\nexit 1\n"
                    )
                    (place / name).chmod(0o755)

    @property
    def path(self) -> str:
        """A PATH that begins in the folder, in all the ways that are usual."""
        own = (
            ".",
            "",
            str(self.folder),
            str(self.folder / ".venv" / "bin"),
            str(self.folder / "node_modules" / ".bin"),
        )
        return os.pathsep.join(
            (*own, "node_modules/.bin", os.environ.get("PATH", os.defpath))
        )

    @property
    def environ(self) -> dict[str, str]:
        """Variables that lead Python and the shell there."""
        here = str(self.folder)
        return {
            "PYTHONPATH": ".",
            "PYTHONUSERBASE": ".",
            "PYTHONSTARTUP": f"{here}/json.py",
            "PATH": self.path,
        }

    @property
    def sprung(self) -> list[str]:
        """What was loaded or run."""
        return sorted(mark.name for mark in self._marks.iterdir())

    def _mark(self, name: str) -> Path:
        return self._marks / name.replace("/", "-")
