"""Interpreters: code in an argument, a module, a script of the project, or code that comes as input; and SQL."""

import re

from hermes.tools.policy import catalogue
from hermes.tools.policy.inline_code import INTERPRETERS, judge_code
from hermes.tools.policy.effects import EFFECTS, READ, WORK, Effect, asks, unclear
from hermes.tools.policy.fetching import is_local
from hermes.tools.policy.file_programs import operands, written
from hermes.tools.policy.shell_parser import ShellCommand
from hermes.tools.policy.judging import Judging
from hermes.tools.policy.table_judge import judge_known, only_tells
from hermes.tools.policy.pipelines import printed
from hermes.tools.policy.sql import judge_sql
from hermes.tools.policy.shell_words import Word


def judge_python(judge: Judging, name: str, command: ShellCommand) -> list[Effect]:  # noqa: ARG001 - one shape for all
    """Python: code, a module, a script, or its input."""
    words = command.words
    for place, word in enumerate(words[1:], 1):
        text = word.text
        if re.fullmatch(r"-[bBdEhiIOqsSuvVx]*c", text):
            code = words[place + 1] if place + 1 < len(words) else Word("", known=False)
            return [
                judge_code("python", code.text)
                if code.known
                else unclear("the code it runs is not known"),
                judge.named(words[:1] + words[place + 2 :], ""),
            ]
        if re.fullmatch(r"-[bBdEhiIOqsSuvVx]*m", text):
            return _module(judge, command, words[place + 1 :])
        if text in ("-W", "-X"):
            continue
        if text == "-" or (
            text.startswith("-")
            and text not in ("--version", "-V", "-VV", "--help", "-h")
        ):
            continue
        if text.startswith("-"):
            return [READ]
        if words[place - 1].text in ("-W", "-X"):
            continue
        return judge_project_script(judge, command, word)
    return judge_input(judge, command, "python")


def judge_project_script(
    judge: Judging, command: ShellCommand, file: Word
) -> list[Effect]:
    """A script that an interpreter is given."""
    if not file.known or file.text.startswith(("/dev/", "/proc/", "<(")):
        return [unclear("what it runs is only known when it runs")]
    if re.match(r"https?:", file.text):
        return [asks("it runs code from the network", "network")]
    rest = command.words[command.words.index(file) + 1 :]
    if file.text.rpartition("/")[2] in ("manage.py", "artisan") and rest:
        risky = (
            "flush",
            "reset_db",
            "sqlflush",
            "dbshell",
            "migrate:fresh",
            "migrate:reset",
            "db:wipe",
            "migrate:refresh",
        )
        if rest[0].text in risky or (
            rest[0].text == "migrate" and any(word.text == "zero" for word in rest)
        ):
            return [EFFECTS["destroys"]]
    if file.text.rpartition("/")[2] == "setup.py" and any(
        word.text in ("install", "upload", "register") for word in rest
    ):
        return [EFFECTS["packages"]]
    outside = [
        path
        for path in judge.site.paths(file)
        if not judge.site.is_inside(path) and not judge.site.is_temporary(path)
    ]
    if outside and not re.search(r"/(node_modules|site-packages)/", file.text):
        return [asks("it runs a script from outside the workspace")]
    return [WORK, *judge.fresh(file), judge.named(command.words, "")]


def _module(
    judge: Judging, command: ShellCommand, words: tuple[Word, ...]
) -> list[Effect]:  # noqa: PLR0911 - by module
    if not words or not words[0].plain:
        return [unclear("which module it runs is not known")]
    module = words[0].text
    if module in ("http.server", "SimpleHTTPServer"):
        bound = [
            words[place + 1].text
            for place, word in enumerate(words[:-1])
            if word.text in ("-b", "--bind")
        ]
        return [
            WORK
            if bound and is_local(bound[0]) and bound[0] != "0.0.0.0"  # noqa: S104
            else EFFECTS["listens"]
        ]
    if module == "timeit":
        return _timed(words)
    if module in (
        "json.tool",
        "this",
        "calendar",
        "tokenize",
        "ast",
        "dis",
        "sysconfig",
        "platform",
    ):
        writes = module == "json.tool" and len(operands(words)) > 1
        return [WORK if writes else READ, judge.named(words, "")]
    if module in (
        "smtpd",
        "ftplib",
        "telnetlib",
        "webbrowser",
        "asyncio",
        "pdb",
        "code",
        "runpy",
        "ensurepip",
    ):
        return [EFFECTS["runs"]]
    table = catalogue.programs()
    if module in table or module in catalogue.subcommands():
        return judge.again(command, words)
    return [WORK, judge.named(words, "")]


