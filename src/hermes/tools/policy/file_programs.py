"""Programs that copy, move, remove and change files: what they do depends on which files those are."""

import re
from collections.abc import Callable
from pathlib import Path

from hermes.tools.policy.effects import EFFECTS, READ, WORK, Effect, Level, asks, worst
from hermes.tools.policy.paths import (
    PathContext,
    is_device,
    is_endless,
    is_expendable,
    secret_reason,
    write_reason,
)
from hermes.tools.policy.shell_words import Word

Handler = Callable[[tuple[Word, ...], PathContext], Effect]

_VALUE_OPTIONS = frozenset(
    ("-t", "-S", "--mode", "--suffix", "--size", "--owner", "--group", "--reference")
)
_MODE_OPTIONS = _VALUE_OPTIONS | {"-m", "-s", "-o", "-g", "-r", "-n", "-l", "-b", "-d"}
"""Of programs that make files: their short options with values."""
_SOURCE = (
    r"(?i)\.(py|pyi|js|jsx|ts|tsx|go|rs|c|h|cc|cpp|hpp|java|kt|swift|rb|php|cs|scala|clj|ex|exs|hs|ml|lua|pl|r|jl|sql|md|rst"
    r"|toml|ya?ml|json|ini|cfg|html|css|scss|vue|svelte|sh|db|sqlite3?|csv|xlsx?|docx?|pdf|parquet|ipynb)$"
)
_BLANK = frozenset(("/dev/null",))
_ENDLESS = frozenset(("/dev/zero", "/dev/urandom", "/dev/random"))
OUTPUT_OPTIONS = frozenset(
    (
        *(
            "-o",
            "--output",
            "--out",
            "--outfile",
            "--outFile",
            "--out-file",
            "--output-file",
            "--output-dir",
            "--outdir",
        ),
        *(
            "--outDir",
            "--target-dir",
            "--dest",
            "--destination",
            "--dist",
            "--log-file",
            "--out-dir",
            "--report",
            "--junitxml",
        ),
    )
)


def operands(
    words: tuple[Word, ...], values: frozenset[str] = _VALUE_OPTIONS
) -> list[Word]:
    """The words that are no options, nor the values of options."""
    found: list[Word] = []
    plain, skip = False, False
    for word in words[1:]:
        if skip:
            skip = False
        elif plain or not word.text.startswith("-") or word.text == "-":
            found.append(word)
        elif word.text == "--":
            plain = True
        else:
            skip = word.text in values
    return found


def has_option(words: tuple[Word, ...], letters: str, *longs: str) -> bool:
    """Whether one of these options is given; long ones may be abbreviated, as getopt allows."""
    for word in words[1:]:
        text = word.text.partition("=")[0]
        if text == "--":
            return False
        if letters and re.fullmatch(rf"-[a-zA-Z0-9]*[{letters}][a-zA-Z0-9]*", text):
            return True
        if (
            text.startswith("--")
            and len(text) > 3
            and any(long.startswith(text) for long in longs)
        ):
            return True
    return False


def given(words: tuple[Word, ...], *options: str) -> list[Word]:
    """The values of options: the word behind (`-o x`), or the rest of the same word (`-ox`, `--output=x`)."""
    found: list[Word] = []
    for place, word in enumerate(words[1:], 1):
        if word.text == "--":
            break
        if word.text in options:
            found += words[place + 1 : place + 2]
            continue
        for option in options:
            sign = f"{option}=" if option.startswith("--") else option
            if word.text.startswith(sign):
                found.append(Word(word.text.removeprefix(sign), word.known))
    return found


def written(words: list[Word], site: PathContext) -> Effect:
    """Files that are made or changed."""
    for word in words:
        found = delicate(word, site)
        if found is not None:
            return found
    return WORK


def delicate(word: Word, site: PathContext) -> Effect | None:
    """What it means that a word leads outside, or to a file that carries policy or persistence; None: it does not."""
    reason, outside = write_reason(site, word)
    if not reason:
        return None
    once = bool(site.guard.delicate(site.paths(word), site.workspace))
    return Effect(Level.ASK, reason, "machine" if outside else "workspace", once)


def removed(words: list[Word], site: PathContext) -> Effect:
    """Files that are gone afterwards."""
    if not words:
        return WORK
    if all(is_expendable(site, word) for word in words):
        return WORK
    outside = any(
        not site.is_inside(path) and not site.is_temporary(path)
        for word in words
        for path in site.paths(word)
    )
    if outside:
        return asks("it deletes files outside the workspace", "machine")
    return asks("it deletes files that may not be possible to bring back")


