"""Judges a program by its entry in the table: its subcommand, its options, and the files it names."""

import re
from collections.abc import Sequence
from itertools import pairwise

from hermes.text.translation import translator
from hermes.tools.policy.effects import (
    EFFECTS,
    LOOKS_UP,
    READ,
    WORK,
    Effect,
    Level,
    asks,
)
from hermes.tools.policy.file_effects import secret_reason, write_files
from hermes.tools.policy.paths import (
    PathContext,
    is_outside,
    is_temporary_only,
)
from hermes.tools.policy.program_call import ProgramCall, is_given, operands
from hermes.tools.policy.program_table import UNKNOWN, Phrase, Program, program
from hermes.tools.policy.shell_words import Word, word_set

t = translator(__name__)

SUBCOMMAND_VALUES = word_set(
    "-C --prefix --cwd --dir --filter -F -w --workspace --manifest-path --project -p --directory --context -n"
    " --namespace -f --file --color --config -c --profile"
)
"""Options before a subcommand that usually take a value."""
_OUTPUT_OPTIONS = word_set(
    "-o --output --out --outfile --outFile --out-file --output-file --output-dir --outdir --outDir --target-dir --dest"
    " --destination --dist --log-file --out-dir --report --junitxml"
)
_RUNS_OTHERS = r"""(?x) --?(
        shell-escape | enable-write18 | vettool | toolexec | pager | editor | ext-diff | use-askpass | rsh | init-script
      | to-command | use-compress-program | compress-program | checkpoint-action | script-shell | node-options
      | run-as | post-?process\w* | exec-batch | hostname-bin | strip-program | unzip-command | extcmd | ssh-command
    )(=.*)?"""
"""Options that tell any program to run another one."""
_LOOKUP_OPTIONS = (
    r"--(json|long|all|parseable|outdated|production|depth(=\d+)?|omit=\w+|audit-level=\w+|format=\w+|pre|local)"
    r"|-[alp]"
)
"""Options of look-ups that only change what is displayed."""
_SHOWS_PACKAGE = word_set("view info show v")
"""Subcommands of npm that look up one package."""
_PUBLISHING_TASK = (
    r"(deploy|publish|release|install|uninstall|destroy|teardown|push|upload)([:_-].*)?"
)
"""Common names of tasks that act beyond the workspace."""
_PROJECT_PROGRAMS = (
    r"(^|/)(\.?venv|\.?env|node_modules/\.bin|\.tox|\.nox|vendor/bin)(/|$)"
)
_SERVER_ADDRESS = r"(?i)(stratum\S*://\S+|([\w-]+\.)+[a-z]{2,}:\d{2,5}|\d{1,3}(\.\d{1,3}){3}:\d{2,5})$"
_OWN_ADDRESS = r"(^|[/@])(localhost|127(\.\d{1,3}){3}|0\.0\.0\.0)(:|/|$)"
_OWN_SERVICE = (
    r"(https?://)?(localhost|127(\.\d{1,3}){3}|\[::1\]|0\.0\.0\.0)(:\d+)?([/?#].*)?$"
)

_NAME = r"[A-Za-z0-9_]([\w.-]*[A-Za-z0-9_])?"
_VERSION = r"[\w.^~-]+"
_FORMS = {
    "name": rf"(?a:(@{_NAME}/)?{_NAME}(@{_VERSION})?)",
    "python": rf"(?a:{_NAME}(\[[\w,-]+\])?([=<>~!]={_VERSION})?)",
    "vendor": rf"(?a:{_NAME}/{_NAME})",
}
"""The form of package names, by the `installs` field of a program."""
_ARCHIVE = r"(?i)\.(tar|tgz|tbz2?|txz|tlz|zip|whl|egg|gz|bz2|xz|zst|lz|lzma|gem|crate|deb|rpm|conda|jar|nupkg|phar)$"
_SCRIPT = (
    r"(?i)\.([cm]?[jt]s|[jt]sx|py|pyz|rb|sh|bash|zsh|fish|ps1|bat|cmd|exe|pl|php|lua)$"
)
_HARMLESS_OPTIONS = word_set(
    "-D --save-dev -S --save -E --save-exact -O --save-optional --dev -y --yes -U --upgrade -q --quiet --verbose --no-audit"
    " --no-fund --silent"
)
"""Options that take no value and don't change where packages come from or go."""


