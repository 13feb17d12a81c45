"""Judges interpreters: code in an argument, a module, a script or on standard input; and SQL."""

import re

import msgspec

from hermes.tools.policy.effects import EFFECTS, READ, WORK, Effect, asks, unclear
from hermes.tools.policy.file_effects import write_files
from hermes.tools.policy.inline_code import judge_code, judge_sql
from hermes.tools.policy.paths import is_elsewhere, is_temporary_only
from hermes.tools.policy.pipelines import printed
from hermes.tools.policy.program_call import ProgramCall, operands
from hermes.tools.policy.program_table import program
from hermes.tools.policy.shell_words import Word
from hermes.tools.policy.table_judge import (
    is_own_service,
    judge_by_table,
    named_files,
    subcommand_effect,
)

_PYTHON_FLAGS = r"-[bBdEhiIOPqRsSuvVx]*"
_PYTHON_VALUES = ("-W", "-X", "--check-hash-based-pycs")
_UNKNOWN_CODE = unclear("Hermes can't tell what code it runs")
_ONLY_WHEN_RUN = unclear("what it runs can't be known before it runs")
_CODE_FROM_NETWORK = asks("it runs code from the network", "network")
_FROM_OUTSIDE = asks("it runs a script from outside the workspace")
_DESTROYING_TASKS = r"flush|reset_db|sqlflush|dbshell|migrate:fresh|migrate:reset|db:wipe|migrate:refresh"


def judge_python(call: ProgramCall) -> list[Effect]:
    """Judges python: `-c` code, a module, a script or standard input."""
    words = call.words
    for place, word in enumerate(words[1:], 1):
        text, rest = word.text, words[place + 1 :]
        option = re.fullmatch(rf"{_PYTHON_FLAGS}([cm])(.*)", text, re.DOTALL)
        if option:
            glued = (Word(option[2], word.known),) if option[2] else ()
            given = (*glued, *rest) or (Word("", known=False),)
            if option[1] == "m":
                return _module(call, given)
            return [_code_effect("python", given[0]), _files(call, *given[1:])]
        if text in ("--version", "-V", "-VV", "--help", "-h"):
            return [READ]
        is_value = words[place - 1].text in _PYTHON_VALUES
        if not text.startswith("-") and not is_value:
            return judge_project_script(call, word)
    return judge_input(call, "python")


def _code_effect(language: str, code: Word) -> Effect:
    return judge_code(language, code.text) if code.known else _UNKNOWN_CODE


def _files(call: ProgramCall, *words: Word) -> Effect:
    """The effect of passing these files to code."""
    return named_files((call.words[0], *words), call.context)


def judge_project_script(call: ProgramCall, file: Word) -> list[Effect]:
    """Judges a script that an interpreter runs."""
    rest = [word.text for word in call.words[call.words.index(file) + 1 :]]
    name = file.text.rpartition("/")[2]
    if name in ("manage.py", "artisan") and _destroys_data(rest):
        return [EFFECTS["destroys"]]
    if name == "setup.py" and {"install", "upload", "register"} & set(rest):
        return [EFFECTS["packages"]]
    is_installed = re.search(r"/(node_modules|site-packages)/", file.text)
    is_outside = is_elsewhere(call.context, file) and not is_installed
    return _script(call, file, [_FROM_OUTSIDE] if is_outside else [])


def _destroys_data(task: list[str]) -> bool:
    """Whether a task of a web framework discards data in the database."""
    if task[:1] == ["migrate"]:
        return "zero" in task
    return bool(task) and bool(re.fullmatch(_DESTROYING_TASKS, task[0]))


def judge_script(call: ProgramCall, file: Word) -> list[Effect]:
    """Judges a script that a shell runs, or a file that code is read from."""
    if is_temporary_only(call.context, file):
        return _script(call, file, [asks("it runs a script from a temporary folder")])
    paths = call.context.paths(file)
    is_inside = all(call.context.is_inside(path) for path in paths[:1])
    return _script(call, file, [] if is_inside else [_FROM_OUTSIDE])


def _script(call: ProgramCall, file: Word, reasons: list[Effect]) -> list[Effect]:
    """Judges a script: unclear if its content can't be known, else the given `reasons`, else its own effects."""
    if not file.known or file.text.startswith(("/dev/", "/proc/", "<(")):
        return [_ONLY_WHEN_RUN]
    if re.match(r"https?:", file.text):
        return [_CODE_FROM_NETWORK]
    if reasons:
        return reasons
    return [WORK, *call.judge.written_script(file), _files(call, *call.words[1:])]


def _module(call: ProgramCall, words: tuple[Word, ...]) -> list[Effect]:
    """`python -m`: a module with its own table entry, a program of the same name, or any other module."""
    if not words or not words[0].plain:
        return [unclear("Hermes can't tell which module it runs")]
    name = words[0].text
    entry = program(f"python -m {name}")
    if entry.is_known:
        command = msgspec.structs.replace(call.command, words=words)
        module = ProgramCall(call.judge, name, entry, command)
        judge = MODULE_JUDGES.get(entry.judge)
        if judge is not None:
            return judge(module)
        return [EFFECTS[entry.effect], named_files(words, call.context)]
    if program(name).is_known:
        return call.judge.judge_words(call.command, words)
    return [WORK, named_files(words, call.context)]