def emptied(word: Word, site: PathContext) -> Effect:
    """A file whose content is thrown away."""
    found = delicate(word, site)
    if found is not None:
        return found
    return (
        WORK
        if is_expendable(site, word) or not word.known
        else asks("it empties a file")
    )


def overwritten(word: Word, site: PathContext) -> Effect:
    """A file that output is written over."""
    found = delicate(word, site)
    if found is not None:
        return found
    for path in site.paths(word):
        if (
            re.search(_SOURCE, path.name)
            and not is_expendable(site, word)
            and _holds_something(path)
        ):
            return asks(f"it replaces {path.name}, which is there already")
    return WORK


def _holds_something(path: Path) -> bool:
    try:
        return path.is_file() and path.stat().st_size > 0
    except OSError:
        return True


def _rm(words: tuple[Word, ...], site: PathContext) -> Effect:
    return removed(operands(words), site)


def _rmdir(words: tuple[Word, ...], site: PathContext) -> Effect:
    return written(operands(words), site)


def _mv(words: tuple[Word, ...], site: PathContext) -> Effect:
    files = operands(words)
    if len(files) < 2:
        return WORK
    into = files[-1]
    leaves = [path for path in site.paths(into) if not site.is_inside(path)]
    taken = any(not is_expendable(site, word) for word in files[:-1])
    if leaves and taken:
        return asks("it moves files out of the workspace", "machine")
    return worst([written(files, site), overwritten(into, site)])


def _cp(words: tuple[Word, ...], site: PathContext) -> Effect:
    files = operands(words)
    target = given(words, "-t", "--target-directory") or files[-1:]
    if files and (is_endless(files[0].text) or files[0].text == "/dev/null"):
        return worst(emptied(word, site) for word in target)
    found = [overwritten(word, site) for word in target]
    found += [
        asks(reason)
        for reason in (secret_reason(site, word) for word in files[:-1])
        if reason
    ]
    return worst(found)


def _ln(words: tuple[Word, ...], site: PathContext) -> Effect:
    files = operands(words)
    found = [written(files[-1:] if len(files) > 1 else [], site)]
    for word in files[:1]:
        paths = site.paths(word)
        if site.guard.secret(paths):
            found.append(asks("it makes a link to something that holds secrets"))
        elif any(
            not site.is_inside(path) and not site.is_temporary(path) for path in paths
        ) and word.text.startswith(("/", "~", "$")):
            found.append(asks("it makes a link out of the workspace"))
    return worst(found)


def _made(words: tuple[Word, ...], site: PathContext) -> Effect:
    return written(operands(words), site)


def _mkdir(words: tuple[Word, ...], site: PathContext) -> Effect:
    return written(operands(words, _VALUE_OPTIONS | {"-m"}), site)


def _touch(words: tuple[Word, ...], site: PathContext) -> Effect:
    return written(
        operands(words, frozenset(("-d", "-r", "-t", "--date", "--reference"))), site
    )


def _tee(words: tuple[Word, ...], site: PathContext) -> Effect:
    files = operands(words)
    return (
        written(files, site)
        if has_option(words, "a", "--append")
        else worst(overwritten(word, site) for word in files)
    )


def _truncate(words: tuple[Word, ...], site: PathContext) -> Effect:
    return worst(emptied(word, site) for word in operands(words, _MODE_OPTIONS))


def _chmod(words: tuple[Word, ...], site: PathContext) -> Effect:
    files = operands(words)
    if not files:
        return WORK
    mode = (
        files[0].text
        if not words[1].text.startswith(("-r", "-w", "-x"))
        else words[1].text
    )
    if re.fullmatch(r"[0-7]{3,5}", mode) and (
        int(mode[-1]) & 2 or (len(mode) >= 4 and mode[-4] != "0")
    ):
        return asks(
            "it lets everybody change a file, or run it with other rights", "machine"
        )
    if re.search(
        r"(^|,)[ugoa]*[oa][ugoa]*[+=][rxXst]*w|(^|,)[+=][rx]*w|[+=][rwxX]*s", mode
    ):
        return asks(
            "it lets everybody change a file, or run it with other rights", "machine"
        )
    if re.fullmatch(r"0{1,4}|[0-3]00", mode) or (
        has_option(words, "R", "--recursive") and re.search(r"-[rwx]", mode)
    ):
        return asks("it takes rights to files away")
    return written(files[1:], site)


