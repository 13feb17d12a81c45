"""What a pipeline hands on: the text that is printed, the files that are found."""

import re

from hermes.tools.policy.shell_parser import ShellCommand
from hermes.tools.policy.shell_words import Word, escaped
from hermes.tools.policy.wrappers import program_name

_DECODERS = frozenset(
    (
        "base64",
        "base32",
        "xxd",
        "openssl",
        "gunzip",
        "gzip",
        "zcat",
        "rev",
        "tr",
        "uudecode",
        "gpg",
        "curl",
        "wget",
    )
)

_FILTERS = frozenset(
    (
        "yes",
        "cat",
        "tr",
        "base64",
        "gzip",
        "tee",
        "xxd",
        "od",
        "hexdump",
        "rev",
        "pv",
        "openssl",
        "zstd",
        "xz",
        "bzip2",
    )
)


def printed(upstream: tuple[ShellCommand, ...]) -> Word | None:
    """What the last program of a pipeline prints, when that is plain from its words."""
    last = upstream[-1]
    if not last.words or any(
        program_name(one.words[0]) in _DECODERS for one in upstream if one.words
    ):
        return None
    name = program_name(last.words[0])
    if name == "cat" and len(last.words) == 1 and last.given is not None:
        return last.given
    if name not in ("echo", "printf") or not all(word.known for word in last.words):
        return None
    texts = [word.text for word in last.words[1:]]
    if name == "printf":
        return (
            escaped(texts[0])
            if len(texts) == 1 and "%" not in texts[0]
            else None
            if len(texts) != 2
            else Word(texts[1])
            if re.fullmatch(r"%s(\\n)?", texts[0])
            else None
        )
    plain = [text for text in texts if not re.fullmatch(r"-[neE]+", text)]
    return (
        escaped(" ".join(plain))
        if any(re.fullmatch(r"-n?e", text) for text in texts)
        else Word(" ".join(plain))
    )


def prints_nothing(command: ShellCommand) -> bool:
    """Whether a command prints nothing, or only blank lines."""
    texts = [word.text for word in command.words]
    if not texts or texts[0] in (":", "true", "exec") or texts == ["cat", "/dev/null"]:
        return not texts or texts[0] != "exec" or len(texts) == 1
    if texts == ["cat"] and command.given is not None:
        return command.given.known and not command.given.text.strip()
    if texts[0] in ("echo", "printf") and all(word.known for word in command.words):
        said = printed((command,)) if len(texts) > 1 else Word("")
        return said is not None and not said.text.strip()
    return False


def is_without_end(command: ShellCommand) -> bool:
    """Whether what a command prints never ends, or nearly so."""
    line = [one for one in (*command.upstream, command) if one.words]
    names = [program_name(one.words[0]) for one in line]
    if any(name in ("head", "dd", "timeout", "sed", "read") for name in names):
        return any(
            re.fullmatch(r"(-c|--bytes=)?\d{2,}[GTPE]i?B?", word.text)
            for one in line
            for word in one.words
        )
    endless = names[:1] == ["yes"] or any(
        word.text in ("/dev/zero", "/dev/urandom", "/dev/random")
        for word in (line[0].words if line else ())
    )
    return endless and all(name in _FILTERS for name in names)


def listed(upstream: tuple[ShellCommand, ...]) -> Word | None:
    """The kind of file a pipeline lists, when a `find` or `git ls-files` says so."""
    if not upstream or not upstream[0].words:
        return None
    words = upstream[0].words
    texts = [word.text for word in words]
    if program_name(words[0]) == "find":
        names = [
            words[place + 1]
            for place, text in enumerate(texts[:-1])
            if text in ("-name", "-iname")
        ]
        found = found_places(starts_of(words), names)
        return found[0] if len(found) == 1 and names else None
    return None


def starts_of(words: tuple[Word, ...]) -> list[Word]:
    """The folders in which `find` begins."""
    found: list[Word] = []
    for word in words[1:]:
        if word.text in ("-L", "-P", "-H"):
            continue
        if word.text.startswith(("-", "(", "!", "\\")):
            break
        found.append(word)
    return found or [Word(".")]


def found_places(starts: list[Word], names: list[Word]) -> list[Word]:
    """What `find` may come upon, as patterns."""
    if not names:
        return [
            Word(f"{start.text}/*", start.known, pattern=True, tilde=start.tilde)
            for start in starts
        ]
    return [
        Word(
            f"{start.text}/{name.text.strip('*/') if '/' in name.text else name.text}",
            start.known and name.known,
            pattern=True,
            tilde=start.tilde,
        )
        for start in starts
        for name in names
    ]
