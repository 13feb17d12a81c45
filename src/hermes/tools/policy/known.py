"""Programs of the catalogue, and programs named by where they are."""

import re

from hermes.tools.policy import catalogue
from hermes.tools.policy.code import INTERPRETERS, PYTHON
from hermes.tools.policy.effects import KINDS, READ, WORK, Finding, Level, asks, unclear
from hermes.tools.policy.fileworks import HANDLERS, operands
from hermes.tools.policy.grammar import Command
from hermes.tools.policy.judging import Judging
from hermes.tools.policy.words import Word
from hermes.tools.policy.wrappers import SHELLS

_VALUE_OPTIONS = frozenset(
    (
        *(
            "-C",
            "--prefix",
            "--cwd",
            "--dir",
            "--filter",
            "-F",
            "-w",
            "--workspace",
            "--manifest-path",
            "--project",
            "-p",
        ),
        *("--directory", "--context", "-n", "--namespace", "-f", "--file", "--color", "--config", "-c", "--profile"),
    )
)
"""Options before a subcommand that take a value."""
_TOLD = r"(shell|!|pipe|python|platform shell|source|script)\b|!"


def judge_known(judge: Judging, name: str, command: Command) -> list[Finding]:
    """A program of the catalogue, or one of the project."""
    words = command.words
    if "/" in name:
        return judge_path(judge, command)
    if name.startswith(("mkfs", "newfs")):
        return [KINDS["devices"]]
    kind = kind_of(name, words)
    finding = KINDS[kind]
    if kind == "unknown" and judge.defines(name):
        return [READ]
    if kind == "unknown":
        finding = asks(f"it is not known what {name!r} does")
    if finding.level in (Level.ASK, Level.READ, Level.WORK) and only_tells(words, finding):
        return [READ]
    if kind in ("packages", "publishes") and any(word.text in ("--dry-run", "--dryrun") for word in words):
        finding = WORK
    if name == "history" or (name == "set" and any(word.text == "+o" for word in words)):
        finding = KINDS["history"] if len(words) > 1 else READ
    return [finding, *added_by_options(name, words), *judge_told(judge, name, command), judge.named(words, name)]


def judge_told(judge: Judging, name: str, command: Command) -> list[Finding]:  # noqa: PLR0911 - one for each program
    """Ways of some programs to be told to run something else."""
    words = command.words
    texts = [word.text for word in words[1:]]
    if name in ("make", "gmake", "just", "ninja"):
        if any(text in ("-", "/dev/stdin", "-f-", "--file=-") for text in texts):
            return [unclear("it runs what it is given as input")]
        return [one for text in texts if text.startswith("SHELL=") for one in judge.deeper(text[6:])]
    if name in ("less", "more", "man", "most") and any(text.startswith(("+!", "+|")) for text in texts):
        return [KINDS["runs"]]
    if name in ("gdb", "lldb"):
        attached = any(text in ("-p", "--pid", "-n", "--attach-pid") for text in texts)
        return [KINDS["spies"]] if attached else [KINDS["runs"] for text in texts if re.match(_TOLD, text)]
    if name in ("hyperfine", "concurrently"):
        return [one for word in operands(words, _VALUE_OPTIONS) for one in judge.deeper(word.text)]
    if name == "go" and any("@" in text for text in texts):
        return [KINDS["packages"]]
    if name in ("deno", "bun") and any(re.match(r"https?:|npm:|jsr:", text) for text in texts):
        return [asks("it runs code from the network", "network")]
    if name == "unset" and any(text.startswith("HIST") for text in texts):
        return [KINDS["history"]]
    return []


def judge_path(judge: Judging, command: Command) -> list[Finding]:
    """A program named by where it is."""
    words = command.words
    base = words[0].text.rpartition("/")[2]
    paths = judge.site.paths(words[0])
    inside = all(judge.site.is_inside(path) for path in paths[:1])
    if paths and any(judge.site.is_temporary(path) and not judge.site.is_inside(path) for path in paths):
        return [asks("it runs a program from a temporary folder")]
    shared = re.search(r"(^|/)(\.?venv|\.?env|node_modules/\.bin|\.tox|\.nox|vendor/bin)(/|$)", words[0].text)
    if not inside or shared:
        known = base in catalogue.programs() or base in SHELLS or base in INTERPRETERS or base in HANDLERS
        if known or re.fullmatch(PYTHON, base) or base in catalogue.subcommands() or base in ("git", "sqlite3"):
            return judge.again(command, (Word(base), *words[1:]))
        if not shared:
            return [asks(f"it is not known what {words[0].text} does")]
    return [WORK, *judge.fresh(words[0]), judge.named(words, base)]


def kind_of(name: str, words: tuple[Word, ...]) -> str:
    """The kind of effect by program and subcommand."""
    table = catalogue.subcommands().get(name.removesuffix("3") if name == "pip3" else name)
    plain = catalogue.programs().get(name, "unknown")
    if table is None:
        return plain if not _reaches_out(name, words) else "publishes"
    texts = [word.text for word in words[1:]]
    if not texts:
        return table.get(("@",), "work")
    bare = [word.text for word in operands(words, _VALUE_OPTIONS)]
    heads = {texts[0], *bare[:1]}
    phrases = [phrase for phrase in table if phrase[0] in heads and set(phrase[1:]) <= set(texts)]
    kind = table[max(phrases, key=len)] if phrases else table.get(("*",), "unknown")
    return "publishes" if kind in ("work", "unknown") and _reaches_out(name, words) else kind


def _reaches_out(name: str, words: tuple[Word, ...]) -> bool:
    if any(word.text in ("-n", "--dry-run", "--just-print") for word in words):
        return False
    return name in catalogue.TASK_RUNNERS and any(
        re.split(r"[:_-]", word.text)[0] in catalogue.PERSONAL for word in words[1:]
    )


def added_by_options(name: str, words: tuple[Word, ...]) -> list[Finding]:
    """What options add to what a program does."""
    table = catalogue.options().get(name, {})
    signs = [word.text.partition("=")[0] for word in words[1:]]
    if name in catalogue.BUNDLING:
        signs += [f"-{letter}" for sign in signs if re.fullmatch(r"-[a-zA-Z]{2,}", sign) for letter in sign[1:]]
    return [KINDS[table[sign]] for sign in signs if sign in table]


def only_tells(words: tuple[Word, ...], finding: Finding) -> bool:
    """Whether it only prints its version or help."""
    texts = [word.text for word in words[1:]]
    plain = ("--version", "--help", "-h", "-V", "version", "help")
    short = (*plain, "-v", "-version") if finding.level <= Level.WORK else plain
    if len(texts) == 2 and texts[1] == "--help":  # help of a subcommand
        return finding.level < Level.FORBID and texts[0].isalpha()
    return len(texts) == 1 and texts[0] in short


def fetched(wrapper: str, words: tuple[Word, ...], inner: tuple[Word, ...]) -> list[Finding]:
    """Programs that are fetched before they run."""
    own = words[: len(words) - len(inner)]
    told = any(word.text in ("-y", "--yes", "-p", "--package", "--from", "--with", "--spec") for word in own)
    versioned = inner and re.search(r".@|^(https?|git|github|file):|/", inner[0].text)
    return [KINDS["packages"]] if (told and wrapper != "uvx") or versioned else []