def _dd(words: tuple[Word, ...], site: PathContext) -> Effect:
    found = [WORK]
    source = next(
        (word.text[3:] for word in words[1:] if word.text.startswith("if=")), ""
    )
    for word in words[1:]:
        sign, _, value = word.text.partition("=")
        if sign == "of":
            target = Word(value, word.known)
            found.append(
                emptied(target, site)
                if source in _BLANK | _ENDLESS
                else overwritten(target, site)
            )
            if source in _ENDLESS and not any(
                one.text.startswith("count=") for one in words
            ):
                found.append(asks("it writes without end"))
        elif sign == "if":
            found += [EFFECTS["devices"]] if is_device(value) else []
            found += [
                asks(reason)
                for reason in [secret_reason(site, Word(value, word.known))]
                if reason
            ]
    return worst(found)


def _tar(words: tuple[Word, ...], site: PathContext) -> Effect:
    first = words[1].text if len(words) > 1 else ""
    letters = first if not first.startswith("--") else ""
    into = [
        words[place + 1]
        for place, word in enumerate(words[:-1])
        if word.text in ("-C", "--directory")
    ]
    into += [
        Word(word.text.partition("=")[2])
        for word in words
        if word.text.startswith("--directory=")
    ]
    if "P" in letters and letters.strip("-").isalpha():
        return asks("it writes files wherever an archive says", "machine")
    lists = "t" in letters or any(word.text == "--list" for word in words)
    if lists and "x" not in letters and "c" not in letters:
        return READ
    files = [word for word in operands(words) if word.text != first]
    found = [
        asks(reason)
        for reason in (secret_reason(site, word) for word in files)
        if reason
    ]
    makes = "c" in letters or any(word.text == "--create" for word in words)
    return worst(
        [
            written(into if not makes else files[:1] if "f" in letters else [], site),
            *found,
        ]
    )


def _sed(words: tuple[Word, ...], site: PathContext) -> Effect:
    in_place = any(re.match(r"-[a-zA-Z]*i|--in-place", word.text) for word in words[1:])
    scripts = [
        words[place + 1]
        for place, word in enumerate(words[:-1])
        if word.text in ("-e", "--expression")
    ]
    files = operands(words, frozenset(("-e", "-f", "--expression", "--file", "-l")))
    if not scripts and files:
        scripts, files = files[:1], files[1:]
    for script in scripts:
        if not script.known:
            continue
        if in_place and re.fullmatch(
            r"\s*(1,\$|/\.?\*?/)?\s*d\s*|s(.)\.\*\2\2g?", script.text
        ):
            return asks("it empties files")
        if _runs_in_sed(script.text):
            return EFFECTS["runs"]
        target = re.search(r"(?:^|[;}\n]|[gpI0-9/])\s*w\s+(\S+)\s*$", script.text)
        if target:
            return written([Word(target[1])], site)
    found = [
        asks(reason)
        for reason in (secret_reason(site, word) for word in files)
        if reason
    ]
    return worst([written(files, site) if in_place else READ, *found])


def _runs_in_sed(script: str) -> bool:
    """Whether a sed script has the command or the flag that runs programs."""
    for part in re.split(r"[;\n]", script):
        bare = re.sub(
            r"^\s*(\d+|\$|/[^/]*/)?(,(\d+|\$|/[^/]*/))?\s*!?\s*\{?\s*", "", part
        )
        if re.match(r"e(\s|$)", bare):
            return True
        flags = re.match(r"s(\W)(?:\\.|(?!\1).)*\1(?:\\.|(?!\1).)*\1(\w*)", bare)
        if flags and "e" in flags[2]:
            return True
    return False


def _awk(words: tuple[Word, ...], site: PathContext) -> Effect:
    files = operands(
        words,
        frozenset(("-F", "-v", "-f", "--field-separator", "--assign", "--file", "-i")),
    )
    program = files[0].text if files else ""
    if re.search(
        r"\bsystem\s*\(|\|&?\s*getline|\|&?\s*\"|\"\s*\|&?\s*getline|/inet/", program
    ):
        return EFFECTS["runs"]
    target = re.findall(r">>?\s*\"([^\"]+)\"", program)
    found = [written([Word(text)], site) for text in target]
    if has_option(words, "i", "--include") and any(
        word.text == "inplace" for word in words
    ):
        found.append(written(files[1:], site))
        if not re.search(r"\$|\bprint\s*[;}]|(^|[;}])\s*1\s*$|/\s*$", program):
            found.append(asks("it empties files"))
    return worst(
        [
            READ,
            *found,
            *[asks(r) for r in (secret_reason(site, word) for word in files[1:]) if r],
        ]
    )


