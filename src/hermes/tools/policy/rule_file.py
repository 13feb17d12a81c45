"""Reads and changes `policy.yaml`, the user's rules. A change is atomic and keeps the comments."""

import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec

from hermes.errors import SettingsError, os_reason
from hermes.settings.atomic import locked, replace
from hermes.settings.load import read_text
from hermes.settings.parse import SettingProblem
from hermes.settings.yaml_read import TOO_DEEP, parse_yaml, too_deep
from hermes.text.translation import translator
from hermes.tools.policy.rules import VERSION, List, PolicyRule, RuleBook

t = translator(__name__)

NAME = "policy.yaml"
LAST_GOOD_NAME = ".policy.good.yaml"
"""A copy of the last valid version. Its `forbid` and `ask` rules still apply while the file is broken."""
log = logging.getLogger("hermes.tools")

_HEAD = "# What tools may do without asking. `hermes policy show` explains it.\n"  # not translated
_AT = r" - at `\$\.?(.*)`$"


def host_rule(home: Path) -> Callable[[str], Literal["", "ask", "forbid"]]:
    """Returns a function that tells whether a home's rules forbid or ask about a host that a page leads to."""
    file = RuleFile(home)

    def rule_of(host: str) -> Literal["", "ask", "forbid"]:
        match file.current().for_host(host):
            case ("ask" | "forbid") as title, _:
                return title
            case _:
                return ""

    return rule_of


