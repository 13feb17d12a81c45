"""What the model says it did, against what ran."""

import pytest

from hermes.providers.embedded.claims import (
    honest_ending,
    is_false_claim,
    sentences,
    talk_claims_a_change,
)
from hermes.providers.embedded.conversation import CallStep, RequestExchange
from hermes.providers.embedded.line_protocol import Action, Verb
from hermes.schema.messages import ToolCall


def exchange(*steps: CallStep) -> RequestExchange:
    return RequestExchange(request="do it", steps=steps)


def step(
    verb: Verb, path: str = "a.py", *, ok: bool = True, result: str = ""
) -> CallStep:
    return CallStep(
        call=ToolCall(id="c", name="x", arguments="{}"),
        action=Action(verb=verb, path=path, text="t", old="o"),
        ok=ok,
        result=result,
    )


@pytest.mark.parametrize(
    "claim",
    [
        "I added the line.",
        "I have fixed the bug.",
        "I've updated a.py.",
        "The bug has been fixed.",
        "The port is now 9090.",
        "Ich habe die Datei geändert.",
    ],
)
def test_a_claim_needs_a_change_that_worked(claim: str) -> None:
    assert is_false_claim(claim, exchange())
    assert is_false_claim(claim, exchange(step("read")))
    assert is_false_claim(claim, exchange(step("replace", ok=False)))
    assert not is_false_claim(claim, exchange(step("replace")))


@pytest.mark.parametrize(
    "sentence",
    [
        "The file holds three names.",
        "I can't change it.",
        "Nothing was changed.",
        "You could add a line.",
        "The total is 5.",
    ],
)
def test_what_is_no_claim(sentence: str) -> None:
    assert not is_false_claim(sentence, exchange())


def test_a_claim_about_another_file_is_false() -> None:
    assert is_false_claim("I fixed b.py.", exchange(step("replace", "a.py")))
    assert not is_false_claim("I fixed a.py.", exchange(step("replace", "a.py")))


def test_tests_pass_only_if_they_ran_after_the_change() -> None:
    passed = step("run", result="2 passed")
    assert is_false_claim("All tests pass.", exchange(step("replace")))
    assert is_false_claim("The tests pass now.", exchange(passed, step("replace")))
    assert not is_false_claim("The tests pass now.", exchange(step("replace"), passed))
    failed = step("run", result="1 failed, 1 passed")
    assert is_false_claim("The tests pass now.", exchange(failed))
    listed = step("run", result="a.py  b.py")
    assert is_false_claim("All tests pass.", exchange(step("replace"), listed))


def test_the_ending_names_what_failed_or_what_was_done() -> None:
    failed = exchange(step("replace", ok=False, result="a.py is read-only.\nmore"))
    assert honest_ending(failed).startswith("Nothing was changed: a.py is read-only.")
    assert "a.py" in honest_ending(exchange(step("append")))
    assert "hermes setup" in honest_ending(exchange())


def test_talk_may_write_but_not_claim_files() -> None:
    assert talk_claims_a_change("Sure. I have deleted the file.")
    assert not talk_claims_a_change("I made the text shorter: hello.")
    assert not talk_claims_a_change("I can't see the file a.txt.")
    assert not talk_claims_a_change("Settings are stored in settings.ini.")
    assert not talk_claims_a_change("a.lock holds the versions that were installed.")
    assert talk_claims_a_change("Your file has been updated.")


def test_sentences_join_to_the_text() -> None:
    text = "One. Two!\n\nThree? four"
    assert list(sentences(text)) == ["One. ", "Two!\n\n", "Three? ", "four"]
