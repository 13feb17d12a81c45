"""Programs of the catalogue, and programs named by where they are."""

import re

from hermes.tools.policy import catalogue
from hermes.tools.policy.inline_code import INTERPRETERS, PYTHON
from hermes.tools.policy.effects import (
    EFFECTS,
    LOOKS_UP,
    READ,
    WORK,
    Effect,
    Level,
    asks,
    unclear,
)
from hermes.tools.policy.file_programs import HANDLERS, operands
from hermes.tools.policy.shell_parser import ShellCommand
from hermes.tools.policy.judging import Judging
from hermes.tools.policy.packages import is_package
from hermes.tools.policy.shell_words import Word
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
        *(
            "--directory",
            "--context",
            "-n",
            "--namespace",
            "-f",
            "--file",
            "--color",
            "--config",
            "-c",
            "--profile",
        ),
    )
)
"""Options before a subcommand that take a value."""
_LOOKING = (
    r"--(json|long|all|parseable|outdated|production|depth(=\d+)?|omit=\w+|audit-level=\w+|format=\w+|pre|local)"
    r"|-[alp]"
)
"""Options of look-ups that change only what is shown."""
_OFFLINE = frozenset(("uv", "npm", "pnpm", "yarn", "poetry", "pdm"))
"""Without the network they install only what was fetched before, into the workspace."""
_RUNS_OTHERS = r"""(?x) --?(
        shell-escape | enable-write18 | vettool | toolexec | pager | editor | ext-diff | use-askpass | rsh | init-script
      | to-command | use-compress-program | compress-program | checkpoint-action | script-shell | node-options
      | run-as | post-?process\w* | exec-batch | hostname-bin | strip-program | unzip-command | extcmd | ssh-command
    )(=.*)?"""
"""Options that tell whatever program to run another one."""
_ELSEWHERE = r"(?i)(stratum\S*://\S+|([\w-]+\.)+[a-z]{2,}:\d{2,5}|\d{1,3}(\.\d{1,3}){3}:\d{2,5})$"
_TOLD = r"(shell|!|pipe|python|platform shell|source|script)\b|!"


def judge_known(judge: Judging, name: str, command: ShellCommand) -> list[Effect]:
    """A program of the catalogue, or one of the project."""
    words = command.words
    if "/" in name:
        return judge_path(judge, command)
    if name.startswith(("mkfs", "newfs")):
        return [EFFECTS["devices"]]
    kind = kind_of(name, words)
    finding = EFFECTS[kind]
    if kind == "unknown" and judge.defines(name):
        return [READ]
    if kind == "unknown":
        finding = asks(f"it is not known what {name!r} does")
    if finding.level in (Level.ASK, Level.READ, Level.WORK) and only_tells(
        words, finding
    ):
        return [READ]
    if finding == LOOKS_UP and not _looks_plainly(words):
        finding = asks(
            "it sends something over the network that can't be seen here, or asks in an unusual way",
            "network",
        )
    if name in ("redis-cli", "valkey-cli") and _asks_here(words):
        return [LOOKS_UP]
    if (
        kind == "packages"
        and name in _OFFLINE
        and any(word.text == "--offline" for word in words)
    ):
        finding = WORK
    if kind in ("packages", "publishes") and any(
        word.text in ("--dry-run", "--dryrun") for word in words
    ):
        finding = WORK
    if name == "history" or (
        name == "set" and any(word.text == "+o" for word in words)
    ):
        finding = EFFECTS["history"] if len(words) > 1 else READ
    return [
        finding,
        *added_by_options(name, words),
        *judge_told(judge, name, command),
        judge.named(words, name),
    ]