def _sort(words: tuple[Word, ...], site: PathContext) -> Effect:
    into = given(words, "-o", "--output")
    files = operands(
        words,
        frozenset(("-o", "--output", "-k", "-t", "-S", "-T", "--key", "--parallel")),
    )
    secrets = [
        asks(reason)
        for reason in (secret_reason(site, word) for word in files)
        if reason
    ]
    if into and any(word.text in _BLANK for word in files):
        return worst([emptied(word, site) for word in into])
    texts = {word.text for word in files}
    return worst(
        [
            *secrets,
            *(
                written([w], site) if w.text in texts else overwritten(w, site)
                for w in into
            ),
            READ,
        ]
    )


def _chown(words: tuple[Word, ...], site: PathContext) -> Effect:
    return written(operands(words)[1:], site)


def _fallocate(words: tuple[Word, ...], site: PathContext) -> Effect:
    if any(re.search(r"\d[TPE]|\d{2,}G|\d{11,}", word.text) for word in words[1:]):
        return asks("it fills the disk")
    return written(operands(words, _MODE_OPTIONS), site)


def _kill(words: tuple[Word, ...], site: PathContext) -> Effect:  # noqa: ARG001 - one shape for all
    texts = [word.text for word in words[1:]]
    if not texts or "-0" in texts or texts[0] in ("-l", "-L", "--list"):
        return READ
    targets = [
        text
        for text in texts
        if not re.fullmatch(r"-(\d+|[A-Z0-9]+|s|n)|--|[A-Z]{3,}", text)
    ]
    own = bool(targets) and all(
        re.fullmatch(r"%.*|\$!|\$\{?(?!PPID)\w*(pid|PID)\w*\}?", text)
        for text in targets
    )
    return WORK if own else EFFECTS["processes"]


def _rsync(words: tuple[Word, ...], site: PathContext) -> Effect:
    files = operands(
        words,
        frozenset(
            (
                "-e",
                "--rsh",
                "--exclude",
                "--include",
                "--filter",
                "-f",
                "--files-from",
                "--exclude-from",
            )
        ),
    )
    if any(re.match(r"[\w.@-]+::?[^\\]|rsync://", word.text) for word in files):
        return EFFECTS["sends"]
    return worst(
        [
            written(files[-1:], site),
            *[asks(r) for r in (secret_reason(site, word) for word in files) if r],
        ]
    )


def _install(words: tuple[Word, ...], site: PathContext) -> Effect:
    if any(word.text == "/dev/null" for word in words[1:-1]):
        return emptied(words[-1], site)
    return written(operands(words, _MODE_OPTIONS - {"-d"})[-1:], site)


def _unzip(words: tuple[Word, ...], site: PathContext) -> Effect:
    if has_option(words, "ltZvp"):
        return READ
    return written(given(words, "-d"), site)


def _patch(words: tuple[Word, ...], site: PathContext) -> Effect:
    return written(given(words, "-d", "--directory", "-o", "--output"), site)


HANDLERS: dict[str, Handler] = {
    "rm": _rm, "unlink": _rm, "trash": _rm, "trash-put": _rm, "rimraf": _rm, "del-cli": _rm, "rmdir": _rmdir, "mv": _mv,
    "cp": _cp, "ln": _ln, "link": _ln, "mkdir": _mkdir, "touch": _touch, "mktemp": _made, "tee": _tee, "sponge": _tee,
    "truncate": _truncate, "fallocate": _fallocate,
    "mkfifo": _made, "chmod": _chmod, "dd": _dd, "tar": _tar, "bsdtar": _tar,
    "sed": _sed, "gsed": _sed, "awk": _awk, "gawk": _awk, "mawk": _awk, "nawk": _awk, "kill": _kill, "rsync": _rsync,
    "install": _install, "unzip": _unzip, "patch": _patch, "mogrify": _made, "dos2unix": _made, "unix2dos": _made,
    "sort": _sort, "chown": _chown, "chgrp": _chown,
    "gzip": _made, "gunzip": _made, "bzip2": _made, "xz": _made, "unxz": _made, "split": _made, "rename": _made,
}  # fmt: skip
"""What needs to be looked at word by word."""
