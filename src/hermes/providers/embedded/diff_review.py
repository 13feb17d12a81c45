"""Reviews a diff. Code reports the problems that it can detect, because a small model finds everything fine."""

import difflib
import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

_MAX_FINDINGS = 12
_MIN_LIKENESS = 0.8  # between an old line and the one that replaced it
_IS_DIFF = re.compile(r"^@@ -\d+(?:,\d+)? \+(\d+)(?:,\d+)? @@", re.MULTILINE)
_ASKS_FOR_REVIEW = re.compile(
    r"\b(?:review|check|look (?:at|over)|comments?|feedback|critique|ok|okay|correct|right|wrong|bugs?|problems?|issues?"
    r"|risks?|safe|merge|approve|good|think)\b",
    re.IGNORECASE,
)
_COMMENT = re.compile(r"\s*(?:#|//|\*|--\s)")
_TOKEN = re.compile(r"\w+|[<>=!+\-*/%&|]+|\S")
_COMPARISONS = frozenset(("<", "<=", ">", ">=", "==", "!=", "===", "!=="))
_LOGIC = frozenset(("and", "or", "&&", "||", "True", "False", "true", "false"))
_ARITHMETIC = frozenset(("+", "-", "*", "/", "//", "%", "**"))
_SWAPS: tuple[tuple[frozenset[str], frozenset[str], str], ...] = (
    (_COMPARISONS, _COMPARISONS, "check the value at the boundary"),
    (_LOGIC, _LOGIC, "the condition now means something else"),
    (_ARITHMETIC, _ARITHMETIC, "the result is another one"),
    (
        frozenset(("+=", "-=")),
        frozenset("="),
        "the value is overwritten, not added up",
    ),
)

REQUEST = (
    "Say in one or two sentences what this diff changes. Then name one concrete thing that could go wrong with it, or "
    "say that you see none. Do not praise it."
)
CLOSING = "\n\nA small model wrote the part above. It misses bugs: read the diff, run the tests."

_ADDED: tuple[tuple[str, str], ...] = (
    (
        r"""\b(?:SELECT|INSERT|UPDATE|DELETE)\b.*(?:["']\s*\+|\.format\(|["']\s*%\s*[\w(])|\bf["'].*\b(?:SELECT|INSERT|UPDATE|DELETE)\b.*\{""",
        "SQL is put together from text, so a value can inject SQL; pass values as parameters",
    ),
    (
        r"shell\s*=\s*True|\bos\.system\(|child_process\.exec\(",
        "a shell runs this text, so a value can inject a command",
    ),
    (r"(?<![\w.])(?:eval|exec)\(", "text is run as code"),
    (
        r"\bpickle\.loads?\(|\byaml\.load\((?!.*Safe)",
        "data is loaded in a way that can run code",
    ),
    (
        r"verify\s*=\s*False|rejectUnauthorized:\s*false|InsecureSkipVerify:\s*true",
        "certificates are no longer checked",
    ),
    (
        r"""(?i)(?:passw(?:or)?d|secret|token|api_?key)\w*["']?\s*[:=]\s*["'](?=[^"']*\d)[^"'{}$<>\s]{6,}["']""",
        "this looks like a secret in the code",
    ),
    (
        r"^\s*except\s*(?:(?:Base)?Exception)?\s*:|catch\s*(?:\([^)]*\))?\s*\{\s*\}",
        "every error is caught here, also those nobody expects",
    ),
    (
        r"\bdef \w+\(.*=\s*(?:\[\]|\{\}|set\(\))",
        "all calls share this default value, and a change to it stays",
    ),
    (
        r"\bbreakpoint\(\)|\bpdb\.set_trace|\bdebugger;|\bconsole\.log\(",
        "this looks like a leftover from debugging",
    ),
    (r"^(?:<{7}|>{7})(?:\s|$)", "a merge conflict is not resolved"),
    (r"""\bis (?:not )?(?:["']|\d)""", "`is` compares identity here, not the value"),
)
_REMOVED: tuple[tuple[str, str], ...] = (
    (r"\.close\(\)|\bwith open\(", "what closed the file or connection is gone"),
    (
        r"^\s*(?:try\b|finally\b|except\b)|\bcatch\s*\(",
        "the handling of errors is gone; what happens after an error now?",
    ),
    (
        (
            r"\bmax\(.*,\s*1\)|\bor 1\b|\bif (?:not )?\w+(?:\.\w+)*\s*:|\bif \(!?\w+(?:\.\w+)*\)"
            r"|\bif .*(?:is None|is not None|== 0|!= 0|<= 0|> 0|=== null|!== null)|\bif len\("
        ),
        "a guard is gone; can empty, missing or zero values get here now?",
    ),
    (
        r"\breturn (?:False|None|-1|false|null|err)\b|^\s*(?:raise|throw)\b",
        "a failure was reported here; who reports it now?",
    ),
    (r"^\s*assert\b|\bexpect\(", "a test or check is gone"),
    (r"\bawait\b", "`await` is gone, so nothing waits for the result"),
    (r"\b(?:lock|mutex|synchronized)\b", "a lock is gone"),
    (
        r"(?i)\w*(?:valid|permission|authori[sz]|authenticat|login_required|escape|sanitiz)\w*",
        "a check of rights or of input is gone",
    ),
)
_ADDED_CHECKS = tuple((re.compile(pattern), words) for pattern, words in _ADDED)
_REMOVED_CHECKS = tuple((re.compile(pattern), words) for pattern, words in _REMOVED)
_OPENED = re.compile(r"=\s*open\(")


