"""The rules of a project: `.hermes/rules.yaml`, and the front matter of AGENTS.md.

    verify: make test            # must pass before a turn that changed files is done; also a list
    lint: ruff check {files}     # its diagnostics of changed files reach the model
    protect: [LICENSE, migrations, "*.lock"]   # paths that must not change
    forbid: [git push, npm publish]            # commands that must not run

A project is not trusted: its rules can only forbid more. `verify` and `lint` run in the sandbox, and only after the user
has agreed to them.
"""

import hashlib
import os
import shlex
import stat
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

import msgspec

from hermes.settings.yaml_read import parse_yaml
from hermes.text.translation import translator
from hermes.tools.policy.rules import PolicyRule

t = translator(__name__)


RULES_FILE = ".hermes/rules.yaml"
NOTES_FILE = "AGENTS.md"
FILES_PLACEHOLDER = "{files}"
_MAX_RULES_BYTES = 64 * 1024
_MAX_RULES = 100
_MAX_FRONT_MATTER_LINES = 200
_KEYS = ("verify", "lint", "protect", "forbid")
_WILDCARDS = frozenset("*?[")


class ProjectRules(msgspec.Struct, frozen=True):
    """The rules of a project. `problem` says why they can't be read."""

    verify: tuple[str, ...] = ()
    lint: tuple[str, ...] = ()
    protect: tuple[str, ...] = ()
    forbid: tuple[str, ...] = ()
    problem: str = ""

    @property
    def checks(self) -> tuple[str, ...]:
        """The commands that run after a turn that changed files."""
        return (*self.lint, *self.verify)

    @property
    def digest(self) -> str:
        """A hash of the commands to which the user agrees."""
        encoded = msgspec.json.encode((self.lint, self.verify))
        return hashlib.sha256(encoded).hexdigest()

    @property
    def forbidden_commands(self) -> tuple[PolicyRule, ...]:
        """The forbidden commands, as the policy knows them."""
        words = (shlex.split(line) for line in self.forbid)
        return tuple(
            PolicyRule(program=one[0], arguments=tuple(one[1:])) for one in words if one
        )

    def protects(self, path: Path, root: Path) -> str:
        """The rule that protects a path; empty if none does."""
        for base in dict.fromkeys((root, Path(os.path.realpath(root)))):
            if path.is_relative_to(base):
                relative = path.relative_to(base).as_posix()
                return next(
                    (rule for rule in self.protect if _covers(rule, relative)), ""
                )
        return ""

    def protected_paths(self, root: Path) -> list[str]:
        """The protected paths that need no search, as absolute paths.

        Only paths in the project itself count: a rule must not affect other folders, not even through a link.
        """
        plain = (
            rule.strip("/") for rule in self.protect if _WILDCARDS.isdisjoint(rule)
        )
        paths = (os.path.normpath(root / rule) for rule in plain)
        top = os.path.realpath(root)
        return [
            path
            for path in paths
            if Path(path) != root
            and Path(path).is_relative_to(root)
            and os.path.realpath(path) == f"{top}/{os.path.relpath(path, root)}"
        ]


def _covers(rule: str, relative: str) -> bool:
    """Whether a rule covers a path below the project's folder: it names the path, a folder above it, or a pattern."""
    wanted = rule.strip("/")
    if _WILDCARDS.isdisjoint(wanted):
        return relative == wanted or relative.startswith(f"{wanted}/")
    if fnmatchcase(relative, wanted):
        return True
    return "/" not in wanted and any(
        fnmatchcase(part, wanted) for part in relative.split("/")
    )


def project_rules(root: Path) -> ProjectRules:
    """The rules of the project in a folder. A file is read again when it has changed."""
    own = _read(str(root / RULES_FILE), _stamp(root / RULES_FILE), is_notes=False)
    notes = _read(str(root / NOTES_FILE), _stamp(root / NOTES_FILE), is_notes=True)
    if own == notes == ProjectRules():
        return own
    verify, lint, protect, forbid = (
        tuple(dict.fromkeys(getattr(own, key) + getattr(notes, key))) for key in _KEYS
    )
    return ProjectRules(verify, lint, protect, forbid, own.problem or notes.problem)


def _stamp(path: Path) -> tuple[int, ...]:
    try:
        info = path.lstat()
    except OSError:
        return ()
    return (info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns)


@lru_cache(maxsize=256)
def _read(path: str, stamp: tuple[int, ...], *, is_notes: bool) -> ProjectRules:
    if not stamp:
        return ProjectRules()
    name = NOTES_FILE if is_notes else RULES_FILE
    try:
        text = read_small_file(Path(path))
        if is_notes:
            text = front_matter(text)[0]
        if not text.strip():
            return ProjectRules()
        found = parse_yaml(text, max_expanded=_MAX_RULES_BYTES)
        return _rules(found, is_notes=is_notes)
    except OSError as error:
        # Unreadable notes are reported where they are put into the prompt.
        why = error.strerror or t.logged("it can't be read")
        return ProjectRules(problem="" if is_notes else f"{name}: {why}")
    except ValueError as error:
        return ProjectRules(problem=f"{name}: {str(error).splitlines()[0]}")


def _rules(found: object, *, is_notes: bool) -> ProjectRules:
    """Raises ValueError for invalid rules. The front matter of notes may have other keys."""
    if not isinstance(found, dict):
        why = t.logged("expected keys and values") if found else t.logged("it is empty")
        raise ValueError(why)  # noqa: TRY004 - one kind for every mistake
    unknown = [str(key) for key in found if key not in _KEYS]
    if unknown and not is_notes:
        raise ValueError(
            t.logged(
                "unknown key {key!r}; expected one of {keys}",
                key=unknown[0],
                keys=", ".join(_KEYS),
            )
        )
    verify, lint, protect, forbid = (_lines(key, found.get(key)) for key in _KEYS)
    rules = ProjectRules(verify, lint, protect, forbid)
    for line in rules.forbid:
        shlex.split(line)  # raises ValueError
    return rules


def _lines(key: str, value: object) -> tuple[str, ...]:
    lines = value if isinstance(value, list) else [] if value is None else [value]
    if len(lines) > _MAX_RULES:
        raise ValueError(
            t.logged("{key}: more than {count} entries", key=key, count=_MAX_RULES)
        )
    if not all(isinstance(line, str) and line.strip() for line in lines):
        raise ValueError(t.logged("{key}: expected text, or a list of texts", key=key))
    return tuple(line.strip() for line in lines)


def front_matter(text: str) -> tuple[str, str]:
    """The YAML between the `---` lines at the beginning of a text, and what follows them."""
    lines = text.splitlines(keepends=True)
    if not lines or lines[0].rstrip() != "---":
        return "", text
    for number, line in enumerate(lines[1:_MAX_FRONT_MATTER_LINES], 1):
        if line.rstrip() == "---":
            return "".join(lines[1:number]), "".join(lines[number + 1 :])
    return "", text


def read_small_file(path: Path, max_bytes: int = _MAX_RULES_BYTES) -> str:
    """The text of an ordinary file. Follows no link at the end of the path, and does not wait for a pipe. Raises
    OSError or ValueError."""
    descriptor = os.open(
        path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    )
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError(t.logged("it is not a regular file"))
        content = os.read(descriptor, max_bytes + 1)
    finally:
        os.close(descriptor)
    if len(content) > max_bytes:
        raise ValueError(
            t.logged("it is longer than {size} KB", size=max_bytes // 1024)
        )
    return content.decode("utf-8")
