"""Requests over the network. What only looks at this machine's own services is free."""

import re

from hermes.tools.policy.effects import KINDS, LOOKS_UP, READ, WORK, Finding, Level, asks
from hermes.tools.policy.fileworks import operands, written
from hermes.tools.policy.known import only_tells
from hermes.tools.policy.places import Site, is_stream
from hermes.tools.policy.words import Word

_LOCAL = r"(https?://)?(localhost|127(\.\d{1,3}){3}|\[::1\]|0\.0\.0\.0)(:\d+)?([/?#].*)?$"
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


def is_local(text: str) -> bool:
    """Whether an address is one of this machine itself."""
    return bool(re.match(_LOCAL, text))


def judge_fetch(name: str, words: tuple[Word, ...], site: Site) -> Finding:
    """A request over the network. What only looks at this machine's own services is free."""
    if only_tells(words, READ):
        return READ
    files = operands(words, _FETCH_VALUES.get(name, frozenset()))
    hosts = [word for word in files if not re.fullmatch(r"GET|HEAD", word.text)]
    if not hosts or not all(word.known and is_local(word.text) for word in hosts):
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