def judge_by_table(call: ProgramCall) -> list[Effect]:
    """Judges a program by its subcommand, its options and the files it names."""
    kind = subcommand_effect(call)
    effect = EFFECTS[kind]
    if kind == "unknown":
        if call.judge.defines(call.name):
            return [READ]  # the function is judged at its definition
        effect = asks(
            t.logged("Hermes does not know what {name} does", name=repr(call.name))
        )
    if call.prints_help(effect) and effect.level != Level.FORBID:
        return [READ]
    effect = _without_network(call, kind) or effect
    return [
        *_project_sources(call, effect),
        effect,
        *option_effects(call),
        named_files(call.words, call.context, call.program),
    ]


def subcommand_effect(call: ProgramCall) -> str:
    """The effect by program and subcommand."""
    phrases = call.program.phrases
    effect = call.program.effect
    if phrases and not call.texts:
        return phrases.get(("@",), "work")
    if phrases:
        phrase = max(_fitting_phrases(call), key=lambda one: _rank(one, phrases))
        effect = phrases.get(phrase, "unknown")
    if effect in ("work", "unknown") and _runs_publishing_task(call):
        return "publishes"
    return effect


def _rank(phrase: Phrase, phrases: dict[Phrase, str]) -> tuple[bool, int, Level]:
    """Sort key: the longest phrase wins, then the strictest; `*` only if nothing else matches."""
    level = EFFECTS[phrases.get(phrase, "unknown")].level
    return phrase != ("*",), len(phrase), level


def _fitting_phrases(call: ProgramCall) -> list[Phrase]:
    """The phrases that the arguments begin with, and `*`."""
    values = word_set(call.program.values) or SUBCOMMAND_VALUES
    names = [word.text for word in operands(call.words, values)]
    heads = (call.texts[0], *names[:1])
    candidates = [phrase for phrase in call.program.phrases if phrase[0] in heads]
    return [("*",), *(one for one in candidates if _fits(one, names, call))]


def _fits(phrase: Phrase, names: list[str], call: ProgramCall) -> bool:
    """Whether the rest of a phrase matches. In a phrase that needs no approval, words must be in place; else anywhere."""
    rest = phrase[1:]
    if "@" in rest:
        return len(call.texts) == len(rest)
    if EFFECTS[call.program.phrases[phrase]].level > Level.WORK:
        return all(is_given(part, call.signs) for part in rest)
    words = [part for part in rest if not part.startswith("-")]
    options = [part for part in rest if part.startswith("-")]
    in_place = names[1 : 1 + len(words)] == words
    return in_place and set(options) <= set(call.options)


def _runs_publishing_task(call: ProgramCall) -> bool:
    if not call.program.has_trait("task-runner"):
        return False
    if {"-n", "--dry-run", "--just-print"} & set(call.texts):
        return False
    return any(re.fullmatch(_PUBLISHING_TASK, text) for text in call.texts)


def _without_network(call: ProgramCall, kind: str) -> Effect | None:
    """The effect of a network command whose arguments make it harmless or suspicious; None if they don't matter."""
    if kind == "lookup" and not _looks_up_names(call):
        return asks(
            "it sends data over the network that Hermes can't see, or makes an unusual request",
            "network",
        )
    offline = call.program.has_trait("offline") and "--offline" in call.texts
    dry = "--dry-run" in call.texts or "--dryrun" in call.texts
    if (kind == "packages" and offline) or (kind in ("packages", "publishes") and dry):
        return WORK
    return None


def _project_sources(call: ProgramCall, effect: Effect) -> list[Effect]:
    """Asks if a file of the project says where the packages come from: it may be anybody's, and send anything there."""
    names = call.program.sources.split()
    file = call.context.project_file(names) if effect.reach == "network" else None
    if file is None:
        return []
    reason = t.logged("{file} may redirect it to another server", file=file)
    return [Effect(Level.ASK, reason, "network", depends_on=str(file))]


