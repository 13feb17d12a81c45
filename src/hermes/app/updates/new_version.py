"""A version that can be installed: a wheel, or a folder with the source. Only our own distribution is accepted."""

import ast
import re
import shutil
import subprocess
import tempfile
import tomllib
import zipfile
from collections.abc import Mapping
from email.parser import HeaderParser
from pathlib import Path

import msgspec

from hermes.children.own_python import python_command
from hermes.errors import HermesError, NotFound, UsageError, os_reason
from hermes.installation import DISTRIBUTION
from hermes.text.translation import translator

t = translator(__name__)


_MAX_TEXT_BYTES = 2 * 1024 * 1024
_VERSION = re.compile(r"[0-9][A-Za-z0-9.+!_-]{0,60}")
"""A folder is named after it."""
_WHEEL_NAME = DISTRIBUTION.replace("-", "_")
_CHANGELOG = "extra_metadata/CHANGELOG.md"  # in the folder of the metadata
_SCHEMA = "hermes/store/sqlite/schema.py"
_DOWNLOAD_TIMEOUT_S = 600.0


class NewVersion(msgspec.Struct, frozen=True, kw_only=True):
    """What would be installed."""

    version: str
    source: Path
    is_wheel: bool
    changelog: str = ""
    schema: int = 0
    """The version of the session log that it writes; 0 if the source does not say."""

    def changes_since(self, version: str) -> str:
        """Returns the changelog of everything newer than a version."""
        sections = re.split(r"(?m)^(?=## )", self.changelog)[1:]
        newer: list[str] = []
        for section in sections:
            named = re.match(r"## \[?v?([0-9][\w.]*)", section)
            if named and version_key(named[1]) <= version_key(version):
                break
            newer.append(section.strip())
        return "\n\n".join(newer)


