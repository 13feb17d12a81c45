"""A shell command taken apart into its simple commands, as far as that can be done without running it."""

import re
from collections.abc import Iterator

import msgspec

_RESERVED = frozenset(
    ("if", "then", "elif", "else", "fi", "do", "done", "while", "until", "{", "}", "!", "time", "esac")
)
_NAME = re.compile(r"\{?[A-Za-z_0-9@*#?!$-]\w*\}?")
_MAX_DEPTH = 8


class Unreadable(Exception):
    """The command can't be taken apart."""


class Word(msgspec.Struct, frozen=True):
    """A word after quotes are removed. `known` is False if the shell would still put something in."""

    text: str
    known: bool = True
    redirect: str = ""
    """The operator before it, if it names where output goes or input comes from."""


class _Scanner:
    """Reads one command text. Commands inside substitutions are found too."""

    def __init__(self, text: str, depth: int) -> None:
        if depth > _MAX_DEPTH:
            raise Unreadable
        self.text = text
        self.depth = depth
        self.place = 0
        self.commands: list[list[Word]] = []
        self.words: list[Word] = []
        self.piece: list[str] | None = None
        self.known = True
        self.redirect = ""
        self.heredocs: list[str] = []

    def scan(self) -> list[list[Word]]:
        while self.place < len(self.text):
            self._step(self.text[self.place])
        self._end_command()
        return self.commands

    def _step(self, character: str) -> None:
        if character in " \t\r":
            self._end_word()
        elif character in ";&|()\n":
            self._operator(character)
            return
        elif character in "<>":
            self._redirect()
            return
        elif character == "#" and self.piece is None:
            end = self.text.find("\n", self.place)
            self.place = len(self.text) if end < 0 else end
            return
        else:
            self._part(character)
            return
        self.place += 1

    def _part(self, character: str) -> None:
        """Part of a word."""
        self.piece = self.piece if self.piece is not None else []
        if character == "'":
            end = self._find("'", self.place + 1)
            self.piece.append(self.text[self.place + 1 : end])
            self.place = end + 1
        elif character == '"':
            self._double_quoted()
        elif character == "\\":
            following = self.text[self.place + 1 : self.place + 2]
            self.piece.append("" if following == "\n" else following)
            self.place += 2
        elif character in "$`":
            self._substitution()
        else:
            if character in "*?[{":
                self.known = False
            self.piece.append(character)
            self.place += 1

    def _double_quoted(self) -> None:
        self.place += 1
        while True:
            if self.place >= len(self.text):
                raise Unreadable
            character = self.text[self.place]
            if character == '"':
                self.place += 1
                return
            if character == "\\":
                following = self.text[self.place + 1 : self.place + 2]
                self._add(following if following in '$`"\\' else "" if following == "\n" else "\\" + following)
                self.place += 2
            elif character in "$`":
                self._substitution()
            else:
                self._add(character)
                self.place += 1

    def _add(self, text: str) -> None:
        if self.piece is None:
            self.piece = []
        self.piece.append(text)

    def _substitution(self) -> None:
        """`$name`, `${...}`, `$(...)`, backticks, `$'...'`: the word is no longer known; commands inside are read."""
        start = self.place
        if self.text[start] == "`":
            end = self._find("`", start + 1)
            self._inner(self.text[start + 1 : end])
        elif self.text.startswith("$(", start):
            end = self._closing(start + 1)
            self._inner(self.text[start + 2 : end])
        elif self.text.startswith("${", start):
            end = self._find("}", start)
        elif self.text.startswith("$'", start):
            end = self._find("'", start + 2)
        else:
            name = _NAME.match(self.text, start + 1)
            if name is None:  # a dollar sign and nothing else
                self._add("$")
                self.place += 1
                return
            end = name.end() - 1
        self.known = False
        self._add(self.text[start : end + 1])
        self.place = end + 1

    def _inner(self, text: str) -> None:
        self.commands += _Scanner(text, self.depth + 1).scan()

    def _closing(self, start: int) -> int:
        """The parenthesis that closes the one at `start`."""
        depth, place = 0, start
        while place < len(self.text):
            character = self.text[place]
            if character == "\\":
                place += 1
            elif character == "'":
                place = self._find("'", place + 1)
            depth += (character == "(") - (character == ")")
            if not depth:
                return place
            place += 1
        raise Unreadable

    def _find(self, character: str, start: int) -> int:
        end = self.text.find(character, start)
        if end < 0:
            raise Unreadable
        return end

    def _operator(self, character: str) -> None:
        self._end_command()
        self.place += 1
        if character == "\n":
            self._skip_heredocs()

    def _redirect(self) -> None:
        if self.piece is not None and not "".join(self.piece).isdigit():
            self._end_word()
        self.piece = None
        operator = re.compile(r"<<<|<<-?|<>|<&|>>|>\||>&|<|>").match(self.text, self.place)
        if operator is None:
            raise Unreadable
        self.place = operator.end()
        if self.text.startswith("(", self.place):  # <( and >( run what is inside
            self.known = False
            return
        self.redirect = operator[0]

    def _skip_heredocs(self) -> None:
        """What follows is text up to each end mark."""
        for mark in self.heredocs:
            end = re.compile(rf"^\t*{re.escape(mark)}$", re.MULTILINE).search(self.text, self.place)
            if end is None:
                raise Unreadable
            self.place = end.end()
        self.heredocs.clear()

    def _end_word(self) -> None:
        if self.piece is None:
            return
        text = "".join(self.piece)
        if self.redirect.startswith("<<") and self.redirect != "<<<":
            self.heredocs.append(text)
        reserved = text in _RESERVED and not any(not word.redirect for word in self.words)
        if not reserved or self.redirect:
            self.words.append(Word(text, self.known, self.redirect))
        self.piece, self.known, self.redirect = None, True, ""

    def _end_command(self) -> None:
        self._end_word()
        if self.words:
            self.commands.append(self.words)
        self.words = []
        self.redirect = ""