def _asks_here(words: tuple[Word, ...]) -> bool:
    """Whether a client of a key store only asks the one on this machine."""
    texts = [word.text for word in words[1:]]
    hosts = [texts[place + 1] for place, text in enumerate(texts[:-1]) if text == "-h"]
    bare = operands(words, frozenset(("-h", "-p", "-n")))
    options = [
        text
        for text in texts
        if text.startswith("-") and text not in ("-h", "-p", "-n")
    ]
    asked = [word.text.lower() for word in bare[:1]]
    return (
        not options
        and all(word.plain for word in words)
        and all(host in ("localhost", "127.0.0.1", "::1") for host in hosts)
        and bool(asked)
        and asked[0]
        in (
            "ping",
            "get",
            "info",
            "dbsize",
            "exists",
            "ttl",
            "type",
            "llen",
            "hgetall",
            "scan",
        )
    )


def _looks_plainly(words: tuple[Word, ...]) -> bool:
    """Whether a look-up says all it sends, and asks nobody else than usual: by names, as addresses lead anywhere."""
    texts = [word.text for word in words[1:]]
    return all(word.plain for word in words) and all(
        re.fullmatch(_LOOKING, text) if text.startswith("-") else is_package(text)
        for text in texts
    )


def judge_told(judge: Judging, name: str, command: ShellCommand) -> list[Effect]:  # noqa: PLR0911 - one for each program
    """Ways of some programs to be told to run something else."""
    words = command.words
    texts = [word.text for word in words[1:]]
    if name in ("make", "gmake", "just", "ninja"):
        if any(text in ("-", "/dev/stdin", "-f-", "--file=-") for text in texts):
            return [unclear("it runs what it is given as input")]
        return _made_from(judge, words)
    if name in ("less", "more", "man", "most") and any(
        text.startswith(("+!", "+|")) for text in texts
    ):
        return [EFFECTS["runs"]]
    if name in ("gdb", "lldb"):
        attached = any(text in ("-p", "--pid", "-n", "--attach-pid") for text in texts)
        return (
            [EFFECTS["spies"]]
            if attached
            else [EFFECTS["runs"] for text in texts if re.match(_TOLD, text)]
        )
    if name in ("hyperfine", "concurrently"):
        return [
            one
            for word in operands(words, _VALUE_OPTIONS)
            for one in judge.deeper(word.text)
        ]
    if name == "npm" and texts[:1] == ["explore"] and "--" in texts:
        return judge.again(command, words[texts.index("--") + 2 :])
    if name == "date" and any(
        re.fullmatch(r"\d{8,12}(\.\d\d)?", text) for text in texts
    ):
        return [EFFECTS["system"]]
    if name == "go" and any("@" in text for text in texts):
        return [EFFECTS["packages"]]
    if name in ("deno", "bun") and any(
        re.match(r"https?:|npm:|jsr:", text) for text in texts
    ):
        return [asks("it runs code from the network", "network")]
    if name == "unset" and any(text.startswith("HIST") for text in texts):
        return [EFFECTS["history"]]
    return []


def _made_from(judge: Judging, words: tuple[Word, ...]) -> list[Effect]:
    """Where a build takes its orders from: a file or folder of somebody else, a shell of another kind."""
    found: list[Effect] = []
    for place, word in enumerate(words[1:], 1):
        if word.text.startswith("SHELL="):
            found += judge.deeper(word.text[6:])
        given = re.fullmatch(
            r"(-[fC]|--(?:file|makefile|directory|justfile)=?)(.*)", word.text
        )
        target = (
            Word(given[2])
            if given and given[2]
            else words[place + 1]
            if given and place + 1 < len(words)
            else None
        )
        if target is not None and not all(
            judge.site.is_inside(path) for path in judge.site.paths(target)
        ):
            found.append(asks("it builds from what lies outside the workspace"))
    return found