def version_key(version: str) -> tuple[tuple[int, ...], bool, str, int]:
    """Returns a key for comparing versions: numbers by value, and `1.0rc1` before `1.0`."""
    found = re.match(r"v?(\d+(?:\.\d+)*)[.-]?([a-z]*)\.?(\d*)", version.lower())
    if found is None:
        return (), False, version, 0
    numbers = [int(one) for one in found[1].split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    is_final = found[2] in ("", "post")
    return tuple(numbers), is_final, found[2], int(found[3] or 0)


def find_version(path: Path, wanted: str = "") -> NewVersion:
    """Finds the version at a path: a wheel, a folder of wheels, or a folder with the source. Raises HermesError."""
    if not path.exists():
        raise NotFound(t.later("{path} does not exist.", path=path))
    try:
        if path.is_file():
            found = _wheel(path)
        elif (path / "pyproject.toml").is_file():
            found = _folder(path)
        else:
            found = _newest(path, wanted)
    except (OSError, zipfile.BadZipFile, KeyError, SyntaxError, ValueError) as error:
        why = os_reason(error) if isinstance(error, OSError) else str(error)
        raise HermesError(
            t.later(
                "{path} can't be read as a version of Hermes: {why}.",
                path=path,
                why=why,
            )
        ) from error
    if not _VERSION.fullmatch(found.version):
        raise HermesError(
            t.later(
                "{path} names a version that is none: {version!r}.",
                path=path,
                version=found.version[:60],
            )
        )
    if wanted and found.version != wanted:
        raise NotFound(
            t.later(
                "{path} is version {version}, not {wanted}.",
                path=path,
                version=found.version,
                wanted=wanted,
            )
        )
    return found


def _newest(folder: Path, wanted: str) -> NewVersion:
    found = [_wheel(one) for one in folder.glob(f"{_WHEEL_NAME}-*.whl")]
    if wanted:
        found = [one for one in found if one.version == wanted]
    if not found:
        if wanted:
            raise NotFound(
                t.later(
                    "{folder} has no wheel of {distribution} {version}.",
                    folder=folder,
                    distribution=DISTRIBUTION,
                    version=wanted,
                )
            )
        raise NotFound(
            t.later(
                "{folder} has neither a pyproject.toml nor a wheel of {distribution}.",
                folder=folder,
                distribution=DISTRIBUTION,
            )
        )
    return max(found, key=lambda one: version_key(one.version))


def _wheel(path: Path) -> NewVersion:
    if path.suffix != ".whl":
        raise UsageError(t.later("{path} is not a wheel (.whl).", path=path))
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        metadata = next(
            (one for one in names if re.fullmatch(r"[^/]+\.dist-info/METADATA", one)), ""
        )  # fmt: skip
        headers = HeaderParser().parsestr(_text(archive, metadata))
        name, version = str(headers["Name"]), str(headers["Version"])
        _require_ours(path, name)
        news = f"{metadata.partition('/')[0]}/{_CHANGELOG}"
        found = {one: _text(archive, one) for one in (news, _SCHEMA) if one in names}
    return NewVersion(
        version=version,
        source=path,
        is_wheel=True,
        changelog=found.get(news, ""),
        schema=_schema(found.get(_SCHEMA, "")),
    )


def _text(archive: zipfile.ZipFile, name: str) -> str:
    with archive.open(name) as file:
        return file.read(_MAX_TEXT_BYTES).decode()


def _folder(path: Path) -> NewVersion:
    project = tomllib.loads((path / "pyproject.toml").read_text(encoding="utf-8"))
    _require_ours(path, str(project.get("project", {}).get("name")))
    code = (path / "src/hermes/__init__.py").read_text(encoding="utf-8")
    named = (
        str(ast.literal_eval(node.value))
        for node in ast.parse(code).body
        if isinstance(node, ast.Assign)
        and ast.unparse(node.targets[0]) == "__version__"
    )
    version = next(named, "")
    file = path / "CHANGELOG.md"
    tables = path / "src" / _SCHEMA
    return NewVersion(
        version=version,
        source=path,
        is_wheel=False,
        changelog=file.read_text(encoding="utf-8") if file.is_file() else "",
        schema=_schema(tables.read_text(encoding="utf-8") if tables.is_file() else ""),
    )


def _schema(code: str) -> int:
    """Returns how many migrations the source of the session log lists. The source is only read, never run."""
    values = [
        node.value
        for node in ast.parse(code).body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        and _target(node) == "MIGRATIONS"
    ]
    last = values[-1] if values else None
    if not isinstance(last, ast.Tuple) or any(
        isinstance(one, ast.Starred) for one in last.elts
    ):
        return 0
    return len(last.elts)


def _target(node: ast.Assign | ast.AnnAssign) -> str:
    return ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)


def _require_ours(path: Path, name: str) -> None:
    if re.sub(r"[-_.]+", "-", name).lower() != DISTRIBUTION:
        raise UsageError(
            t.later(
                "{path} is {name!r}, not {distribution!r}.",
                path=path,
                name=name,
                distribution=DISTRIBUTION,
            ),
            hint=t.later("Nothing was installed."),
        )


def download(environment: Mapping[str, str], version: str = "") -> Path:
    """Downloads the newest or a given version. Returns the folder with the wheel, which the caller removes."""
    folder = Path(tempfile.mkdtemp(prefix="hermes-update-"))
    wanted = f"{DISTRIBUTION}=={version}" if version else DISTRIBUTION
    command = python_command(
        "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input",
        "--no-deps", "--only-binary", ":all:", "--dest", str(folder), wanted,
    )  # fmt: skip
    try:
        done = subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            env=dict(environment),
            timeout=_DOWNLOAD_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise HermesError(
            t.later("The download failed: {error}.", error=error)
        ) from error
    if done.returncode:
        shutil.rmtree(folder, ignore_errors=True)
        raise HermesError(
            t.later("The download failed: {stderr}", stderr=done.stderr.strip()[-1000:])
        )
    return folder
