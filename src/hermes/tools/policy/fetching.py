"""Requests over the network. What only looks at this machine's own services is free."""

import re

from hermes.tools.policy.effects import EFFECTS, LOOKS_UP, READ, Effect, Level, asks
from hermes.tools.policy.file_programs import operands, written
from hermes.tools.policy.table_judge import only_tells
from hermes.tools.policy.paths import PathContext, is_stream
from hermes.tools.policy.shell_words import Word

_LOCAL = (
    r"(https?://)?(localhost|127(\.\d{1,3}){3}|\[::1\]|0\.0\.0\.0)(:\d+)?([/?#].*)?$"
)
_CURL_VALUES = frozenset(
    (
        *(
            "-o",
            "-H",
            "-A",
            "-m",
            "-c",
            "-w",
            "-b",
            "-e",
            "-u",
            "-x",
            "-T",
            "-F",
            "-d",
            "-X",
            "-K",
            "-Y",
            "-y",
            "-r",
        ),
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
    "wget": frozenset(
        ("-O", "-o", "-T", "-t", "-P", "--header", "--timeout", "--tries")
    ),
    "ping": frozenset(("-c", "-i", "-W", "-w", "-s", "-t", "-I")),
    "ping6": frozenset(("-c", "-i", "-W", "-w", "-s", "-t", "-I")),
}

_OUTPUTS = {"curl": ("-o", "--output"), "wget": ("-O", "--output-document", "-o", "-P")}
_FILE_VALUES = ("-H", "--header", "-w", "--write-out")
_LOOKING = {
    "curl": r"-[sSfiIvkLgN46]*[sSfiIvkLgN46mwHoXA]|--(silent|show-error|fail|fail-with-body|include|head|verbose"
    r"|insecure|location|compressed|http1\.1|http2|no-progress-meter|globoff|max-time|connect-timeout|retry|retry-delay"
    r"|retry-all-errors|retry-connrefused|retry-max-time|write-out|header|output|request|user-agent)"
    r"|--(max-time|connect-timeout|retry|retry-delay|retry-max-time)=[\d.]+|-o/dev/null|-m\d+|-XGET|-XHEAD",
    "wget": r"-[qSnv]+|-q?O-?|-[TtW]|--(spider|quiet|no-verbose|server-response)|-q?O(/dev/null|-)"
    r"|--(timeout|tries|max-redirect|waitretry)(=\d+)?|--output-document=-|--retry-connrefused",
    "http": r"-[hbv]+|--(headers|body|verbose|print=\w+|timeout=\d+|check-status|ignore-stdin|pretty=\w+)",
    "ping": r"-[ciWwstnq46]",
}
_LOOKING |= {
    "https": _LOOKING["http"],
    "xh": _LOOKING["http"],
    "ping6": _LOOKING["ping"],
}
"""Options with which a request only looks. Any other may send, save, or go through somebody else."""


def is_local(text: str) -> bool:
    """Whether an address is one of this machine itself."""
    return bool(re.match(_LOCAL, text))


def judge_fetch(name: str, words: tuple[Word, ...], site: PathContext) -> Effect:
    """A request over the network. What only looks at this machine's own services is free."""
    if only_tells(words, READ):
        return READ
    files = operands(words, _FETCH_VALUES.get(name, frozenset()))
    hosts = [word for word in files if not re.fullmatch(r"GET|HEAD", word.text)]
    if not hosts or not all(word.known and is_local(word.text) for word in hosts):
        return EFFECTS["network"]
    found = LOOKS_UP
    for place, word in enumerate(words[1:], 1):
        before = words[place - 1].text
        if (
            before in _OUTPUTS.get(name, ())
            and word.text != "-"
            and not is_stream(word.text)
        ):
            outcome = written([word], site)
            saves = asks("it saves what a service of this machine answers", "network")
            return saves if outcome.level <= Level.WORK else outcome
        option = word.text.startswith("-") and word.text != "-"
        if option and (
            not word.known or not re.fullmatch(_LOOKING.get(name, ""), word.text)
        ):
            found = asks(
                "it sends something to a service of this machine, or asks in an unusual way",
                "network",
            )
        if before in ("-X", "--request") and word.text not in ("GET", "HEAD"):
            found = asks("it sends something to a service of this machine", "network")
        if before in _FILE_VALUES and word.text.startswith("@"):
            found = asks("it sends a file to a service of this machine", "network")
    return found
