"""Reads and changes `policy.yaml`: apart from the settings, for this user only, in one step, with comments kept."""

import json
import logging
import re
from collections.abc import Callable
from pathlib import Path

import msgspec

from hermes.errors import SettingsError
from hermes.settings.atomic import locked, replace
from hermes.settings.load import read_text
from hermes.settings.parse import SettingProblem
from hermes.settings.yaml_read import TOO_DEEP, parse_yaml, too_deep
from hermes.tools.policy.rules import VERSION, RuleBook

NAME = "policy.yaml"
GOOD = ".policy.good.yaml"
"""A copy of the last version that could be used: what it forbids holds while the file can't be."""
log = logging.getLogger("hermes.tools")

_HEAD = "# What tools may do without asking. `hermes policy show` explains it.\n"
_AT = r" - at `\$\.?(.*)`$"


class RuleFile:
    """The rules on disk. They are read again when the file has changed."""

    def __init__(self, home: Path) -> None:
        self.path = home / NAME
        self._seen: tuple[int, ...] | None = None
        self._book = RuleBook()
        self._problem: SettingProblem | None = None

    @property
    def problem(self) -> str:
        """Why the file can't be used; empty when it can. While it can't, nothing is allowed by rule."""
        self.current()
        return self._problem.render(NAME) if self._problem else ""

    def current(self) -> RuleBook:
        """The rules as they are now; none when the file can't be used."""
        seen = self._look()
        if seen != self._seen:
            self._book, self._problem = self._read()
            self._seen = seen
            if self._problem is not None:
                self._book = self._tightened()
        return self._book

    def remember(self, shape: str) -> None:
        """Adds a remembered answer. Raises SettingsError if the file can't be used or written."""
        self._change(
            lambda text, book: (
                text if shape in book.remembered else _with_item(text, shape)
            ),
            [shape],
        )

    def forget(self, shapes: tuple[str, ...]) -> None:
        """Takes remembered answers away."""
        self._change(lambda text, _: _without_items(text, shapes), [])

    def accept(self) -> None:
        """Takes the file for what the user wants, though it has lost rules. Raises SettingsError if it is broken."""
        book, problem = self._parsed()
        if problem is not None:
            raise SettingsError(
                f"{self.path} can't be used: {problem.render(NAME)}.",
                hint="Nothing was changed. Correct that line first.",
            )
        text = read_text(self.path)
        with locked(self.path.with_name(GOOD)) as target:
            replace(
                target,
                text if text is not None and (book.forbid or book.ask) else "",
                mode=0o600,
            )

    def _change(
        self, edit: Callable[[str, RuleBook], str], expected: list[str]
    ) -> None:
        with locked(self.path) as target:
            text = read_text(target) or ""
            book, problem = parse_rules(text)
            problem = problem or self._loosened(book)
            if problem:
                raise SettingsError(
                    f"{target} can't be changed: {problem.render(NAME)}.",
                    hint="Nothing was changed. Correct that first.",
                )
            changed = edit(text or _HEAD, book)
            after, problem = parse_rules(changed)
            if problem or not set(expected) <= set(after.remembered):
                raise SettingsError(
                    f"{target} can't be changed by Hermes.",
                    hint="Nothing was changed. Edit it yourself.",
                )
            if changed != text:
                replace(target, changed, mode=0o600)

    def _look(self) -> tuple[int, ...]:
        return (*_stamp(self.path), 0, *_stamp(self.path.with_name(GOOD)))

    def _read(self) -> tuple[RuleBook, SettingProblem | None]:
        book, problem = self._parsed()
        problem = problem or self._loosened(book)
        if problem is not None:
            return RuleBook(), problem
        if book.forbid or book.ask:
            self._keep(read_text(self.path) or "")
        return book, None

    def _parsed(self) -> tuple[RuleBook, SettingProblem | None]:
        """The file by itself; one that is not there has no rules."""
        try:
            text = read_text(self.path)
        except SettingsError as error:
            return RuleBook(), SettingProblem(0, "", error.message)
        if text is None:
            return RuleBook(), None
        exposed = self._exposed()
        book, problem = parse_rules(text)
        return (
            (book, None)
            if exposed is None and problem is None
            else (RuleBook(), exposed or problem)
        )

    def _loosened(self, book: RuleBook) -> SettingProblem | None:
        """A list that had rules and has none now: more often a damaged file than a wish, so the user says which."""
        good = self._tightened()
        lost = [
            title
            for title in ("forbid", "ask")
            if getattr(good, title) and not getattr(book, title)
        ]
        if not lost:
            return None
        what = f"has no `{'` and no `'.join(lost)}` rules any more; the last ones still hold"
        return SettingProblem(0, "", what, "restore them, or run: hermes policy accept")

    def _keep(self, text: str) -> None:
        """Keeps a version that can be used. Without it a damaged file still makes everything be asked about."""
        good = self.path.with_name(GOOD)
        try:
            if read_text(good) != text:
                with locked(good) as target:
                    replace(target, text, mode=0o600)
        except SettingsError as error:
            log.warning("no copy of %s was kept: %s", NAME, error.message)

    def _tightened(self) -> RuleBook:
        """What still holds of a file that can't be used: what it forbade and asked about when it last could be."""
        try:
            book, problem = parse_rules(read_text(self.path.with_name(GOOD)) or "")
        except SettingsError:
            return RuleBook()
        return RuleBook() if problem else RuleBook(forbid=book.forbid, ask=book.ask)

    def _exposed(self) -> SettingProblem | None:
        """Rules that others can write are not the user's rules."""
        try:
            found = self.path.stat()
        except OSError as error:
            return SettingProblem(0, "", str(error.strerror or error).lower())
        if found.st_mode & 0o022:
            return SettingProblem(
                0, "", "others can write it", f"run: chmod 600 '{self.path}'"
            )
        return None