def _web_server(call: ProgramCall) -> list[Effect]:
    address = next((word.text for word in call.after("-b", "--bind")), "")
    is_private = is_own_service(address) and address != "0.0.0.0"  # noqa: S104 - judged, not used
    return [WORK if is_private else EFFECTS["listens"]]


def _json_tool(call: ProgramCall) -> list[Effect]:
    files = named_files(call.words, call.context)
    outputs = call.operands[1:2]
    return [write_files(outputs, call.context) if outputs else READ, files]


def _timeit(call: ProgramCall) -> list[Effect]:
    """`timeit`: every word may be code."""
    option = r"-[a-zA-Z]+|--\w+|\d+"
    codes = [word for word in call.words[1:] if not re.fullmatch(option, word.text)]
    texts = [Word(re.sub(r"^--[^=]*=?", "", one.text), one.known) for one in codes]
    return [WORK, *(_code_effect("python", text) for text in texts)]


MODULE_JUDGES = {
    "json-tool": _json_tool,
    "timeit": _timeit,
    "web-server": _web_server,
}
"""Judges for Python modules, by the name in their `judge` field."""


def judge_interpreter(call: ProgramCall) -> list[Effect]:
    """Judges an interpreter other than python."""
    codes = [
        (place, code)
        for place in range(1, len(call.words))
        if (code := _code_at(call, place)) is not None
    ]
    if codes:
        found = [one for place, code in codes for one in _inline(call, place, code)]
        # A subcommand still has its effect if there is an option for code beside it: `bun add NAME -p`.
        kinds = [subcommand_effect(call)] if call.program.subcommands else []
        return [*found, *(EFFECTS[kind] for kind in kinds)]
    if call.program.subcommands and call.texts:
        return judge_by_table(call)
    if call.prints_help(WORK):
        return [READ]
    values = frozenset(("-r", "--require", "--import", "-I", "--loader", "-C"))
    files = operands(call.words, values)
    if not files or files[0].text == "-":
        return judge_input(call, call.name)
    return judge_project_script(call, files[0])


def _code_at(call: ProgramCall, place: int) -> Word | None:
    """The code in the argument at `place`, or in the one after it; None if it is not an option for code."""
    word = call.words[place]
    options = (call.program.code or "").split()
    following = call.words[place + 1] if place + 1 < len(call.words) else Word("")
    if word.text in options:
        return following
    name, sign, value = word.text.partition("=")
    if sign and name in options:
        return Word(value, word.known)
    bundle = r"-[a-zA-Z0-9.]*?[eE](.*)" if call.program.in_place else r"(?!)"
    glued = re.fullmatch(bundle, word.text, re.DOTALL)
    if glued:
        if glued[1]:
            return Word(glued[1], word.known)
        return following
    if word.text[:2] in options and not word.text.startswith("--"):
        return Word(word.text[2:], word.known)
    return None


def _inline(call: ProgramCall, place: int, code: Word) -> list[Effect]:
    """Judges code that the argument at `place` holds or introduces."""
    if not code.known:
        return [_UNKNOWN_CODE]
    last = call.texts[place - 1].removesuffix(code.text)
    options = [*call.texts[: place - 1], last]
    is_next = call.words[place + 1 : place + 2] == (code,)
    rest = call.words[place + 2 if is_next else place + 1 :]
    edits = call.program.in_place and any(
        re.match(r"-[a-zA-Z]*i", text) for text in options
    )
    if not edits:
        return [judge_code(call.name, code.text), _files(call, *rest)]
    if _empties(code.text, options):
        return [asks("it empties files")]
    return [judge_code(call.name, code.text), write_files(rest, call.context)]


def _empties(code: str, options: list[str]) -> bool:
    """Whether an edit in place leaves nothing of the text."""
    is_silent = any(re.match(r"-[a-zA-Z]*n", text) for text in options)
    if is_silent and "print" not in code:
        return True
    blanks = r"\$_\s*=\s*(\"\"|''|undef)|undef\s*\(?\s*\$_|s(.)\.\*\2\2"
    return bool(re.search(blanks, code))


def judge_input(call: ProgramCall, language: str) -> list[Effect]:
    """Judges code that is read from standard input."""
    command = call.command
    given = command.given
    if given is None and command.upstream:
        given = printed(command.upstream)
        if given is None:
            return [unclear("it runs what another program prints")]
    if given is None:
        files = [one.target for one in command.redirects if one.operator == "<"]
        return judge_script(call, files[-1]) if files else [WORK]
    if not given.known:
        return [unclear("the code it runs is assembled while it runs")]
    if language == "shell":
        return call.judge.judge_text(given.text)
    return [judge_code(language, given.text)]


def judge_database(call: ProgramCall) -> list[Effect]:
    """Judges the client of a database in a file by its SQL."""
    command = call.command
    if any(text.lstrip("-") == "init" for text in call.texts):
        return [asks("it runs SQL and commands from a file")]
    queries = [*call.operands[1:], *call.after("-cmd", "-c")]
    if command.given is not None:
        queries.append(command.given)
    elif command.upstream:
        queries.append(printed(command.upstream) or Word("", known=False))
    elif any(one.operator == "<" for one in command.redirects):
        return [asks("it runs SQL from a file")]
    if not all(word.known for word in queries):
        return [asks("the SQL it runs can't be known before it runs")]
    found = [judge_sql(word.text) for word in queries]
    return [*found, _files(call, *call.operands[:1])]
