"""Judges a command by what each of the programs in it does, wherever it stands, and whatever runs it."""

import re
from pathlib import Path

import msgspec

from hermes.tools.policy import catalogue
from hermes.tools.policy.code import judge_code
from hermes.tools.policy.effects import KINDS, LOOKS_UP, READ, WORK, Finding, Level, asks, forbidden, unclear, worst
from hermes.tools.policy.fileworks import HANDLERS, OUTPUT_OPTIONS, emptied, operands, overwritten, written
from hermes.tools.policy.floor import floor, write_floor
from hermes.tools.policy.gitwork import judge_git
from hermes.tools.policy.grammar import Command, Script, Unreadable, read_script
from hermes.tools.policy.places import Site, is_device, is_stream, secret_reason
from hermes.tools.policy.rules import RuleBook
from hermes.tools.policy.sql import judge_sql
from hermes.tools.policy.words import Word, escaped
from hermes.tools.policy.wrappers import (
    FETCHING,
    SHELLS,
    inner_words,
    program_name,
    runs_text,
    shell_text,
    wrapper_of,
    xargs_words,
)

BY_RULE = "your rules allow it"
_MAX_DEPTH = 6
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
_TEXT_ONLY = frozenset(
    ("echo", "printf", ":", "true", "false", "test", "[", "expr", "seq", "sleep", "exit", "return", "let")
)
_PATTERN_FIRST = frozenset(("grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack", "jq", "fd", "fdfind", "yq"))
_RESERVED = frozenset(
    ("!", "{", "}", "then", "do", "done", "fi", "esac", "elif", "else", "in", "if", "while", "until", "for")
)
"""Words of the grammar that can't be programs: where one is, the grammar has read something else than bash would."""
_PYTHON = re.compile(r"(python|pypy)(\d(\.\d+)?)?")
_INTERPRETERS: dict[str, tuple[str, ...]] = {
    "node": ("-e", "--eval", "-p", "--print", "-pe"), "nodejs": ("-e", "--eval", "-p"), "bun": ("-e", "--eval", "-p"),
    "ruby": ("-e",), "perl": ("-e", "-E"), "php": ("-r",), "lua": ("-e",), "luajit": ("-e",), "Rscript": ("-e",),
    "R": ("-e",), "julia": ("-e", "-E"), "ghc": ("-e",), "elixir": ("-e",), "scala": ("-e",), "groovy": ("-e",),
    "swift": ("-e",), "deno": ("eval",), "racket": ("-e",), "sbcl": ("--eval",), "tclsh": (), "ts-node": ("-e",), "tsx": ("-e",),
}  # fmt: skip
_CODE_OPTION = re.compile(r"-[a-zA-Z0-9]*[eE]")
_RISKY_VARIABLES = re.compile(
    r"LD_(PRELOAD|AUDIT|LIBRARY_PATH)|DYLD_\w+|PROMPT_COMMAND|BASH_ENV|ENV|IFS|GIT_(SSH|SSH_COMMAND|EXTERNAL_DIFF|PROXY_COMMAND"
    r"|EXEC_PATH|CONFIG\w*|EDITOR|SEQUENCE_EDITOR|PAGER|ASKPASS)|PAGER|EDITOR|VISUAL|PYTHONSTARTUP|PERL5(OPT|LIB|DB)|RUBYOPT"
    r"|SHELLOPTS|BASHOPTS|PS4|HIST\w+|SSH_ASKPASS|SUDO_ASKPASS|MANPAGER|LESSOPEN|HERMES_\w+|NPM_CONFIG_\w*|PIP_\w*INDEX\w*"
)
_HARMLESS_VALUES = re.compile(r"true|:|cat|less|more|vim?|nano|-?1|0?")
_DECODERS = frozenset(
    ("base64", "base32", "xxd", "openssl", "gunzip", "gzip", "zcat", "rev", "tr", "uudecode", "gpg", "curl", "wget")
)
_LOCAL = re.compile(r"(https?://)?(localhost|127(\.\d{1,3}){3}|\[::1\]|0\.0\.0\.0)(:\d+)?([/?#].*)?$")
_CURL_VALUES = frozenset(
    (
        *("-o", "-H", "-A", "-m", "-c", "-w", "-b", "-e", "-u", "-x", "-T", "-F", "-d", "-X", "-K", "-Y", "-y", "-r"),
        *(
            "--max-time",
            "--retry",
            "--connect-timeout",
            "--output",
            "--header",
            "--request",
            "--write-out",
            "--retry-delay",
        ),
    )
)
_FETCH_VALUES = {
    "curl": _CURL_VALUES,
    "wget": frozenset(("-O", "-o", "-T", "-t", "-P", "--header", "--timeout", "--tries")),
    "ping": frozenset(("-c", "-i", "-W", "-w", "-s", "-t", "-I")),
    "ping6": frozenset(("-c", "-i", "-W", "-w", "-s", "-t", "-I")),
}
_TOLD = re.compile(r"(shell|!|pipe|python|platform shell|source|script)\b|!")


