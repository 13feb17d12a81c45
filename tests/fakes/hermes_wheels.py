"""Real wheels of this tree under other versions, some of them broken. Their dependencies are those of the tests."""

import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

_PROJECT = Path(__file__).parents[2]
_PREFIX = "hermes_companion"


def built_wheel(folder: Path) -> Path:
    """A wheel of this tree."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]  # fmt: skip
    subprocess.run(command, cwd=_PROJECT, check=True, capture_output=True, timeout=120)
    return next(folder.glob(f"{_PREFIX}-*.whl"))


def as_version(
    wheel: Path, version: str, folder: Path, added: Mapping[str, str] | None = None
) -> Path:
    """The wheel as another version. `added` is code at the end of files.

    It requires nothing, and finds the packages of this environment by a `.pth` file, so that nothing is downloaded.
    """
    old = wheel.name.split("-")[1]
    target = folder / wheel.name.replace(old, version, 1)
    changes = {"hermes/__init__.py": f'\n__version__ = "{version}"\n'}
    for name, code in (added or {}).items():
        changes[name] = changes.get(name, "") + code
    packages = next(one for one in sys.path if one.endswith("site-packages"))
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(target, "w") as made:
        for info in source.infolist():
            text = source.read(info)
            if info.filename.endswith(".dist-info/METADATA"):
                needs = ("Requires-Dist", "Provides-Extra")
                lines = text.decode().splitlines()
                kept = [one for one in lines if not one.startswith(needs)]
                text = "\n".join(kept).replace(f"Version: {old}", f"Version: {version}").encode()  # fmt: skip
            if info.filename.endswith("/CHANGELOG.md"):
                news = f"## {version}\n\n- Something new in {version}.\n\n"
                text = text.decode().replace("## ", f"{news}## ", 1).encode()
            text += changes.pop(info.filename, "").encode()
            info.filename = info.filename.replace(f"{_PREFIX}-{old}", f"{_PREFIX}-{version}")  # fmt: skip
            made.writestr(info, text)
        made.writestr("zz_test_packages.pth", f"{packages}\n")
    assert not changes, f"no such files: {changes}"
    return target