def judge_path(judge: Judging, command: ShellCommand) -> list[Effect]:
    """A program named by where it is."""
    words = command.words
    base = words[0].text.rpartition("/")[2]
    paths = judge.site.paths(words[0])
    inside = all(judge.site.is_inside(path) for path in paths[:1])
    if paths and any(
        judge.site.is_temporary(path) and not judge.site.is_inside(path)
        for path in paths
    ):
        return [asks("it runs a program from a temporary folder")]
    shared = re.search(
        r"(^|/)(\.?venv|\.?env|node_modules/\.bin|\.tox|\.nox|vendor/bin)(/|$)",
        words[0].text,
    )
    if not inside or shared:
        known = (
            base in catalogue.programs()
            or base in SHELLS
            or base in INTERPRETERS
            or base in HANDLERS
        )
        if (
            known
            or re.fullmatch(PYTHON, base)
            or base in catalogue.subcommands()
            or base in ("git", "sqlite3")
        ):
            return judge.again(command, (Word(base), *words[1:]))
        if not shared:
            return [asks(f"it is not known what {words[0].text} does")]
    found = [WORK, *judge.fresh(words[0]), judge.named(words, base)]
    if any(
        re.search(_ELSEWHERE, word.text) and not is_address_here(word.text)
        for word in words[1:]
    ):
        found.append(
            asks(
                "it runs a program that is not known, with the address of another machine"
            )
        )
    return found


def is_address_here(text: str) -> bool:
    """Whether an address is one of this machine."""
    return bool(
        re.search(r"(^|[/@])(localhost|127(\.\d{1,3}){3}|0\.0\.0\.0)(:|/|$)", text)
    )


def kind_of(name: str, words: tuple[Word, ...]) -> str:
    """The kind of effect by program and subcommand."""
    table = catalogue.subcommands().get(
        name.removesuffix("3") if name == "pip3" else name
    )
    plain = catalogue.programs().get(name, "unknown")
    if table is None:
        return plain if not _reaches_out(name, words) else "publishes"
    texts = [word.text for word in words[1:]]
    if not texts:
        return table.get(("@",), "work")
    bare = [word.text for word in operands(words, _VALUE_OPTIONS)]
    heads = {texts[0], *bare[:1]}
    phrases = [
        phrase
        for phrase in table
        if phrase[0] in heads and set(phrase[1:]) <= set(texts)
    ]
    kind = table[max(phrases, key=len)] if phrases else table.get(("*",), "unknown")
    return (
        "publishes"
        if kind in ("work", "unknown") and _reaches_out(name, words)
        else kind
    )


def _reaches_out(name: str, words: tuple[Word, ...]) -> bool:
    if any(word.text in ("-n", "--dry-run", "--just-print") for word in words):
        return False
    return name in catalogue.TASK_RUNNERS and any(
        re.split(r"[:_-]", word.text)[0] in catalogue.PERSONAL for word in words[1:]
    )


def added_by_options(name: str, words: tuple[Word, ...]) -> list[Effect]:
    """What options add to what a program does."""
    table = catalogue.options().get(name, {})
    signs = [word.text.partition("=")[0] for word in words[1:]]
    if name in catalogue.BUNDLING:
        signs += [
            f"-{letter}"
            for sign in signs
            if re.fullmatch(r"-[a-zA-Z]{2,}", sign)
            for letter in sign[1:]
        ]
    told = (
        any(re.fullmatch(_RUNS_OTHERS, word.text) for word in words[1:])
        and "--pager=cat" not in signs
    )
    return [EFFECTS[table[sign]] for sign in signs if sign in table] + (
        [EFFECTS["runs"]] if told else []
    )


def only_tells(words: tuple[Word, ...], finding: Effect) -> bool:
    """Whether it only prints its version or help."""
    texts = [word.text for word in words[1:]]
    plain = ("--version", "--help", "-h", "-V", "version", "help")
    short = (*plain, "-v", "-version") if finding.level <= Level.WORK else plain
    if len(texts) == 2 and texts[1] == "--help":  # help of a subcommand
        return finding.level < Level.FORBID and texts[0].isalpha()
    return len(texts) == 1 and texts[0] in short


def fetched(
    wrapper: str, words: tuple[Word, ...], inner: tuple[Word, ...]
) -> list[Effect]:
    """Programs that are fetched before they run."""
    own = words[: len(words) - len(inner)]
    told = any(
        word.text in ("-y", "--yes", "-p", "--package", "--from", "--with", "--spec")
        for word in own
    )
    versioned = inner and re.search(r".@|^(https?|git|github|file):|/", inner[0].text)
    return [EFFECTS["packages"]] if (told and wrapper != "uvx") or versioned else []
