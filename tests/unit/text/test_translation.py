"""Sentences: English without a lookup, other languages by module and number, requests in a language of their own."""

import asyncio
import contextvars

import pytest

from hermes.text.translation import (
    Translator,
    current_language,
    in_language,
    translator,
    use_language,
)

t = translator("hermes.surfaces.example")


class _German:
    language = "de"
    overlay_problem = ""

    def reason(self, text: str) -> str:
        return text

    def approval_reason(self, text: str) -> str:
        return text

    def approval_scope(self, text: str) -> str:
        return text

    def question(self, text: str) -> str:
        return text

    def sentence(self, context: str, text: str) -> str:
        assert context == "surfaces.example"
        return {"Hello, {name}.": "Hallo {name}.", "Bad {name}": "Schlecht {nmae}"}.get(
            text, text
        )

    def plural(self, context: str, one: str, many: str, count: int) -> str:
        assert (one, many) == ("{count} file", "{count} files")
        return "{count} Datei" if count == 1 else "{count} Dateien"


def test_english_is_the_sentence_in_the_code() -> None:
    assert t("Hello, {name}.", name="Ada") == "Hello, Ada."
    assert t("A brace } stays without values.") == "A brace } stays without values."
    assert t("{count} file", "{count} files", count=1) == "1 file"
    assert t("{count} file", "{count} files", count=0) == "0 files"


def test_a_request_has_a_language_of_its_own() -> None:
    with in_language(_German()):
        assert current_language() == "de"
        assert t("Hello, {name}.", name="Ada") == "Hallo Ada."
        assert t("{count} file", "{count} files", count=1) == "1 Datei"
        assert t("{count} file", "{count} files", count=2) == "2 Dateien"
        with in_language(None):
            assert t("Hello, {name}.", name="Ada") == "Hello, Ada."
    assert current_language() == "en"


async def test_requests_side_by_side_do_not_share_a_language() -> None:
    arrived = asyncio.Event()

    async def german() -> str:
        with in_language(_German()):
            await arrived.wait()
            return await asyncio.to_thread(t, "Hello, {name}.", name="Ada")

    async def english() -> str:
        arrived.set()
        return t("Hello, {name}.", name="Ada")

    assert await asyncio.gather(german(), english()) == ["Hallo Ada.", "Hello, Ada."]


def test_a_wrong_placeholder_shows_the_english_sentence() -> None:
    with in_language(_German()):
        assert t("Bad {name}", name="day") == "Bad day"
    with pytest.raises(KeyError):
        Translator("x")("Hello, {name}.", other="Ada")


def test_the_language_of_the_process_is_chosen_at_the_first_sentence() -> None:
    chosen: list[str] = []

    def choose() -> _German:
        chosen.append("de")
        return _German()

    use_language(choose)
    try:
        assert not chosen
        assert (
            contextvars.Context().run(t, "Hello, {name}.", name="Ada") == "Hallo Ada."
        )
        assert t("Hello, {name}.", name="Bob") == "Hallo Bob."
        assert chosen == ["de"]
    finally:
        use_language(lambda: None)