class Judgement(msgspec.Struct, frozen=True):
    """What a command does, all in all, and the files it names."""

    finding: Finding
    paths: tuple[Path, ...] = ()


def judge_command(text: str, site: Site, book: RuleBook | None = None) -> Judgement:
    """Judges a command from its parts, under the user's rules."""
    judge = _Judge(site, _Shared(book or RuleBook()))
    found = judge.text(text)
    finding = worst(found)
    mixed = {one.reach for one in found if one.level == Level.WORK}
    if finding.level == Level.WORK and len(mixed) > 1:
        finding = asks("it joins what may reach further with other work; each could run alone", finding.reach)
    return Judgement(finding, tuple(judge.shared.paths))


class _Shared(msgspec.Struct):
    """What all the judges of one command have in common."""

    book: RuleBook
    paths: dict[Path, None] = msgspec.field(default_factory=dict)


class _Judge:
    """Judges one script; what it makes a shell run is judged by another one, a level deeper."""

    def __init__(self, site: Site, shared: _Shared, depth: int = 0, functions: frozenset[str] = frozenset()) -> None:
        self.site = site
        self.shared = shared
        self._depth = depth
        self._functions = functions

    def text(self, text: str) -> list[Finding]:
        """All findings of a shell text."""
        if self._depth > _MAX_DEPTH:
            return [unclear("it is nested too deeply")]
        try:
            script = read_script(text, {"HOME": str(self.site.home), "PWD": str(self.site.folders[0])})
        except Unreadable as error:
            return [unclear(str(error))]
        return self.script(script)

    def script(self, script: Script) -> list[Finding]:
        if script.bomb:
            return [Finding(Level.FORBID, "it starts copies of itself without end")]
        self._functions |= script.functions
        found: list[Finding] = [READ]
        for command in script.commands:
            found += self._files(command)
            found += [_assigned(name, word) for name, word in command.assignments]
            found += self.command(command)
        return found

    def command(self, command: Command) -> list[Finding]:
        """What one program does with its arguments."""
        words = command.words
        if not words:
            return []
        if not words[0].plain or not words[0].text.isascii() or not words[0].text.strip():
            return [unclear("which program it runs is only known when it runs")]
        name = program_name(words[0])
        if name in _RESERVED:
            return [unclear("it is not a shell command that can be understood")]
        if name in self._functions:
            return [READ]
        least = floor(name, words, self.site)
        found = [least] if least is not None else []
        ruled = self._ruled(name, words)
        if ruled is not None:
            return [*found, ruled]
        wrapper = wrapper_of(words)
        if wrapper:
            return found + self._wrapped(command, wrapper)
        return found + self._program(name, command)

    def _ruled(self, name: str, words: tuple[Word, ...]) -> Finding | None:
        """What the user's rules say of a program. Notes the files it names."""
        book = self.shared.book
        paths = [path for word in words if word.plain for path in self.site.paths(word)]
        self.shared.paths.update(dict.fromkeys(paths))
        ruled = book.for_program(name, words)
        about = (
            book.for_paths(tuple(paths), self.site.home) if ruled is None or ruled[0] not in ("forbid", "ask") else None
        )
        title, rule = about if about is not None and about[0] in ("forbid", "ask") else ruled or (None, None)
        if title is None or rule is None:
            return None
        if title == "forbid":
            return forbidden(f"your rules forbid it: {rule.describe()}")
        if title == "ask":
            return asks(f"your rules say to ask: {rule.describe()}")
        if not all(word.known for word in words):
            return None
        return Finding(Level.WORK, BY_RULE, "network" if title == "network" else rule.reach)

    def _program(self, name: str, command: Command) -> list[Finding]:
        words = command.words
        if name in SHELLS:
            return self._shell(command)
        if name in ("eval", "trap", "source", "."):
            return self._evaluated(name, command)
        if name in ("xargs", "parallel"):
            return self._xargs(command)
        if name in ("find", "gfind"):
            return self._find(command)
        if name in ("cd", "pushd"):
            return [self._moved(words)]
        if name == "git":
            finding, texts = judge_git(words, self.site)
            return [finding, self._named(words, name), *(one for text in texts for one in self._deeper().text(text))]
        if _PYTHON.fullmatch(name.rpartition("/")[2]):
            return self._python(command)
        if name in ("sqlite3", "duckdb", "litecli"):
            return self._database(command)
        if name in ("curl", "wget", "http", "https", "xh", "ping", "ping6"):
            return [_fetch(name, words, self.site), self._named(words, name)]
        if name in _INTERPRETERS:
            return self._interpreter(name, command)
        if name in HANDLERS:
            return [HANDLERS[name](words, self.site), *_options(name, words)]
        return self._known(name, command)

    def _known(self, name: str, command: Command) -> list[Finding]:
        """A program of the catalogue, or one of the project."""
        words = command.words
        if "/" in name:
            return self._by_path(command)
        if name.startswith("mkfs") or name.startswith("newfs"):
            return [KINDS["devices"]]
        kind = _kind(name, words)
        finding = KINDS[kind]
        if kind == "unknown":
            finding = asks(f"it is not known what {name!r} does")
        if finding.level in (Level.ASK, Level.READ, Level.WORK) and _only_tells(words, finding):
            return [READ]
        if kind in ("packages", "publishes") and any(word.text in ("--dry-run", "--dryrun") for word in words):
            finding = WORK
        if name == "history" or (name == "set" and any(word.text == "+o" for word in words)):
            finding = KINDS["history"] if len(words) > 1 else READ
        return [finding, *_options(name, words), *self._told(name, command), self._named(words, name)]

    def _told(self, name: str, command: Command) -> list[Finding]:
        """Ways of some programs to be told to run something else."""
        words = command.words
        texts = [word.text for word in words[1:]]
        if name in ("make", "gmake", "just", "ninja"):
            if any(text in ("-", "/dev/stdin", "-f-", "--file=-") for text in texts):
                return [unclear("it runs what it is given as input")]
            return [one for text in texts if text.startswith("SHELL=") for one in self._deeper().text(text[6:])]
        if name in ("less", "more", "man", "most") and any(text.startswith(("+!", "+|")) for text in texts):
            return [KINDS["runs"]]
        if name in ("gdb", "lldb"):
            attached = any(text in ("-p", "--pid", "-n", "--attach-pid") for text in texts)
            return [KINDS["spies"]] if attached else [KINDS["runs"] for text in texts if _TOLD.match(text)]
        if name in ("hyperfine", "concurrently"):
            return [one for word in operands(words, _VALUE_OPTIONS) for one in self._deeper().text(word.text)]
        if name in ("deno", "bun") and any(re.match(r"https?:|npm:|jsr:", text) for text in texts):
            return [asks("it runs code from the network", "network")]
        if name == "unset" and any(text.startswith("HIST") for text in texts):
            return [KINDS["history"]]
        return []

    def _by_path(self, command: Command) -> list[Finding]:
        """A program named by where it is."""
        words = command.words
        base = words[0].text.rpartition("/")[2]
        paths = self.site.paths(words[0])
        inside = all(self.site.is_inside(path) for path in paths[:1])
        if paths and any(self.site.is_temporary(path) and not self.site.is_inside(path) for path in paths):
            return [asks("it runs a program from a temporary folder")]
        shared = re.search(r"(^|/)(\.?venv|\.?env|node_modules/\.bin|\.tox|\.nox|vendor/bin)(/|$)", words[0].text)
        if not inside or shared:
            known = base in catalogue.programs() or base in SHELLS or base in _INTERPRETERS or base in HANDLERS
            if known or _PYTHON.fullmatch(base) or base in catalogue.subcommands() or base in ("git", "sqlite3"):
                return self._again(command, (Word(base), *words[1:]))
            if not shared:
                return [asks(f"it is not known what {words[0].text} does")]
        return [WORK, self._named(words, base)]

    def _again(self, command: Command, words: tuple[Word, ...]) -> list[Finding]:
        return self._deeper().command(msgspec.structs.replace(command, words=words))

    def _deeper(self) -> "_Judge":
        return _Judge(self.site, self.shared, self._depth + 1, self._functions)

    def _wrapped(self, command: Command, wrapper: str) -> list[Finding]:
        if self._depth > _MAX_DEPTH:
            return [unclear("it is nested too deeply")]
        words = command.words
        kind = catalogue.programs().get(wrapper, "read")
        found = [KINDS[kind]] if KINDS[kind].level >= Level.ASK else [READ]
        if wrapper == "command" and len(words) > 1 and words[1].text in ("-v", "-V"):
            return [READ]
        text = runs_text(command, wrapper)
        if text is not None:
            return found + (self._deeper().text(text.text) if text.known else [unclear("what it runs is not known")])
        inner = inner_words(words, wrapper)
        for word in words[1 : len(words) - len(inner)]:
            name, sign, value = word.text.partition("=")
            if sign and re.fullmatch(r"\w+", name):
                found.append(_assigned(name, Word(value, word.known)))
        if wrapper in FETCHING:
            found += _fetched(wrapper, words, inner)
        if not inner:
            return found
        if wrapper == "coverage run":
            inner = (Word("python3"), *inner)
        if wrapper in ("sudo", "doas") and any(word.text in ("-i", "-s", "--shell", "--login") for word in words):
            found.append(KINDS["privilege"])
        return found + self._again(command, inner)

    def _shell(self, command: Command) -> list[Finding]:
        text = shell_text(command.words)
        if text is not None:
            return (
                self._deeper().text(text.text) if text.known else [unclear("what it runs is only known when it runs")]
            )
        files = operands(command.words, frozenset(("-o", "--rcfile", "--init-file", "+O", "-O")))
        if files and files[0].text not in ("-", "/dev/stdin") and not any(word.text == "-s" for word in command.words):
            return self._script_file(command, files[0])
        return self._input(command, "shell")

    def _script_file(self, command: Command, file: Word) -> list[Finding]:
        """A script that is run or read from a file."""
        if not file.known or file.text.startswith(("<(", "/dev/fd", "/proc/")):
            return [unclear("what it runs is only known when it runs")]
        if re.match(r"https?:", file.text):
            return [asks("it runs code from the network", "network")]
        paths = self.site.paths(file)
        if any(self.site.is_temporary(path) and not self.site.is_inside(path) for path in paths):
            return [asks("it runs a script from a temporary folder")]
        if not all(self.site.is_inside(path) for path in paths[:1]):
            return [asks("it runs a script from outside the workspace")]
        return [WORK, self._named(command.words, "")]

    def _input(self, command: Command, language: str) -> list[Finding]:
        """Code that comes as input."""
        given = command.given
        if given is None and command.upstream:
            given = _printed(command.upstream)
            if given is None:
                return [unclear("it runs what another program prints")]
        if given is None:
            source = next((one.target for one in command.redirects if one.operator == "<"), None)
            return self._script_file(command, source) if source is not None else [WORK]
        if not given.known:
            return [unclear("the code it runs is put together while it runs")]
        return self._deeper().text(given.text) if language == "shell" else [judge_code(language, given.text)]

    def _evaluated(self, name: str, command: Command) -> list[Finding]:
        words = command.words[1:]
        if name in ("source", "."):
            if not words:
                return [READ]
            if not words[0].known or words[0].text.startswith("/dev/"):
                return [unclear("what it runs is only known when it runs")]
            temporary = any(
                self.site.is_temporary(path) and not self.site.is_inside(path) for path in self.site.paths(words[0])
            )
            return [asks("it runs a script from a temporary folder") if temporary else WORK]
        if name == "trap":
            words = words[:1] if len(words) > 1 and not words[0].text.startswith("-") else ()
        if not words:
            return [READ]
        if not all(word.plain for word in words):
            return [unclear("what it runs is only known when it runs")]
        return self._deeper().text(" ".join(word.text for word in words))

    def _xargs(self, command: Command) -> list[Finding]:
        inner = xargs_words(command.words)
        if not inner:
            return [READ] if program_name(command.words[0]) == "xargs" else [unclear("what it runs is not known")]
        added = _listed(command.upstream)
        marks = [word.text for word in inner if "{}" in word.text or word.text == "%"]
        if marks and added is not None:
            inner = tuple(added if word.text in marks else word for word in inner)
        else:
            inner = (*inner, added or Word("$1", known=False))
        if program_name(inner[0]) in SHELLS or (program_name(command.words[0]) == "parallel" and len(inner) == 2):  # noqa: PLR2004
            text = shell_text(inner)
            if text is None:
                return [unclear("it runs what another program prints")]
        return self._again(msgspec.structs.replace(command, upstream=(), given=None), inner)

    def _find(self, command: Command) -> list[Finding]:
        words = command.words
        texts = [word.text for word in words]
        starts = _starts(words)
        found = [asks(reason) for reason in (secret_reason(self.site, word) for word in starts) if reason]
        names = [words[place + 1] for place, text in enumerate(texts[:-1]) if text in ("-name", "-iname", "-path")]
        standing = _joined_place(starts, names)
        if "-delete" in texts:
            found += self._again(command, (Word("rm"), Word("-f"), *standing))
        for place, text in enumerate(texts):
            if text in ("-fprint", "-fprintf", "-fls", "-fprint0") and place + 1 < len(words):
                found.append(written([words[place + 1]], self.site))
            if text in ("-exec", "-execdir", "-ok", "-okdir"):
                ends = [end for end in range(place + 1, len(texts)) if texts[end] in (";", "+")] or [len(texts)]
                inner = [word for word in words[place + 1 : ends[0]]]
                filled: list[Word] = []
                for word in inner:
                    filled += standing if word.text == "{}" else [word]
                found += self._ruin(command, filled, names) + self._again(command, tuple(filled))
        return found or [READ]

    def _ruin(self, command: Command, filled: list[Word], names: list[Word]) -> list[Finding]:
        """Removing all that is found at a root is removing the root."""
        if names or not filled or program_name(filled[0]) not in ("rm", "shred", "chmod", "chown"):
            return []
        least = floor("rm", (Word("rm"), Word("-r"), *_starts(command.words)), self.site)
        return [least] if least is not None else []

    def _moved(self, words: tuple[Word, ...]) -> Finding:
        files = operands(words, frozenset())
        if not files:
            target = Word(str(self.site.home))
        else:
            target = files[0]
        if target.text != "-" and target.known:
            for path in self.site.paths(target):
                self.site = self.site.moved(path)
        return READ

    def _python(self, command: Command) -> list[Finding]:
        words = command.words
        for place, word in enumerate(words[1:], 1):
            text = word.text
            if re.fullmatch(r"-[bBdEhiIOqsSuvVx]*c", text):
                code = words[place + 1] if place + 1 < len(words) else Word("", known=False)
                return [
                    judge_code("python", code.text) if code.known else unclear("the code it runs is not known"),
                    self._named(words[:1] + words[place + 2 :], ""),
                ]
            if re.fullmatch(r"-[bBdEhiIOqsSuvVx]*m", text):
                return self._module(command, words[place + 1 :])
            if text in ("-W", "-X"):
                continue
            if text == "-" or (text.startswith("-") and text not in ("--version", "-V", "-VV", "--help", "-h")):
                continue
            if text.startswith("-"):
                return [READ]
            if words[place - 1].text in ("-W", "-X"):
                continue
            return self._project_script(command, word)
        return self._input(command, "python")

    def _project_script(self, command: Command, file: Word) -> list[Finding]:
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
            if rest[0].text in risky or (rest[0].text == "migrate" and any(word.text == "zero" for word in rest)):
                return [KINDS["destroys"]]
        if file.text.rpartition("/")[2] == "setup.py" and any(
            word.text in ("install", "upload", "register") for word in rest
        ):
            return [KINDS["packages"]]
        outside = [
            path for path in self.site.paths(file) if not self.site.is_inside(path) and not self.site.is_temporary(path)
        ]
        if outside and not re.search(r"/(node_modules|site-packages)/", file.text):
            return [asks("it runs a script from outside the workspace")]
        return [WORK, self._named(command.words, "")]

    def _module(self, command: Command, words: tuple[Word, ...]) -> list[Finding]:
        if not words or not words[0].plain:
            return [unclear("which module it runs is not known")]
        module = words[0].text
        if module in ("http.server", "SimpleHTTPServer"):
            bound = [words[place + 1].text for place, word in enumerate(words[:-1]) if word.text in ("-b", "--bind")]
            return [WORK if bound and _LOCAL.match(bound[0]) and bound[0] != "0.0.0.0" else KINDS["listens"]]  # noqa: S104
        if module in (
            "json.tool",
            "timeit",
            "this",
            "calendar",
            "tokenize",
            "ast",
            "dis",
            "site",
            "sysconfig",
            "platform",
            "inspect",
        ):
            return [READ, self._named(words, "")]
        if module in ("smtpd", "ftplib", "telnetlib", "webbrowser", "asyncio", "pdb", "code", "runpy", "ensurepip"):
            return [KINDS["runs"]]
        table = catalogue.programs()
        if module in table or module in catalogue.subcommands():
            return self._again(command, words)
        return [WORK, self._named(words, "")]

    def _interpreter(self, name: str, command: Command) -> list[Finding]:
        words = command.words
        flags = _INTERPRETERS[name]
        for place, word in enumerate(words[1:], 1):
            text = word.text
            bundle = name in ("perl", "ruby") and re.fullmatch(r"-[a-zA-Z0-9.]*[eE]", text)
            if text in flags or bundle or (text.startswith("--eval=") and flags):
                code = words[place + 1] if place + 1 < len(words) and "=" not in text else Word(text.partition("=")[2])
                if not code.known:
                    return [unclear("the code it runs is not known")]
                changes = any(re.match(r"-[a-zA-Z]*i", one.text) for one in words[1 : place + 1]) and name in (
                    "perl",
                    "ruby",
                )
                rest = list(words[place + 2 :])
                return [
                    judge_code(name, code.text),
                    written(rest, self.site) if changes else self._named(words[:1] + tuple(rest), ""),
                ]
            if text in ("-r", "--require", "--import", "--loader") and place + 1 < len(words):
                continue
        if name in catalogue.subcommands() and len(words) > 1:
            return self._known(name, command)
        if _only_tells(words, WORK):
            return [READ]
        files = operands(words, frozenset(("-r", "--require", "--import", "-I", "--loader", "-C")))
        if not files or files[0].text == "-":
            return self._input(command, name)
        return self._project_script(command, files[0])

    def _database(self, command: Command) -> list[Finding]:
        files = operands(command.words, frozenset(("-cmd", "-init", "-separator", "-nullvalue", "-c", "-s")))
        queries = files[1:] + [
            command.words[place + 1] for place, word in enumerate(command.words[:-1]) if word.text in ("-cmd", "-c")
        ]
        if command.given is not None:
            queries.append(command.given)
        elif command.upstream:
            queries.append(_printed(command.upstream) or Word("", known=False))
        elif any(one.operator == "<" for one in command.redirects):
            return [asks("it runs SQL from a file on a database")]
        if any(not word.known for word in queries):
            return [asks("the SQL it runs is only known when it runs")]
        return [*(judge_sql(word.text) for word in queries), self._named((Word("sqlite3"), *files[:1]), "")]

    def _named(self, words: tuple[Word, ...], name: str) -> Finding:
        """What the files among the arguments of any program mean: secrets, and outputs that go elsewhere."""
        skip = 1 if name in _PATTERN_FIRST else 0
        for place, word in enumerate(words[1:], 1):
            before = words[place - 1].text
            if name in _TEXT_ONLY and word.known:
                continue
            if name == "git" and (
                before in ("-m", "--message", "-F", "--grep", "--author", "--format", "-S", "-G")
                or word.text.startswith(("-m", "--message=", "--grep=", "--format=", "--pretty="))
            ):
                continue
            if skip and not word.text.startswith("-"):
                skip -= 1
                continue
            reason = secret_reason(self.site, word)
            if reason:
                return asks(reason)
            option, sign, value = word.text.partition("=")
            target = Word(value) if sign and option in OUTPUT_OPTIONS else word if before in OUTPUT_OPTIONS else None
            if target is not None and not target.text.startswith("-") and name not in ("grep", "ps", "git", "rg", "ls"):
                outcome = written([target], self.site)
                if outcome.level > Level.WORK:
                    return outcome
        return READ

    def _files(self, command: Command) -> list[Finding]:
        """What its redirections do."""
        found: list[Finding] = []
        for one in command.redirects:
            text = one.target.text
            if text.startswith(("/dev/tcp/", "/dev/udp/")):
                found.append(asks("it opens a connection to another machine", "network"))
            elif one.operator == "<":
                found += [asks(reason) for reason in [secret_reason(self.site, one.target)] if reason]
                found += [KINDS["devices"]] if is_device(text) else []
            elif not is_stream(text):
                least = write_floor(one.target, self.site)
                found += [least] if least is not None else [self._output(command, one.operator, one.target)]
        return found

    def _output(self, command: Command, operator: str, target: Word) -> Finding:
        if operator == ">>":
            return written([target], self.site)
        texts = [word.text for word in command.words]
        nothing = not texts or texts in (
            [":"],
            ["true"],
            ["cat", "/dev/null"],
            ["echo", "-n"],
            ["echo", "-n", ""],
            ["printf", ""],
        )
        return emptied(target, self.site) if nothing else overwritten(target, self.site)