def _timed(words: tuple[Word, ...]) -> list[Effect]:
    """`timeit`: every word may be code."""
    codes = [
        word
        for word in words[1:]
        if not re.fullmatch(r"-[a-zA-Z]+|--\w+|\d+", word.text)
    ]
    if not all(word.known for word in codes):
        return [unclear("the code it runs is not known")]
    return [
        WORK,
        *(
            judge_code(
                "python",
                word.text.partition("=")[2]
                if word.text.startswith("--")
                else word.text,
            )
            for word in codes
        ),
    ]


def judge_interpreter(judge: Judging, name: str, command: ShellCommand) -> list[Effect]:  # noqa: PLR0911 - a line for each way
    """An interpreter other than python."""
    words = command.words
    flags = INTERPRETERS[name]
    for place, word in enumerate(words[1:], 1):
        text = word.text
        bundle = name in ("perl", "ruby") and re.fullmatch(r"-[a-zA-Z0-9.]*[eE]", text)
        if text in flags or bundle or (text.startswith("--eval=") and flags):
            code = (
                words[place + 1]
                if place + 1 < len(words) and "=" not in text
                else Word(text.partition("=")[2])
            )
            if not code.known:
                return [unclear("the code it runs is not known")]
            changes = any(
                re.match(r"-[a-zA-Z]*i", one.text) for one in words[1 : place + 1]
            ) and name in (
                "perl",
                "ruby",
            )
            rest = list(words[place + 2 :])
            if changes and _blanks(code.text, words[1 : place + 1]):
                return [asks("it empties files")]
            return [
                judge_code(name, code.text),
                written(rest, judge.site)
                if changes
                else judge.named(words[:1] + tuple(rest), ""),
            ]
        if text in ("-r", "--require", "--import", "--loader") and place + 1 < len(
            words
        ):
            continue
    if name in catalogue.subcommands() and len(words) > 1:
        return judge_known(judge, name, command)
    if only_tells(words, WORK):
        return [READ]
    files = operands(
        words, frozenset(("-r", "--require", "--import", "-I", "--loader", "-C"))
    )
    if not files or files[0].text == "-":
        return judge_input(judge, command, name)
    return judge_project_script(judge, command, files[0])


def _blanks(code: str, options: tuple[Word, ...]) -> bool:
    """Whether a change in place keeps nothing of the text."""
    silent = (
        any(re.match(r"-[a-zA-Z]*n", word.text) for word in options)
        and "print" not in code
    )
    return silent or bool(
        re.search(r"\$_\s*=\s*(\"\"|''|undef)|undef\s*\(?\s*\$_|s(.)\.\*\2\2", code)
    )


def judge_file(judge: Judging, command: ShellCommand, file: Word) -> list[Effect]:
    """A script that is run or read from a file."""
    if not file.known or file.text.startswith(("<(", "/dev/fd", "/proc/")):
        return [unclear("what it runs is only known when it runs")]
    if re.match(r"https?:", file.text):
        return [asks("it runs code from the network", "network")]
    paths = judge.site.paths(file)
    if any(
        judge.site.is_temporary(path) and not judge.site.is_inside(path)
        for path in paths
    ):
        return [asks("it runs a script from a temporary folder")]
    if not all(judge.site.is_inside(path) for path in paths[:1]):
        return [asks("it runs a script from outside the workspace")]
    return [WORK, *judge.fresh(file), judge.named(command.words, "")]


def judge_input(judge: Judging, command: ShellCommand, language: str) -> list[Effect]:
    """Code that comes as input."""
    given = command.given
    if given is None and command.upstream:
        given = printed(command.upstream)
        if given is None:
            return [unclear("it runs what another program prints")]
    if given is None:
        source = next(
            (one.target for one in reversed(command.redirects) if one.operator == "<"),
            None,
        )
        return judge_file(judge, command, source) if source is not None else [WORK]
    if not given.known:
        return [unclear("the code it runs is put together while it runs")]
    return (
        judge.deeper(given.text)
        if language == "shell"
        else [judge_code(language, given.text)]
    )


def judge_database(judge: Judging, name: str, command: ShellCommand) -> list[Effect]:  # noqa: ARG001 - one shape for all
    """A database in a file: what its SQL does."""
    if any(word.text.lstrip("-") == "init" for word in command.words[1:]):
        return [asks("it runs SQL and commands from a file")]
    files = operands(
        command.words,
        frozenset(("-cmd", "-init", "-separator", "-nullvalue", "-c", "-s")),
    )
    queries = files[1:] + [
        command.words[place + 1]
        for place, word in enumerate(command.words[:-1])
        if word.text in ("-cmd", "-c")
    ]
    if command.given is not None:
        queries.append(command.given)
    elif command.upstream:
        queries.append(printed(command.upstream) or Word("", known=False))
    elif any(one.operator == "<" for one in command.redirects):
        return [asks("it runs SQL from a file on a database")]
    if any(not word.known for word in queries):
        return [asks("the SQL it runs is only known when it runs")]
    return [
        *(judge_sql(word.text) for word in queries),
        judge.named((Word("sqlite3"), *files[:1]), ""),
    ]