class RuleFile:
    """The rules on disk, read again when the file changes."""

    def __init__(self, home: Path) -> None:
        self.path = home / NAME
        self._seen: tuple[int, ...] | None = None
        self._book = RuleBook()
        self._problem: SettingProblem | None = None

    @property
    def problem(self) -> str:
        """Why the file can't be used; empty if it can. While it can't, no rule allows anything."""
        self.current()
        return self._problem.render(NAME) if self._problem else ""

    def current(self) -> RuleBook:
        """The current rules. While the file can't be used, only the last valid `forbid` and `ask` rules."""
        seen = self._stamps()
        if seen != self._seen:
            self._book, self._problem = self._read()
            self._seen = seen
            if self._problem is not None:
                self._book = self._last_good_rules()
        return self._book

    def remember(self, shape: str) -> None:
        """Adds a remembered answer. Raises SettingsError if the file can't be used or written."""
        self._change(
            lambda text, book: (
                text
                if shape in book.remembered
                else _with_item(text, "remembered", shape)
            ),
            lambda book: shape in book.remembered,
        )

    def forget(self, shapes: tuple[str, ...]) -> None:
        """Removes remembered answers."""
        self._change(lambda text, _: _without_items(text, shapes), lambda _: True)

    def add_rule(self, title: List, rule: PolicyRule) -> None:
        """Adds a rule at the end of a list. Raises SettingsError if the file can't be used or written."""
        self._change(
            lambda text, book: (
                text
                if rule in getattr(book, title)
                else _with_item(text, title, _written(rule))
            ),
            lambda book: rule in getattr(book, title),
        )

    def remove_rule(self, title: List, rule: PolicyRule) -> bool:
        """Removes a rule that Hermes added. Returns False if it is not there. Raises SettingsError."""
        book = self.current()
        if rule not in getattr(book, title):
            return False
        self._change(
            lambda text, _: _without_rule(text, title, _written(rule)),
            lambda after: rule not in getattr(after, title),
        )
        if getattr(book, title) == (rule,):
            self.accept()  # the user meant the list to become empty
        return True

    def accept(self) -> None:
        """Accepts that the file has lost rules, as the user intended. Raises SettingsError if it is broken."""
        book, problem = self._parsed()
        if problem is not None:
            raise SettingsError(
                t.later(
                    "{path} can't be used: {render}.",
                    path=self.path,
                    render=problem.render(NAME),
                ),
                hint=t.later("Nothing was changed. Fix that line first."),
            )
        text = read_text(self.path)
        with locked(self.path.with_name(LAST_GOOD_NAME)) as target:
            replace(
                target,
                text if text is not None and (book.forbid or book.ask) else "",
                mode=0o600,
            )

    def _change(
        self,
        edit: Callable[[str, RuleBook], str],
        is_expected: Callable[[RuleBook], bool],
    ) -> None:
        with locked(self.path) as target:
            text = read_text(target) or ""
            book, problem = parse_rules(text)
            problem = problem or self._lost_lists(book)
            if problem:
                raise SettingsError(
                    t.later(
                        "{target} can't be changed: {render}.",
                        target=target,
                        render=problem.render(NAME),
                    ),
                    hint=t.later("Nothing was changed. Fix that first."),
                )
            changed = edit(text or _HEAD, book)
            after, problem = parse_rules(changed)
            if problem or not is_expected(after):
                raise SettingsError(
                    t.later("{target} can't be changed by Hermes.", target=target),
                    hint=t.later("Nothing was changed. Edit it yourself."),
                )
            if changed != text:
                replace(target, changed, mode=0o600)

    def _stamps(self) -> tuple[int, ...]:
        return (*_stamp(self.path), 0, *_stamp(self.path.with_name(LAST_GOOD_NAME)))

    def _read(self) -> tuple[RuleBook, SettingProblem | None]:
        book, problem = self._parsed()
        problem = problem or self._lost_lists(book)
        if problem is not None:
            return RuleBook(), problem
        if book.forbid or book.ask:
            self._save_good_copy(read_text(self.path) or "")
        return book, None

    def _parsed(self) -> tuple[RuleBook, SettingProblem | None]:
        """Parses the file. A missing file has no rules."""
        try:
            text = read_text(self.path)
        except SettingsError as error:
            return RuleBook(), SettingProblem(0, "", error.message)
        if text is None:
            return RuleBook(), None
        exposed = self._shared_file()
        book, problem = parse_rules(text)
        return (
            (book, None)
            if exposed is None and problem is None
            else (RuleBook(), exposed or problem)
        )

    def _lost_lists(self, book: RuleBook) -> SettingProblem | None:
        """Reports a list that has lost all its rules. The file may be damaged, so the user must confirm."""
        good = self._last_good_rules()
        lost = [
            title
            for title in ("forbid", "ask")
            if getattr(good, title) and not getattr(book, title)
        ]
        if not lost:
            return None
        what = t.later(
            "has no `{lost}` rules anymore; the last ones still apply",
            lost="` and no `".join(lost),
        )
        return SettingProblem(
            0, "", what, t.later("restore them, or run: hermes policy accept")
        )

    def _save_good_copy(self, text: str) -> None:
        """Saves a copy of a valid version. Without a copy, a broken file still makes Hermes ask about everything."""
        good = self.path.with_name(LAST_GOOD_NAME)
        try:
            if read_text(good) != text:
                with locked(good) as target:
                    replace(target, text, mode=0o600)
        except SettingsError as error:
            log.warning("could not save a copy of %s: %s", NAME, error.message)

    def _last_good_rules(self) -> RuleBook:
        """The `forbid` and `ask` rules of the last valid version."""
        try:
            book, problem = parse_rules(
                read_text(self.path.with_name(LAST_GOOD_NAME)) or ""
            )
        except SettingsError:
            return RuleBook()
        if problem:
            return RuleBook()
        return RuleBook(forbid=book.forbid, ask=book.ask)

    def _shared_file(self) -> SettingProblem | None:
        """Reports a file that other users can write: its rules may not be the user's."""
        try:
            found = self.path.stat()
        except OSError as error:
            return SettingProblem(0, "", os_reason(error))
        if found.st_mode & 0o022:
            return SettingProblem(
                0, "", t.later("others can write it"), f"run: chmod 600 '{self.path}'"
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
    """Parses rules. Returns them, or the first problem with its line."""
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
    wrong = _second_document(text) or _repeated_key(text)
    if wrong:
        return RuleBook(), wrong
    try:
        book = msgspec.convert(
            {} if data is None else _without_empty_lists(data), RuleBook
        )
    except msgspec.ValidationError as error:
        return RuleBook(), _problem_at(str(error), text)
    if book.version != VERSION:
        return RuleBook(), SettingProblem(
            _line_of(text, "version"),
            "version",
            t.later(
                "this Hermes does not support version {version}", version=book.version
            ),
            "update Hermes",
        )
    return book, None


def _without_empty_lists(data: object) -> object:
    """The data without lists whose lines are all commented out."""
    return (
        {key: value for key, value in data.items() if value is not None}
        if isinstance(data, dict)
        else data
    )


def _second_document(text: str) -> SettingProblem | None:
    """Reports a second YAML document, which would not be read."""
    begun = False
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        if re.match(r"(---|\.\.\.)(\s|$)", line):
            if begun:
                return SettingProblem(
                    number,
                    "",
                    t.later("starts a second document here"),
                    t.later("put all rules into one"),
                )
            begun = not line.startswith("---") or bool(line[3:].strip())
        elif line.strip() and not line.lstrip().startswith(("#", "%")):
            begun = True
    return None


def _repeated_key(text: str) -> SettingProblem | None:
    """Reports a list that occurs twice: one of them would be ignored."""
    seen: set[str] = set()
    for number, line in enumerate(text.splitlines(), 1):
        key = re.match(r"['\"]?(\w+)['\"]?\s*:", line)
        if key and key[1] in seen:
            return SettingProblem(
                number, key[1], "occurs twice", t.later("merge both lists")
            )
        if key:
            seen.add(key[1])
    return None


def _problem_at(what: str, text: str) -> SettingProblem:
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


def _written(rule: PolicyRule) -> dict[str, object]:
    """A rule as it is written to the file: only fields that differ from their defaults."""
    given: dict[str, object] = msgspec.json.decode(msgspec.json.encode(rule))
    return {
        name: value
        for name, value in given.items()
        if value and (name, value) != ("reach", "workspace")
    }


def _with_item(text: str, title: str, value: object) -> str:
    """Adds an item to a text, at the end of a list."""
    item = f"  - {_quoted(value)}\n"
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    start = _list_start(lines, title)
    if start is None:
        return "".join([*lines, f"{title}:\n", item])
    if re.search(r":\s*(\[\s*\]|null|~)", lines[start]):
        lines[start] = re.sub(r":\s*(\[\s*\]|null|~)", ":", lines[start], count=1)
    last = start
    for place in _list_places(lines, start):
        if re.match(r"\s*- ", lines[place]):
            last = place
            item = f"{re.match(r' *', lines[place])[0]}- {_quoted(value)}\n"  # type: ignore[index]
    return "".join([*lines[: last + 1], item, *lines[last + 1 :]])


def _list_start(lines: list[str], title: str) -> int | None:
    pattern = rf"['\"]?{title}['\"]?\s*:"
    return next((n for n, line in enumerate(lines) if re.match(pattern, line)), None)


def _list_places(lines: list[str], start: int) -> range:
    """The lines of a list after its title."""
    end = start + 1
    while end < len(lines) and not re.match(r"[^\s#-]", lines[end]):
        end += 1
    return range(start + 1, end)


def _without_rule(text: str, title: str, rule: dict[str, object]) -> str:
    """Removes a rule written on one line from a list, and the list if it is then empty."""
    lines = text.splitlines(keepends=True)
    start = _list_start(lines, title)
    if start is None:
        return text
    places = _list_places(lines, start)
    gone = {place for place in places if _is_item(lines[place], (rule,))}
    left = [place for place in places if re.match(r"\s*- ", lines[place])]
    if gone and set(left) <= gone:
        gone.add(start)
    return "".join(line for place, line in enumerate(lines) if place not in gone)


def _without_items(text: str, shapes: tuple[str, ...]) -> str:
    """Removes remembered answers from a text."""
    lines = text.splitlines(keepends=True)
    kept = [line for line in lines if not _is_item(line, shapes)]
    return "".join(kept)


def _is_item(line: str, shapes: tuple[object, ...]) -> bool:
    found = re.match(r"\s*- (.*)$", line)
    if not found:
        return False
    try:
        return parse_yaml(found[1]) in shapes
    except ValueError:
        return False


def _quoted(value: object) -> str:
    """A value as YAML. JSON is valid YAML, and escapes all special characters."""
    import json

    return json.dumps(value)