def _looks_up_names(call: ProgramCall) -> bool:
    """Whether a look-up sends only package names, and to the usual registry."""
    return all(word.plain for word in call.words) and all(
        re.fullmatch(_LOOKUP_OPTIONS, text)
        if text.startswith("-")
        else is_package(text)
        for text in call.texts
    )


def option_effects(call: ProgramCall) -> list[Effect]:
    """The effects of a program's options and other arguments."""
    found = [
        EFFECTS[effect]
        for effect, options in call.program.options.items()
        if any(is_given(option, call.signs) for option in options.split())
    ]
    for effect, pattern in (*call.program.arguments.items(), ("runs", _RUNS_OTHERS)):
        if any(re.fullmatch(pattern, text) for text in call.texts):
            found.append(EFFECTS[effect])
    return found


def named_files(
    words: Sequence[Word], context: PathContext, entry: Program = UNKNOWN
) -> Effect:
    """The effect of the files among a program's arguments: secrets that it reads, outputs that it writes elsewhere."""
    skip = entry.skip
    for before, word in pairwise(words):
        if entry.operands == "text" and word.known:
            continue
        if _is_text(before, word, entry):
            continue
        is_file = before.text in ("-f", "--file")
        if skip and not is_file and not word.text.startswith("-"):
            skip -= 1
            continue
        target = _output(before, word, entry)
        if target is not None:
            effect = write_files([target], context)
            if effect.level > Level.WORK:
                return effect
        reason = secret_reason(context, word)
        if reason:
            return asks(reason)
    return READ


def _is_text(before: Word, word: Word, entry: Program) -> bool:
    """Whether a word is plain text for the program, such as a commit message."""
    options = word_set(entry.text_options)
    if before.text in options:
        return True
    short = word.text[:2] in options and not word.text.startswith("--")
    return short or word.text.partition("=")[0] in options


def _output(before: Word, word: Word, entry: Program) -> Word | None:
    """The output file that a word names; None if it names none."""
    if entry.has_trait("no-output"):
        return None
    option, sign, value = word.text.partition("=")
    outputs = _OUTPUT_OPTIONS | word_set(entry.outputs)
    target = None
    if re.match(r"-o[~/.]", word.text):
        target = Word(word.text[2:], word.known)
    elif sign and option in outputs:
        target = Word(value)
    elif before.text in outputs:
        target = word
    if target is not None and not target.text.startswith("-"):
        return target
    return None


def judge_path(call: ProgramCall) -> list[Effect]:
    """Judges a program named by its path."""
    word = call.words[0]
    paths = call.context.paths(word)
    if is_temporary_only(call.context, word):
        return [asks("it runs a program from a temporary folder")]
    shared = re.search(_PROJECT_PROGRAMS, word.text)
    base = word.text.rpartition("/")[2]
    if shared or not all(call.context.is_inside(path) for path in paths[:1]):
        if program(base).is_known:
            return call.judge.judge_words(call.command, (Word(base), *call.words[1:]))
        if not shared:
            return [
                asks(t.logged("Hermes does not know what {name} does", name=word.text))
            ]
    found = [
        WORK,
        *call.judge.written_script(word),
        named_files(call.words, call.context, program(base)),
    ]
    if any(_is_server_address(text) for text in call.texts):
        found.append(
            asks("it runs an unknown program with the address of another machine")
        )
    return found


def _is_server_address(text: str) -> bool:
    return bool(re.search(_SERVER_ADDRESS, text)) and not re.search(_OWN_ADDRESS, text)


def is_own_service(text: str) -> bool:
    """Whether an address is on this machine."""
    return bool(re.match(_OWN_SERVICE, text))


def judge_fetch(call: ProgramCall) -> list[Effect]:
    """Judges a request over the network. Reading from services on this machine needs no approval."""
    files = named_files(call.words, call.context, call.program)
    if call.prints_help(READ):
        return [files]
    hosts = [word for word in call.operands if word.text not in ("GET", "HEAD")]
    if not hosts or not all(word.known and is_own_service(word.text) for word in hosts):
        return [files, EFFECTS["network"]]
    pattern = "|".join(f"(?:{one})" for one in call.program.request_options)
    stays = not call.program.stays_with or call.program.stays_with in call.texts
    options = _options_with_values(call)
    if stays and all(re.fullmatch(pattern, option) for option in options):
        return [files, LOOKS_UP]
    sends = asks(
        "it sends data to a service on this machine, or makes an unusual request",
        "network",
    )
    return [files, sends]


