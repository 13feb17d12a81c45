"""The language that a system, browser or chat app asks for."""

import pytest

from hermes.settings.language import accepted_tags, first_known, known_language


@pytest.mark.parametrize(
    ("tag", "language"),
    [
        ("de_AT.UTF-8", "de"), ("pt-BR", "pt"), ("zh_CN.UTF-8", "zh"), ("zh-TW", "zh-hant"), ("zh-Hant-HK", "zh-hant"),
        ("zh-Hans-SG", "zh"), ("C.UTF-8", "en"), ("POSIX", "en"), ("en_GB", "en"), ("sr@latin", ""), ("", ""), ("xx", ""),
    ],
)  # fmt: skip
def test_a_tag_names_one_of_our_languages_or_none(tag: str, language: str) -> None:
    assert known_language(tag) == language


def test_a_browser_lists_its_languages_with_weights() -> None:
    header = "sv, de;q=0.5, fr-CH;q=0.9, *;q=0.1, ja;q=0, x;q=bad"
    assert accepted_tags(header) == ["sv", "fr-CH", "de", "*"]
    assert first_known(accepted_tags(header)) == "fr"
    assert accepted_tags("") == []
