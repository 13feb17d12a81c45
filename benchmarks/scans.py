"""Measures every scanner of text from a model, a tool, a file or the web with text that was made to be slow.

The bar is 50 ms of CPU time for 100 KB. The peer is one pass of `re` over the same text in the same run, to tell a busy
machine from slow code.
"""

import re
import sys
import time
from collections.abc import Callable

from hermes.app.answer_claims import claimed_files
from hermes.app.typed_part import typed_part
from hermes.core.calls import fenced
from hermes.core.think_tags import split_unopened
from hermes.learning.scan import scan, scan_files
from hermes.learning.scan.code import code_patterns
from hermes.learning.scan.phrases import phrases
from hermes.learning.scan.prefixes import in_pieces
from hermes.mcp.safe_text import plain
from hermes.media.spoken_text import sentences, spoken
from hermes.providers.embedded.native_model import written_call
from hermes.settings.redaction import mask, mask_personal
from hermes.store import tokenizer
from hermes.surfaces.gateway import message_split
from hermes.surfaces.gateway.adapters import text_formats
from hermes.surfaces.terminal.diff_view import diffs_in
from hermes.surfaces.terminal.markdown.blocks import Blocks
from hermes.surfaces.terminal.markdown.inline import parse
from hermes.text.hidden_text import without_hidden
from hermes.tools.escapes import clean, visible
from hermes.tools.files.gitignore import glob_regex
from hermes.tools.files.patch_parse import patch_paths
from hermes.tools.policy.inline_code import judge_code, judge_sql
from hermes.tools.web import html

MAX_HOSTILE_MS = 50.0
_BYTES = 100_000
_MORE_RUNS = 4
_SCANNERS: dict[str, Callable[[str], object]] = {
    "secrets": mask,
    "personal data": mask_personal,
    "injected instructions": scan,
    "skill files": lambda text: scan_files({"SKILL.md": text.encode()}),
    "text read aloud": lambda text: list(sentences(spoken(text))),
    "files named in an answer": claimed_files,
    "hidden characters": without_hidden,
    "terminal output": clean,
    "pages and mails": visible,
    "text from outside": lambda text: fenced(text, "a page"),
    "text of an MCP server": plain,
    "HTML": lambda text: list(html.tokens(text)),
    "Telegram": text_formats.telegram_html,
    "Slack": text_formats.slack_mrkdwn,
    "Signal": text_formats.styled_ranges,
    "Discord": text_formats.discord_markdown,
    "messages of a chat": lambda text: message_split.split(text, 4_000),
    "blocks in the terminal": lambda text: [*Blocks().feed(text)],
    "marks in the terminal": lambda text: [
        parse(text[at : at + 8_000]) for at in range(0, len(text), 8_000)
    ],
    "diffs": diffs_in,
    "names in a patch": patch_paths,
    "words of the search": tokenizer.split,
    "attachments": typed_part,
    "thinking": split_unopened,
    "written calls": lambda text: written_call(text, ("read_file",)),
    "code in a command": lambda text: judge_code("node", text),
    "SQL": judge_sql,
    "globs": glob_regex,
}
_UNITS = (
    "sk-", "password=", "token: ", "://@", "eyJa", "-----BEGIN PRIVATE KEY-----\n", "Cookie: a=", '\\"', "--token ",
    "<password>", "QUFB", "\u200b", "mysql -p", "curl a ", "curl a | b ", "rm -a ", "send token ", "password send ",
    "ignore all the ", "![a](http://", "<img src=", "[", "[^", "\n# ", "é", "а", "%41", "\\x41", "ff ", "a.", "a b ",
    "забуд", "αγνο", "명령", "忽略", "'a'+", "+1 ", "(1)", "<@", "1", ".", "-", " -", "A:", "a@", "`", "~", "\x1b[", "\r",
    "x\b", "![", "[a](", "***a", "*a ", "_a ", "**a", "~~a", "``", "```\n", "~~~a\n", "# a  ", "| a ", "> ", "- ", "1. ",
    "<", "< ", "<a ", '<a href="', "<!--", "<script>", "&#", "{", "${", "$(", "*a", "e\u0301", "\u0301", "a漢", "ا", "👨\u200d",
    "@a ", "\t", " ", "\n", "\n\n", "@@ -1 +1 @@\n", "--- a\n+++ b\n", "*** Begin Patch\n", "http://", "a@b",
    "\u202e", "((", "//",
    "ignore all the instructionx ", "send the tokenx to http ", "rm -rx / ", "system promp ",
    "</think>", "\n\n\n", "I changed a.py. ", "a" * 199 + " ", "Ab1" * 5 + "\n",
)  # fmt: skip


def main(options: list[str]) -> int:
    """Prints the slowest texts of each scanner, or of the named ones. The exit code is 1 if a bar is missed."""
    units = list(dict.fromkeys([*_UNITS, *_begun(), *_almost()]))
    texts = {unit: unit * (_BYTES // len(unit.encode())) for unit in units}
    scanners = {one: _SCANNERS[one] for one in options or _SCANNERS}
    for scanner in scanners.values():
        scanner("Compiled before it is measured: a.py, +1 (2), token=x.")
    peer = sorted(_milliseconds(re.compile(r"\w+").findall, t) for t in texts.values())
    floor = peer[len(peer) // 2]
    print(f"peer (one pass of re), median: {floor:.1f} ms for 100 KB")
    worst = 0.0
    for name, scanner in scanners.items():
        costs = [(_milliseconds(scanner, text), unit) for unit, text in texts.items()]
        costs.sort(reverse=True)
        over = sum(cost > MAX_HOSTILE_MS for cost, _ in costs)
        print(f"{name}: {over} of {len(costs)} texts over {MAX_HOSTILE_MS:.0f} ms")
        for cost, unit in costs[:3]:
            print(f"  {cost:5.0f} ms ({cost / floor:.0f}x)  {unit[:60]!r}")
        worst = max(worst, costs[0][0])
    return int(worst > MAX_HOSTILE_MS)


def _begun() -> list[str]:
    """Texts that begin like the scanners' patterns, but don't match."""
    starts = [one.pattern.prefixes or () for one in phrases()]
    starts += [one[2].prefixes or () for one in code_patterns()]
    return [f"{prefixes[0]} " for prefixes in starts[::6] if prefixes]


def _almost() -> list[str]:
    """Both ends of a gap in a pattern, with something between them that does not match."""
    patterns = [one.pattern for one in phrases()] + [one[2] for one in code_patterns()]
    split = [in_pieces(one.pattern.pattern) for one in patterns]
    parts = [parts for one in split if one for parts in one.gapped]
    return [
        f"{parts[0].prefixes[0]} " * 12 + f".\n{parts[-1].prefixes[0]}"
        for parts in parts[::8]
    ]


def _milliseconds(function: Callable[[str], object], text: str) -> float:
    """The minimum of several runs, because CPU time also rises on a busy machine."""
    cost = _once(function, text)
    for _ in range(_MORE_RUNS):
        if cost <= MAX_HOSTILE_MS / 2:
            break
        cost = min(cost, _once(function, text))
    return cost


def _once(function: Callable[[str], object], text: str) -> float:
    start = time.process_time()
    function(text)
    return (time.process_time() - start) * 1000


if __name__ == "__main__":
    sys.exit(main([]))