def _options_with_values(call: ProgramCall) -> list[str]:
    """Each option with its value, if it takes one: `-s`, `-X GET`. An unknown word becomes `?`."""
    values = word_set(call.program.values)
    found: list[str] = []
    for before, word in pairwise(call.words):
        is_text = word.known or word.text[:1].isalpha()
        text = word.text if is_text else "?"
        if before.text in values:
            found.append(f"{before.text} {text}")
        elif text.startswith(("-", "?")) and text != "-" and text not in values:
            found.append(text)
    return found


def judge_build(call: ProgramCall) -> list[Effect]:
    """Judges a build tool by the file and folder it works from, and the shell it runs."""
    found = judge_by_table(call)
    for text in call.texts:
        if text.startswith("SHELL="):
            found += call.judge.judge_text(text.removeprefix("SHELL="))
    sources = call.values_of(
        "-f", "-C", "--file", "--makefile", "--directory", "--justfile"
    )
    if any(is_outside(call.context, word) for word in sources):
        found.append(asks("it builds from files outside the workspace"))
    return found


def judge_commands(call: ProgramCall) -> list[Effect]:
    """Judges a program whose operands are shell commands, such as hyperfine."""
    texts = [word.text for word in operands(call.words, SUBCOMMAND_VALUES)]
    inner = [one for text in texts for one in call.judge.judge_text(text)]
    return judge_by_table(call) + inner


def judge_npm(call: ProgramCall) -> list[Effect]:
    """npm: `npm x` is `npm exec`, and `npm explore` runs the command after `--`."""
    found = judge_by_table(call)
    inner: tuple[Word, ...] = ()
    if call.texts and call.texts[0] in _SHOWS_PACKAGE and not call.prints_help(READ):
        name = call.texts[1:2]
        if not name or name[0].startswith("-"):
            # It takes the name in package.json then, which may be an address.
            found.append(EFFECTS["network"])
    if call.texts[:1] == ["x"]:
        inner = (call.words[0], Word("exec"), *call.words[2:])
    elif call.texts[:1] == ["explore"] and "--" in call.texts:
        inner = call.words[call.texts.index("--") + 2 :]
    return found + call.judge.judge_words(call.command, inner)


def judge_key_value_store(call: ProgramCall) -> list[Effect]:
    """Judges a client of a key-value store. Queries to a server on this machine need no approval."""
    hosts = {word.text for word in call.after("-h")}
    options = {text for text in call.texts if text.startswith("-")}
    asked = [word.text.lower() for word in call.operands[:1]]
    reads = r"ping|get|info|dbsize|exists|ttl|type|llen|hgetall|scan"
    is_plain = all(word.plain for word in call.words) and options <= {"-h", "-p", "-n"}
    is_own = hosts <= {"localhost", "127.0.0.1", "::1"}
    if is_plain and is_own and asked and re.fullmatch(reads, asked[0]):
        return [LOOKS_UP]
    return judge_by_table(call)


def is_package(text: str, form: str = "name") -> bool:
    """Whether a word can only be a package name."""
    parts = re.split(r"[@\[=<>~!]", text)
    is_archive = any(re.search(_ARCHIVE, part) for part in parts)
    return bool(re.fullmatch(_FORMS[form], text)) and not is_archive


def install_command(texts: Sequence[str]) -> tuple[str, ...]:
    """The words of a command that installs packages by plain name, without the names; empty for any other command."""
    for form, phrases in program(texts[0]).installs.items():
        for phrase in phrases.split():
            verb = (texts[0], *phrase.split("+"))
            rest = texts[len(verb) :]
            if tuple(texts[: len(verb)]) != verb:
                continue
            options = [text for text in rest if text.startswith("-")]
            names = [text for text in rest if not text.startswith("-")]
            if names and _HARMLESS_OPTIONS.issuperset(options):
                if _are_packages(names, form):
                    return (*verb, *options)
                return ()
    return ()


def _are_packages(names: Sequence[str], form: str) -> bool:
    return all(
        is_package(name, form) and not re.search(_SCRIPT, name) for name in names
    )
