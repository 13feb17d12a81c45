"""Reasons of the log in the reader's language, on every surface, and in English for programs."""

import msgspec
import pytest

from hermes.errors import for_reader
from hermes.providers.model_failures import CalledService, from_status
from hermes.providers.provider_table import Quirks
from hermes.schema.events import TurnEnded
from hermes.schema.shown_reasons import shown_document, shown_event, shown_row
from hermes.text.catalogue import Catalogue
from hermes.text.translation import LANGUAGES, in_language, shown_reason

_FULL = "3 of 3 cards run already (boards.max_running)"


@pytest.mark.parametrize("code", [code for code in LANGUAGES if code != "en"])
def test_every_language_shows_why_a_card_waits(code: str) -> None:
    with in_language(Catalogue(code)):
        shown = shown_reason(_FULL)
    assert shown != _FULL
    assert "boards.max_running" in shown


@pytest.mark.parametrize("code", [code for code in LANGUAGES if code != "en"])
def test_a_reason_about_one_thing_is_shown_also_where_its_words_need_the_number(
    code: str,
) -> None:
    catalogue = Catalogue(code)
    for text in (
        "A picture was rejected by the provider, so a smaller copy was sent. (HTTP 400)",
        "its run ended badly; the last one: failed",
    ):
        shown = catalogue.reason(text)
        assert shown != text
        assert "{" not in shown


def test_programs_get_the_reason_as_the_log_has_it() -> None:
    row = {"type": "agent.turn.ended", "reason": "failed", "detail": _FULL}
    with in_language(None):
        assert shown_event(row) is row
        assert shown_reason(_FULL) == _FULL


def test_an_event_is_shown_with_its_reason_and_nothing_else_translated() -> None:
    ended = TurnEnded(
        reason="budget", detail="stopped after 4 steps (budget.max_steps)."
    )
    fields = msgspec.to_builtins(ended) | {"type": ended.topic}
    with in_language(Catalogue("de")):
        shown, row = shown_event(fields), shown_row(ended)
    assert isinstance(row, TurnEnded)
    assert shown["detail"] == row.detail == "gestoppt nach 4 Schritten (budget.max_steps)."  # fmt: skip
    assert shown["reason"] == row.reason == "budget"


def test_a_document_keeps_what_a_person_wrote() -> None:
    document = {"cards": [{"title": "is done", "why": "starts in a moment"}]}
    with in_language(Catalogue("de")):
        shown = shown_document(document)
    assert shown == {"cards": [{"title": "is done", "why": "startet gleich"}]}


def test_the_failure_of_a_model_is_translated_live_and_from_the_log() -> None:
    caller = CalledService(
        provider="openai",
        model="m",
        base_url="https://api.openai.com/v1",
        quirks=Quirks(family="openai"),
        key_variable="OPENAI_API_KEY",
    )
    error = from_status(caller, 401, b'{"error": {"message": "bad key"}}', {}, 0.0)
    with in_language(Catalogue("de")):
        live, logged = for_reader(error), shown_reason(f"{error.message}. {error.hint}")
    assert live == logged
    assert "lehnte den API-Schlüssel ab (401): bad key" in live
    assert "Prüfe den Schlüssel: hermes config set OPENAI_API_KEY" in live