def _stamp(path: Path) -> tuple[int, ...]:
    try:
        found = path.stat()
    except FileNotFoundError:
        return ()
    except OSError as error:
        return (error.errno or -1,)
    return (found.st_ino, found.st_size, found.st_mtime_ns, found.st_mode, found.st_uid)


def parse_rules(text: str) -> tuple[RuleBook, SettingProblem | None]:
    """The rules in a text, or the first thing that is wrong with it, with its line."""
    deep = too_deep(text)
    if deep:
        return RuleBook(), SettingProblem(deep, "", TOO_DEEP)
    try:
        data = parse_yaml(text.removeprefix("\ufeff"))
    except ValueError as error:
        place = re.search(r" at byte \d+ line (\d+) column \d+$", str(error))
        line = min(int(place[1]), len(text.splitlines())) if place else 0
        return RuleBook(), SettingProblem(
            line, "", str(error)[: place.start() if place else None]
        )
    wrong = _several(text) or _repeated(text)
    if wrong:
        return RuleBook(), wrong
    try:
        book = msgspec.convert({} if data is None else _filled(data), RuleBook)
    except msgspec.ValidationError as error:
        return RuleBook(), _located(str(error), text)
    if book.version != VERSION:
        return RuleBook(), SettingProblem(
            _line_of(text, "version"),
            "version",
            f"{book.version} is not known here",
            "update Hermes",
        )
    return book, None


def _filled(data: object) -> object:
    """Without lists whose lines are all commented out."""
    return (
        {key: value for key, value in data.items() if value is not None}
        if isinstance(data, dict)
        else data
    )


def _several(text: str) -> SettingProblem | None:
    """More than one document: only one of them would be read."""
    begun = False
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        if re.match(r"(---|\.\.\.)(\s|$)", line):
            if begun:
                return SettingProblem(
                    number, "", "begins another document here", "put all rules into one"
                )
            begun = not line.startswith("---") or bool(line[3:].strip())
        elif line.strip() and not line.lstrip().startswith(("#", "%")):
            begun = True
    return None


def _repeated(text: str) -> SettingProblem | None:
    """A list that is there twice: one of them would be lost."""
    seen: set[str] = set()
    for number, line in enumerate(text.splitlines(), 1):
        key = re.match(r"['\"]?(\w+)['\"]?\s*:", line)
        if key and key[1] in seen:
            return SettingProblem(
                number, key[1], "is there twice", "put both lists into one"
            )
        if key:
            seen.add(key[1])
    return None


def _located(what: str, text: str) -> SettingProblem:
    place = re.search(_AT, what)
    path = place[1] if place else ""
    top = re.match(r"\w+", path)
    item = re.search(r"\[(\d+)\]", path)
    unknown = re.search(r"unknown field `(\w+)`", what)
    line = _line_of(
        text,
        top[0] if top else unknown[1] if unknown else "",
        int(item[1]) + 1 if item else 0,
    )
    return SettingProblem(line, path, what[: place.start()] if place else what)


def _line_of(text: str, key: str, item: int = 0) -> int:
    """The line of a top-level key, or of its n-th item."""
    inside, count = 0, 0
    for number, line in enumerate(text.splitlines(), 1):
        if inside and re.match(r"\s*- ", line):
            count += 1
            if count == item:
                return number
        elif inside and re.match(r"\S", line) and not line.startswith("#"):
            break
        if key and re.match(rf"['\"]?{re.escape(key)}['\"]?\s*:", line):
            inside = number
            if not item:
                return number
    return inside or 1


def _with_item(text: str, shape: str) -> str:
    """The text with one more remembered answer, at the end of the list."""
    item = f"  - {json.dumps(shape)}\n"
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    start = next(
        (
            place
            for place, line in enumerate(lines)
            if re.match(r"['\"]?remembered['\"]?\s*:", line)
        ),
        None,
    )
    if start is None:
        return "".join([*lines, "remembered:\n", item])
    if re.search(r":\s*(\[\s*\]|null|~)", lines[start]):
        lines[start] = re.sub(r":\s*(\[\s*\]|null|~)", ":", lines[start], count=1)
    end = start + 1
    last = start
    while end < len(lines) and not re.match(r"[^\s#-]", lines[end]):
        if re.match(r"\s*- ", lines[end]):
            last = end
            item = f"{re.match(r' *', lines[end])[0]}- {json.dumps(shape)}\n"  # type: ignore[index]
        end += 1
    return "".join([*lines[: last + 1], item, *lines[last + 1 :]])


def _without_items(text: str, shapes: tuple[str, ...]) -> str:
    """The text without some remembered answers."""
    lines = text.splitlines(keepends=True)
    kept = [line for line in lines if not _is_item(line, shapes)]
    return "".join(kept)


def _is_item(line: str, shapes: tuple[str, ...]) -> bool:
    found = re.match(r"\s*- (.*)$", line)
    if not found:
        return False
    try:
        return parse_yaml(found[1]) in shapes
    except ValueError:
        return False