class ChangedBlock(msgspec.Struct, frozen=True):
    """Consecutive changed lines of a diff: the removed ones, and the added ones."""

    path: str
    line: int
    removed: tuple[str, ...]
    added: tuple[str, ...]


def asks_for_review(typed: str, pasted: str) -> bool:
    """Returns whether the user asks what is wrong with a diff."""
    return bool(_IS_DIFF.search(pasted) and _ASKS_FOR_REVIEW.search(typed))


def opening(diff: str) -> str:
    """Returns the first part of the review: the problems that code found."""
    found = list(dict.fromkeys(findings(diff)))
    if not found:
        return "Hermes' own checks for common mistakes found nothing.\n\n"
    listed = "\n".join(f"- {one}" for one in found[:_MAX_FINDINGS])
    more = len(found) - _MAX_FINDINGS
    rest = f"\n- and {more} more" if more > 0 else ""
    return f"Look at this first:\n{listed}{rest}\n\n"


def findings(diff: str) -> Iterator[str]:
    """Yields the likely mistakes, with file and line, in the order of the diff."""
    blocks = list(changed_blocks(diff))
    added = {text.strip() for block in blocks for text in block.added}
    for block in blocks:
        for words in _problems(block, moved=added):
            yield f"{block.path}, line {block.line}: {words}"


class _HunkLine(NamedTuple):
    path: str
    line: int
    """The line's number in the new file."""
    sign: str
    text: str


def changed_blocks(diff: str) -> Iterator[ChangedBlock]:
    """The changes of a unified diff."""
    block = list[_HunkLine]()
    for line in _hunk_lines(diff):
        starts_again = line.sign == "-" and any(one.sign == "+" for one in block)
        if block and (line.sign == " " or starts_again):
            yield _changed_block(block)
            block = list[_HunkLine]()
        if line.sign != " ":
            block.append(line)
    if block:
        yield _changed_block(block)


def _changed_block(lines: list[_HunkLine]) -> ChangedBlock:
    return ChangedBlock(
        lines[0].path,
        lines[0].line,
        removed=tuple(one.text for one in lines if one.sign == "-"),
        added=tuple(one.text for one in lines if one.sign == "+"),
    )


def _hunk_lines(diff: str) -> Iterator[_HunkLine]:
    """Yields the lines inside the hunks. Everything between two hunks counts as unchanged."""
    path, line = "the diff", 0
    for text in diff.splitlines():
        is_change = line > 0 and text[:1] in {"+", "-"}
        head = None if is_change else _IS_DIFF.match(text)
        sign = text[0] if is_change else " "
        yield _HunkLine(path, line, sign, text[1:])
        if head:
            line = int(head[1])
        elif text.startswith("diff ") or (text.startswith("--- ") and not is_change):
            line = 0
        elif text.startswith("+++ ") and not line:
            path = text[4:].split("\t")[0].removeprefix("b/")
        elif line and not text.startswith("-"):
            line += 1


def _problems(block: ChangedBlock, moved: set[str]) -> Iterator[str]:
    """Yields the problems of a block. Lines that were only `moved` do not count as removed."""
    code = [text for text in block.added if not _COMMENT.match(text)]
    before = [
        text
        for text in block.removed
        if not _COMMENT.match(text) and text.strip() not in moved
    ]
    yield from _problems_in_added(code)
    yield from _problems_in_removed(before, code)
    for old in before:
        if near := difflib.get_close_matches(old, code, n=1, cutoff=_MIN_LIKENESS):
            yield from _small_change(_TOKEN.findall(old), _TOKEN.findall(near[0]))


def _problems_in_added(code: list[str]) -> Iterator[str]:
    for pattern, words in _ADDED_CHECKS:
        if any(pattern.search(text) for text in code):
            yield words
    if any(_OPENED.search(text) for text in code) and ".close()" not in "".join(code):
        yield "a file is opened and nothing closes it; use `with`"


def _problems_in_removed(before: list[str], code: list[str]) -> Iterator[str]:
    for pattern, words in _REMOVED_CHECKS:
        lost = [text for text in before if pattern.search(text)]
        if lost and not any(pattern.search(text) for text in code):
            yield f"{words} (`{lost[0].strip()}`)"


def _small_change(old: list[str], new: list[str]) -> Iterator[str]:
    """Yields changes of one word or sign that reverse the meaning."""
    if len(old) != len(new):
        missing = (
            [word for word in old if word not in new] if len(old) > len(new) else []
        )
        if missing in (["not"], ["!"]):
            yield f"`{missing[0]}` is gone: the condition is reversed"
        return
    changed = [(a, b) for a, b in zip(old, new, strict=True) if a != b]
    if len(changed) != 1:
        return
    was, now = changed[0]
    for before, after, words in _SWAPS:
        if was in before and now in after:
            yield f"`{was}` became `{now}`: {words}"
            return
    if was.isdigit() and now.isdigit():
        yield f"{was} became {now}: check that this is meant"