def simple_commands(text: str) -> list[list[Word]]:
    """The simple commands of a command text, those of its substitutions included. Raises Unreadable."""
    return _Scanner(text, 0).scan()


_WRAPPERS = frozenset(
    (
        *("sudo", "doas", "env", "nohup", "nice", "ionice", "time", "exec", "command", "builtin", "stdbuf", "timeout"),
        *("xargs", "setsid", "chroot", "busybox"),
    )
)
_SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "ash", "fish"))


def programs(text: str, depth: int = 0) -> Iterator[list[Word]]:
    """Every program a command would run, each with its arguments; what shells are told to run is read too."""
    if depth > _MAX_DEPTH:
        raise Unreadable
    for simple in simple_commands(text):
        words = unwrapped(simple)
        yield words
        arguments = [word.text for word in words if not word.redirect]
        name = arguments[0].rpartition("/")[2] if arguments else ""
        if name in _SHELLS and len(arguments) > 2 and any(re.fullmatch(r"-\w*c", word) for word in arguments[1:-1]):
            place = next(index for index, word in enumerate(arguments) if re.fullmatch(r"-\w*c", word))
            yield from programs(arguments[place + 1], depth + 1)
        elif name in ("eval", "source", "."):
            yield from programs(" ".join(arguments[1:]), depth + 1)


def unwrapped(words: list[Word]) -> list[Word]:
    """Without assignments in front and programs that only run another one."""
    redirects = [word for word in words if word.redirect]
    plain = [word for word in words if not word.redirect]
    while plain and re.match(r"\w+\+?=", plain[0].text):
        plain = plain[1:]
    while len(plain) > 1 and plain[0].text.rpartition("/")[2] in _WRAPPERS:
        plain = plain[1:]
        while len(plain) > 1 and re.match(r"-|\w+=|\d+(\.\d+)?[smhd]?$", plain[0].text):
            plain = plain[1:]
    return plain + redirects