def _assigned(name: str, word: Word) -> Finding:
    if not _RISKY_VARIABLES.fullmatch(name) or (word.known and _HARMLESS_VALUES.fullmatch(word.text)):
        return READ if name not in ("HISTFILE", "HISTSIZE", "HISTFILESIZE") else KINDS["history"]
    if name.startswith("HIST"):
        return KINDS["history"]
    if name == "IFS" and word.known and len(word.text) <= 1 and word.text in ("", ",", ":", "\n", "\t", "|", ";"):
        return READ
    return asks(f"it sets {name}, which changes what other programs do")


def _kind(name: str, words: tuple[Word, ...]) -> str:
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


def _options(name: str, words: tuple[Word, ...]) -> list[Finding]:
    table = catalogue.options().get(name, {})
    return [KINDS[table[sign]] for word in words[1:] for sign in (word.text.partition("=")[0],) if sign in table]


def _only_tells(words: tuple[Word, ...], finding: Finding) -> bool:
    """Whether it only prints its version or help."""
    texts = [word.text for word in words[1:]]
    plain = ("--version", "--help", "-h", "-V", "version", "help")
    short = (*plain, "-v", "-version") if finding.level <= Level.WORK else plain
    return bool(texts) and len(texts) == 1 and texts[0] in short


def _fetched(wrapper: str, words: tuple[Word, ...], inner: tuple[Word, ...]) -> list[Finding]:
    """Programs that are fetched before they run."""
    own = words[: len(words) - len(inner)]
    told = any(word.text in ("-y", "--yes", "-p", "--package", "--from", "--with", "--spec") for word in own)
    versioned = inner and re.search(r".@|^(https?|git|github|file):|/", inner[0].text)
    return [KINDS["packages"]] if (told and wrapper != "uvx") or versioned else []


