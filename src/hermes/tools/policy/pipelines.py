"""What a pipeline passes on: the text that it prints, or the files that it finds."""

import re
from collections.abc import Sequence
from itertools import pairwise

from hermes.tools.policy.paths import is_endless
from hermes.tools.policy.program_table import has_trait
from hermes.tools.policy.shell_words import ShellCommand, Word, escaped

_PROGRAM_FOLDERS = (
    r"(/usr|/usr/local|/opt/homebrew|/run/current-system/sw)?/s?bin|/snap/bin"
)
_HUGE_SIZE = r"(-c|--bytes=)?\d{2,}[GTPE]i?B?"


def program_name(word: Word) -> str:
    """The name of the program, without its folder if that is one of the usual ones for programs."""
    folder, _, name = word.text.rpartition("/")
    return name if re.fullmatch(_PROGRAM_FOLDERS, folder) else word.text


def _names(commands: Sequence[ShellCommand]) -> list[str]:
    return [program_name(one.words[0]) for one in commands if one.words]


def printed(upstream: Sequence[ShellCommand]) -> Word | None:
    """What the last program of a pipeline prints; None if that can't be told from its words."""
    last = upstream[-1]
    if not last.words or any(has_trait(name, "decoder") for name in _names(upstream)):
        return None
    name = program_name(last.words[0])
    if name == "cat" and len(last.words) == 1:
        return last.given
    if not all(word.known for word in last.words):
        return None
    texts = [word.text for word in last.words[1:]]
    if name == "echo":
        return _echoed(texts)
    return _formatted(texts) if name == "printf" else None


def _echoed(texts: list[str]) -> Word:
    text = " ".join(text for text in texts if not re.fullmatch(r"-[neE]+", text))
    has_escapes = any(re.fullmatch(r"-n?e", text) for text in texts)
    return escaped(text) if has_escapes else Word(text)


def _formatted(texts: list[str]) -> Word | None:
    if len(texts) == 1 and "%" not in texts[0]:
        return escaped(texts[0])
    if len(texts) == 2 and re.fullmatch(r"%s(\\n)?", texts[0]):
        return Word(texts[1])
    return None


def prints_nothing(command: ShellCommand) -> bool:
    """Whether a command prints nothing, or only blank lines."""
    texts = [word.text for word in command.words]
    if texts[:1] in ([], [":"], ["true"]):
        return True
    if texts in (["exec"], ["cat", "/dev/null"], ["echo"], ["printf"]):
        return True
    if texts[0] not in ("echo", "printf", "cat"):
        return False
    text = printed((command,))
    return text is not None and text.known and not text.text.strip()


def is_without_end(command: ShellCommand) -> bool:
    """Whether a command's output never ends, or is practically endless."""
    line = [one for one in (*command.upstream, command) if one.words]
    names = _names(line)
    if {"head", "dd", "timeout", "sed", "read"} & set(names):
        texts = [word.text for one in line for word in one.words]
        return any(re.fullmatch(_HUGE_SIZE, text) for text in texts)
    if not names or not all(has_trait(name, "filter") for name in names):
        return False
    return names[0] == "yes" or any(is_endless(word.text) for word in line[0].words)


def listed_files(upstream: Sequence[ShellCommand]) -> Word | None:
    """A pattern for the files that a pipeline lists, if it starts with a `find` that names them; else None."""
    if not upstream or _names(upstream[:1]) != ["find"]:
        return None
    words = upstream[0].words
    names = find_names(words, "-name", "-iname")
    found = found_files(find_starts(words), names)
    return found[0] if len(found) == 1 and names else None


def find_names(words: Sequence[Word], *tests: str) -> list[Word]:
    """The patterns given to tests of `find` such as `-name`."""
    return [word for before, word in pairwise(words) if before.text in tests]


def find_starts(words: Sequence[Word]) -> list[Word]:
    """The folders that `find` searches."""
    found: list[Word] = []
    for word in words[1:]:
        if word.text in ("-L", "-P", "-H"):
            continue
        if word.text.startswith(("-", "(", "!", "\\")):
            break
        found.append(word)
    return found or [Word(".")]


def found_files(starts: list[Word], names: list[Word]) -> list[Word]:
    """Patterns for what `find` may find."""
    found: list[Word] = []
    for start in starts:
        for name in names or [Word("*")]:
            text = name.text.strip("*/") if "/" in name.text else name.text
            known = start.known and name.known
            path = f"{start.text}/{text}"
            found.append(Word(path, known, pattern=True, tilde=start.tilde))
    return found
