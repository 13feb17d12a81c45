"""Codex's requests in the reader's language. The summaries are those that `codex/approvals.py` writes."""

import re
from collections.abc import Iterator

import pytest

from hermes.surfaces.terminal.approval import question_lines
from hermes.surfaces.terminal.style import Style
from hermes.surfaces.terminal.summary_words import shown_summary
from hermes.text.translation import in_language


class Shouted:
    """A language whose words are the English ones in capitals."""

    language = "xx"
    overlay_problem = ""

    def sentence(self, context: str, text: str) -> str:
        assert context
        parts = re.split(r"(\{\w+[^}]*\})", text)
        return "".join(one if one[:1] == "{" else one.upper() for one in parts)

    def plural(self, context: str, one: str, many: str, count: int) -> str:
        return self.sentence(context, one if count == 1 else many)

    def reason(self, text: str) -> str:
        return text

    def approval_reason(self, text: str) -> str:
        return text

    def approval_scope(self, text: str) -> str:
        return text

    def question(self, text: str) -> str:
        return text


@pytest.fixture(autouse=True)
def _shouted() -> Iterator[None]:
    with in_language(Shouted()):
        yield


@pytest.mark.parametrize(
    ("name", "summary", "shown"),
    [
        ("exec_command", "make all\nin /w", "make all\nIN /w"),
        (
            "exec_command",
            'cat x\nin /tmp\nin /w\nwith these permissions: {"network":true}',
            'cat x\nin /tmp\nIN /w\nWITH THESE PERMISSIONS: {"network":true}',
        ),
        (
            "exec_command",
            "type into the running command ssh a\nin /w",
            "TYPE INTO THE RUNNING COMMAND ssh a\nIN /w",
        ),
        (
            "exec_command",
            "an action that codex describes without a command\nin /w",
            "AN ACTION THAT CODEX DESCRIBES WITHOUT A COMMAND\nIN /w",
        ),
        (
            "network_access",
            "reach https://a.example\nfor curl a\nin /w",
            "REACH https://a.example\nFOR curl a\nIN /w",
        ),
        (
            "network_access",
            "reach a host that codex does not name\nin /w",
            "REACH A HOST THAT CODEX DOES NOT NAME\nIN /w",
        ),
        (
            "request_permissions",
            'give codex more permissions: {"network":true}\nin /w',
            'GIVE CODEX MORE PERMISSIONS: {"network":true}\nIN /w',
        ),
        (
            "request_permissions",
            "give codex more permissions: it does not say which\nin /w",
            "GIVE CODEX MORE PERMISSIONS; IT DOES NOT SAY WHICH\nIN /w",
        ),
        (
            "apply_patch",
            "a patch whose content codex did not announce\nin /w\nand from then on anywhere below /srv",
            "A PATCH WHOSE CONTENT CODEX DID NOT ANNOUNCE\nIN /w\nAND FROM THEN ON ANYWHERE BELOW /srv",
        ),
        (
            "apply_patch",
            (
                "1 add, 2 update: a.py, b.py, c.py\nin /w\n"
                "+in a.py\n[... 1,200 more characters of the patch not shown here, of c.py ...]"
            ),
            (
                "1 NEW FILE, 2 CHANGED FILES: a.py, b.py, c.py\nIN /w\n"
                "+in a.py\n[... 1,200 MORE CHARACTERS OF THE PATCH ARE NOT SHOWN HERE, OF c.py ...]"
            ),
        ),
        ("terminal", "Run in /w:\necho\nin /w", "RUN IN /w:\necho\nin /w"),
        ("write_file", "a\nin /w", "a\nin /w"),
    ],
)
def test_codex_s_own_words_are_translated_and_nothing_in_a_command_is(
    name: str, summary: str, shown: str
) -> None:
    assert shown_summary(name, summary) == shown


def test_the_terminal_translates_all_of_codex_s_request() -> None:
    asked = {
        "type": "agent.approval.requested",
        "call_id": "c",
        "name": "network_access",
        "arguments": "{}",
        "summary": "reach https://a.example\nfor curl a\nin /w",
    }
    said = "\n".join(question_lines(asked, Style(enabled=False), 100))
    for line in ("REACH https://a.example", "FOR curl a", "IN /w"):
        assert line in said