def _fetch(name: str, words: tuple[Word, ...], site: Site) -> Finding:
    """A request over the network. What only looks at this machine's own services is free."""
    if _only_tells(words, READ):
        return READ
    files = operands(words, _FETCH_VALUES.get(name, frozenset()))
    hosts = [word for word in files if not re.fullmatch(r"GET|HEAD", word.text)]
    if not hosts or not all(word.known and _LOCAL.match(word.text) for word in hosts):
        return KINDS["network"]
    sending = {
        "-d",
        "-F",
        "-T",
        "-K",
        "-x",
        "--data",
        "--form",
        "--upload-file",
        "--config",
        "--proxy",
        "--json",
        "-e",
        "--post-data",
        "--post-file",
        "--unix-socket",
    }
    for place, word in enumerate(words[1:], 1):
        text = word.text.partition("=")[0]
        after = words[place + 1].text if place + 1 < len(words) else ""
        if (
            text in sending
            or text.startswith(("--data", "--post", "-d"))
            or (text in ("-X", "--request") and after not in ("GET", "HEAD"))
        ):
            return asks("it sends something to a service of this machine", "network")
        if text in ("-o", "--output", "-O", "--output-document") and after and not is_stream(after) and after != "-":
            outcome = written([words[place + 1]], site) if text != "-O" or name == "wget" else WORK
            return (
                asks("it saves what a service of this machine answers", "network")
                if outcome.level <= Level.WORK
                else outcome
            )
    return LOOKS_UP


