"""Why the policy asks, in the reader's language. What is logged, hashed and answered stays English."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hermes.core.answers import approval_hash, misfit
from hermes.schema.event_base import payload_of
from hermes.schema.events import ApprovalAnswered, ApprovalRequested
from hermes.schema.shown_reasons import shown_document, shown_event, shown_row
from hermes.surfaces.dashboard.page_language import page_sentences
from hermes.surfaces.gateway.questions import question_text
from hermes.surfaces.terminal.approval import question_lines
from hermes.surfaces.terminal.question_menu import QuestionMenu
from hermes.surfaces.terminal.style import Style
from hermes.text.catalogue import Catalogue
from hermes.text.translation import (
    LANGUAGES,
    current_language,
    in_language,
    shown_approval_reason,
    shown_approval_scope,
)
from hermes.tools.policy.approval import ApprovalPolicy
from hermes.tools.policy.effects import EFFECTS
from hermes.tools.policy.policy_state import WHILE_BROKEN, Circumstances

_NETWORK = "es nutzt das Netzwerk"
_PLAIN = Style(enabled=False)


def _asked(reason: str, **fields: Any) -> ApprovalRequested:
    return ApprovalRequested(
        call_id="c", name="terminal", arguments="{}", summary="x", reason=reason, **fields
    )  # fmt: skip


def _event(asked: ApprovalRequested) -> Mapping[str, Any]:
    return {**payload_of(asked), "type": asked.topic}


@pytest.mark.parametrize("code", [code for code in LANGUAGES if code != "en"])
def test_every_language_says_what_a_program_does(code: str) -> None:
    reasons = {one.reason for one in EFFECTS.values() if one.reason}
    with in_language(Catalogue(code)):
        english = {one for one in reasons if shown_approval_reason(one) == one}
    assert english == set()


@pytest.mark.parametrize(
    ("command", "german"),
    [
        ("curl https://example.com", "es nutzt das Netzwerk"),
        ("frobnicate --now", "Hermes weiß nicht, was 'frobnicate' tut"),
        ("git frobnicate", "Hermes weiß nicht, was `git frobnicate` tut"),
        (
            "LD_PRELOAD=./x.so ls",
            "es setzt LD_PRELOAD, und das ändert, was andere Programme tun",
        ),
        ("eval `echo \\`ls\\``", "es hat Backticks innerhalb von Backticks"),
        ("cat /home/me/.ssh/id_rsa", "/home/me/.ssh/id_rsa könnte Geheimnisse enthalten"),
        ("rm -rf /", "es würde alles in / vernichten"),
    ],
    ids=["network", "unknown", "git", "variable", "shell", "secret", "forbidden"],
)  # fmt: skip
def test_the_policy_decides_in_english_and_a_german_reads_german(
    tmp_path: Path, command: str, german: str
) -> None:
    around = Circumstances(tmp_path / "home", Path("/home/me"), sandboxed=True)
    with in_language(Catalogue("de")):
        decision = ApprovalPolicy("ask", around).check(command, tmp_path)
        assert shown_approval_reason(decision.reason) == german
    with in_language(None):
        assert ApprovalPolicy("ask", around).check(command, tmp_path) == decision
        assert shown_approval_reason(decision.reason) == decision.reason


def test_a_terminal_shows_the_reason_in_german_and_says_the_network_once() -> None:
    event = _event(_asked("it uses the network", reach="network"))
    with in_language(Catalogue("de")):
        lines = question_lines(event, _PLAIN, 80)
    assert lines[-1] == f"  ({_NETWORK})"
    assert not any("Es darf das Netzwerk nutzen" in line for line in lines)


def test_a_chat_shows_the_reason_in_german() -> None:
    with in_language(Catalogue("de")):
        text = question_text("s", _asked("it uses the network"), buttons=True).text
    assert _NETWORK in text.splitlines()


def test_what_is_hashed_and_answered_is_the_english_reason() -> None:
    asked = _asked("it uses the network")
    english = approval_hash(asked)
    with in_language(Catalogue("de")):
        assert current_language() == "de"
        assert shown_row(asked) == asked
        assert shown_event(_event(asked))["reason"] == "it uses the network"
        assert shown_document([_event(asked)]) == [_event(asked)]
        shown = approval_hash(shown_event(_event(asked)))
        answer = ApprovalAnswered(call_id="c", answer="once", by="cli", shown=shown)
        assert shown == english
        assert misfit(asked, answer) == ""
        translated = approval_hash(_asked(_NETWORK))
    other = ApprovalAnswered(call_id="c", answer="once", by="cli", shown=translated)
    assert misfit(asked, other) != ""


def test_both_reasons_of_a_request_by_codex_are_translated() -> None:
    with in_language(Catalogue("de")):
        both = shown_approval_reason(
            "codex wants to run it outside its sandbox (it uses the network)"
        )
        its_own = shown_approval_reason("May I (please)? (it uses the network)")
    assert both == f"codex will es außerhalb seiner Sandbox ausführen ({_NETWORK})"
    assert its_own == f"May I (please)? ({_NETWORK})"


@pytest.mark.parametrize(
    "reason", ["because I said so", "it uses the network of friends", "it", ""]
)
def test_a_reason_that_is_not_hermes_own_stays_as_it_is(reason: str) -> None:
    with in_language(Catalogue("de")):
        assert shown_approval_reason(reason) == reason


def test_what_is_wrong_with_the_rules_follows_the_reason() -> None:
    reason = f"it uses the network. policy.yaml, line 3: x. {WHILE_BROKEN}"
    with in_language(Catalogue("de")):
        shown = shown_approval_reason(reason)
    assert shown.startswith(f"{_NETWORK}. policy.yaml, line 3: x. Bis du das behebst")


@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize(
    "entry",
    [
        'msgid "it uses the network"',
        'msgctxt "tools.policy.effects"\nmsgid "it uses the network"',
        'msgctxt "app.turn_checks"\nmsgid "it uses the network"',
        'msgid "it uses {{what}}"',
    ],
    ids=["everywhere", "the policy", "another module", "a wider sentence"],
)
def test_ones_own_texts_never_replace_a_reason(
    tmp_path: Path, language: str, entry: str
) -> None:
    path = tmp_path / f"{language}.po"
    path.write_text(f'{entry}\nmsgstr "it is harmless"\n'.replace("{{", "{").replace("}}", "}"))  # fmt: skip
    found = Catalogue(language, path)
    assert found.overlay
    with in_language(found):
        shown = shown_approval_reason("it uses the network")
        lines = question_lines(_event(_asked("it uses the network")), _PLAIN, 80)
    assert shown == (_NETWORK if language == "de" else "it uses the network")
    assert not any("harmless" in line for line in lines)
    page = page_sentences(found)
    assert page is not None
    reasons = page.script.decode().partition('"reasons": ')[2]
    assert "harmless" not in reasons
    assert (_NETWORK in reasons) == (language == "de")


@pytest.mark.parametrize(
    ("scope", "german"),
    [
        ("changes to files in /w", "Änderungen an Dateien in /w"),
        ("every call of mcp.x.y", "jeden Aufruf von mcp.x.y"),
        ("`npm ci ...` in /w (x)", "`npm ci ...` in /w (x)"),
        (
            "exactly `curl x` in /w (with the network; it uses the network)",
            f"genau `curl x` in /w (mit Netzwerk; {_NETWORK})",
        ),
        (
            "exactly `echo \"` in it uses the network\"` in /w",
            "genau `echo \"` in it uses the network\"` in /w",
        ),
        ("terminal {\"command\":\"ls\"}", "terminal {\"command\":\"ls\"}"),
    ],
    ids=["files", "tool", "unknown reason", "reasons", "command's words", "a call"],
)  # fmt: skip
def test_what_an_answer_covers_is_in_german_and_its_command_stays(
    scope: str, german: str
) -> None:
    with in_language(Catalogue("de")):
        assert shown_approval_scope(scope) == german
    assert shown_approval_scope(scope) == scope


@pytest.mark.parametrize("code", [code for code in LANGUAGES if code != "en"])
def test_every_language_says_what_the_policy_offers_to_remember(
    tmp_path: Path, code: str
) -> None:
    around = Circumstances(tmp_path / "home", Path("/home/me"), sandboxed=True)
    decision = ApprovalPolicy("ask", around).check(
        "npm install left-pad", tmp_path, "network"
    )
    with in_language(Catalogue(code)):
        shown = shown_approval_scope(decision.scope)
    assert "`npm install ...`" in shown
    assert "with the network" not in shown
    assert "it installs" not in shown


def test_a_chat_and_a_terminal_show_the_summary_in_german() -> None:
    command = _asked("", scope="changes to files in /w")
    command = msgspec.structs.replace(command, summary="Run in /w:\nRun in /x:\n")
    write = msgspec.structs.replace(
        command,
        name="write_file",
        summary="write_file /w/a\nnew file, 1 line, 3 bytes:\nnew file, 1 line, 3 bytes:",
    )
    with in_language(Catalogue("de")):
        chat = question_text("s", command, buttons=True).text
        lines = question_lines(_event(write), _PLAIN, 80)
        menu = QuestionMenu(_event(command), lambda: 0.0)
        menu.step = "rule"
        rule = menu.title[1]
    assert "Ausführen in /w:\nRun in /x:\n" in chat
    assert "fragen bei: Änderungen an Dateien in /w." in chat
    assert lines == [
        "Hermes möchte /w/a schreiben:",
        "  neue Datei; Zeilen: 1, Bytes: 3",
        "  new file, 1 line, 3 bytes:",
    ]
    assert rule == "Hermes macht das, ohne zu fragen: Änderungen an Dateien in /w"
