"""Compares what an answer says it did to files with what the turn changed. It only looks at plain statements."""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from hermes.primitives.lazy_pattern import lazy_pattern
from hermes.schema.messages import AssistantMessage, Message, ToolFinished

_VERBS = (
    "added|appended|changed|corrected|created|deleted|edited|extended|fixed|modified|refactored|removed|renamed|replaced|"
    "rewrote|rewritten|saved|updated|wrote|written"
)
_CLAIM = lazy_pattern(
    rf"\b(?:I|we)(?:'ve| have)?(?: also| now| just| successfully)* (?:{_VERBS})\b"
    rf"|\b(?:has|have) been (?:{_VERBS})\b|^\W*(?:{_VERBS})\b",
    re.IGNORECASE,
)
_DENIAL = lazy_pattern(
    r"\b(?:not|n't|no|never|nothing|could|would|should|can|will|if|once|earlier|before|previously|already)\b|n't\b|\?",
    re.IGNORECASE,
)
_FILE = lazy_pattern(
    r"`([\w./-]+\.\w{1,8})`|(?<![\w/.:-])([\w-][\w./-]*\.[a-z]{1,5})\b(?!\()"
)
_ADDRESS = lazy_pattern(r"(?<!\w)\w++://\S+|\bwww\.\S+|\bv?\d+(?:\.\d+)+\S*")
_SENTENCE_END = lazy_pattern(r"(?<=[.!?])\s+|\n+")
_FENCED = lazy_pattern(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_READING_TOOLS = frozenset(
    ("read_file", "list_files", "search_files", "vision_analyze")
)
_FILE_TOOLS = frozenset(("write_file", "edit_file", "apply_patch"))
_MAX_NAMES = 10


def claimed_files(answer: str) -> list[str]:
    """The files that an answer says were changed."""
    if not _may_name_file(answer):
        return []
    found: dict[str, None] = {}
    for sentence in _SENTENCE_END.split(_FENCED.sub(" ", answer)):
        if _CLAIM.search(sentence) and not _DENIAL.search(sentence):
            found.update(dict.fromkeys(_named(sentence)))
    return list(found)[:_MAX_NAMES]


def _may_name_file(text: str) -> bool:
    """Whether a dot is followed by a letter. Most answers have none, and the patterns take milliseconds to compile."""
    return any(after[:1].isalnum() for after in text.split(".")[1:])


def _named(sentence: str) -> Iterator[str]:
    for quoted, bare in _FILE.findall(_ADDRESS.sub(" ", sentence)):
        yield (quoted or bare).removeprefix("./")


def unchanged_claims(
    answer: str, changed: Iterable[Path], messages: Sequence[Message], cwd: Path
) -> tuple[str, ...]:
    """The files that an answer says were changed, but that nothing changed in this conversation."""
    claimed = claimed_files(answer)
    if not claimed:
        return ()
    landed = [path.as_posix() for path in changed]
    worked = _worked_on(messages)
    return tuple(
        name
        for name in claimed
        if not any(path == name or path.endswith(f"/{name}") for path in landed)
        and PurePosixPath(name).name not in worked
        and not PurePosixPath(name).is_absolute()
        and _is_of_project(name, cwd)
    )


def _is_of_project(name: str, cwd: Path) -> bool:
    """Whether a name is surely that of a file: it exists, or has a folder or a usual ending."""
    return (
        (cwd / name).exists()
        or "/" in name
        or bool(_ENDINGS.fullmatch(name.rpartition(".")[2]))
    )


_ENDINGS = lazy_pattern(
    r"(c|cc|cfg|conf|cpp|cs|css|csv|go|h|hpp|html|ini|java|js|json|jsx|kt|lua|md|php|pl|py|pyi|rb|rs|rst|scala|sh|sql|swift"
    r"|toml|ts|tsx|txt|vue|xml|ya?ml)"
)


def _worked_on(messages: Sequence[Message]) -> str:
    """The arguments of every call that may have changed something. A file tool that failed or was denied did not."""
    failed = {
        message.call_id
        for message in messages
        if isinstance(message, ToolFinished)
        and not message.ok
        and message.name in _FILE_TOOLS
    }
    return "\n".join(
        call.arguments
        for message in messages
        if isinstance(message, AssistantMessage)
        for call in message.tool_calls
        if call.name not in _READING_TOOLS and call.id not in failed
    )