def _printed(upstream: tuple[Command, ...]) -> Word | None:
    """What the last program of a pipeline prints, when that is plain from its words."""
    last = upstream[-1]
    if not last.words or any(program_name(one.words[0]) in _DECODERS for one in upstream if one.words):
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
        )  # noqa: PLR2004
    plain = [text for text in texts if not re.fullmatch(r"-[neE]+", text)]
    return escaped(" ".join(plain)) if any(re.fullmatch(r"-n?e", text) for text in texts) else Word(" ".join(plain))


def _listed(upstream: tuple[Command, ...]) -> Word | None:
    """The kind of file a pipeline lists, when a `find` or `git ls-files` says so."""
    if not upstream or not upstream[0].words:
        return None
    words = upstream[0].words
    texts = [word.text for word in words]
    if program_name(words[0]) == "find":
        names = [words[place + 1] for place, text in enumerate(texts[:-1]) if text in ("-name", "-iname")]
        found = _joined_place(_starts(words), names)
        return found[0] if len(found) == 1 and names else None
    return None


def _starts(words: tuple[Word, ...]) -> list[Word]:
    """The folders in which `find` begins."""
    found: list[Word] = []
    for word in words[1:]:
        if word.text in ("-L", "-P", "-H"):
            continue
        if word.text.startswith(("-", "(", "!", "\\")):
            break
        found.append(word)
    return found or [Word(".")]


def _joined_place(starts: list[Word], names: list[Word]) -> list[Word]:
    """What `find` may come upon, as patterns."""
    if not names:
        return [Word(f"{start.text}/*", start.known, pattern=True, tilde=start.tilde) for start in starts]
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
