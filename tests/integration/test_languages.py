"""The catalogues that come with Hermes, a person's own texts over them, and the language that a setting chooses.

That every language has every sentence is checked by `scripts/translations.py` in `make check`.
"""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from hermes.settings.home import Home
from hermes.settings.language import language_for, sentences_for
from hermes.surfaces.dashboard.page_language import page_sentences
from hermes.text.catalogue import APPROVAL_CONTEXTS, Catalogue
from hermes.text.po_file import parse_po
from hermes.text.translation import LANGUAGES, Translator, in_language

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
LOCALES = SCRIPTS.parent / "src" / "hermes" / "locales"
MENU = Translator("surfaces.terminal.question_menu")
STATUS = Translator("surfaces.tui.status_line")


@pytest.mark.parametrize("code", [code for code in LANGUAGES if code != "en"])
def test_every_language_has_plural_forms_that_differ_where_they_must(code: str) -> None:
    found = Catalogue(code)
    assert found.language == code
    forms = {found.form(count) for count in range(200)}
    expected = {
        "zh": 1,
        "zh-hant": 1,
        "ja": 1,
        "ko": 1,
        "uk": 3,
        "ru": 3,
        "ga": 5,
        "ar": 6,
    }
    assert len(forms) == expected.get(code, 2)


def test_a_missing_sentence_is_english_and_counted() -> None:
    german = Catalogue("de")
    assert german.sentence("nowhere", "Not there.") == "Not there."
    assert german.plural("nowhere", "{count} x", "{count} xs", 2) == "{count} xs"
    german.sentence("nowhere", "Not there.")
    assert german.missing == {("nowhere", "Not there."): 2, ("nowhere", "{count} x"): 1}


def _own(home: Home, language: str, text: str) -> None:
    home.locales.mkdir(parents=True, exist_ok=True)
    (home.locales / f"{language}.po").write_text(text, "utf-8")


def test_ones_own_texts_change_any_sentence_english_too(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert sentences_for("en", home) is None
    _own(home, "en", 'msgid "Allow?"\nmsgstr "May I?"\n')
    with in_language(sentences_for("en", home)):
        assert STATUS("Allow?") == "May I?"
        assert STATUS("Yes") == "Yes"
    _own(
        home,
        "de",
        'msgctxt "other"\nmsgid "Allow?"\nmsgstr "x"\n\nmsgid "Yes"\nmsgstr "Jo"\n',
    )
    with in_language(sentences_for("de", home)):
        assert STATUS("Yes") == "Jo"
        assert STATUS("Allow?") != "x"


@pytest.mark.parametrize("context", sorted(APPROVAL_CONTEXTS))
def test_ones_own_texts_never_replace_those_of_approvals(
    tmp_path: Path, context: str
) -> None:
    swapped = 'msgid "Deny"\nmsgstr "Yes"\n'
    _own(Home(tmp_path), "en", f'{swapped}\nmsgctxt "{context}"\n{swapped}')
    with in_language(sentences_for("en", Home(tmp_path))):
        assert Translator(context)("Deny") == "Deny"


def test_ones_own_texts_never_replace_those_of_the_page_s_approvals(
    tmp_path: Path,
) -> None:
    asking = ("Let Hermes work without asking?", "Don't ask me", "Cancel", "Yes")
    asking = (*asking, "Enable exactly this")
    own = ("Deny", "Allow once", "Make the rule", *asking, "New chat")
    for entry in ("", 'msgctxt "page"\n'):
        texts = (f'{entry}msgid "{text}"\nmsgstr "mine"\n' for text in own)
        _own(Home(tmp_path), "de", "\n".join(texts))
        found = page_sentences(Catalogue("de", Home(tmp_path).locales / "de.po"))
        assert found is not None
        script = found.script.decode()
        assert script.count('"mine"') == 1
        assert '"New chat": "mine"' in script
        assert '"Deny": "Ablehnen"' in script


def test_the_modules_of_approvals_are_those_with_sentences() -> None:
    """A module that is renamed must not lose its protection."""
    german = parse_po((LOCALES / "de.po").read_text("utf-8"))
    with_sentences = {key.context for key in german}
    assert with_sentences >= APPROVAL_CONTEXTS


def test_own_texts_that_cannot_be_read_are_reported_and_left_out(
    tmp_path: Path,
) -> None:
    _own(Home(tmp_path), "de", "msgid broken\n")
    found = Catalogue("de", Home(tmp_path).locales / "de.po")
    assert "line 1" in found.overlay_problem
    assert found.overlay == {}


@pytest.mark.parametrize(
    ("choice", "tags", "environ", "language"),
    [
        ("auto", (), {"LANG": "de_DE.UTF-8"}, "de"),
        ("auto", (), {"LC_ALL": "C", "LANG": "de_DE.UTF-8"}, "en"),
        ("auto", (), {"LC_MESSAGES": "ja_JP", "LANG": "de_DE"}, "ja"),
        ("auto", ("sv", "pt-BR"), {"LANG": "de_DE"}, "pt"),
        ("auto", ("sv",), {"LANG": "de_DE"}, "de"),
        ("auto", (), {}, "en"),
        ("fr", ("de",), {"LANG": "ja_JP"}, "fr"),
    ],
)
def test_the_language_is_the_readers_unless_a_setting_names_one(
    monkeypatch: pytest.MonkeyPatch,
    choice: str,
    tags: tuple[str, ...],
    environ: Mapping[str, str],
    language: str,
) -> None:
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert language_for(choice, tags) == language


@pytest.fixture(name="translations")
def _translations(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The script that `make check` runs."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import translations

    yield translations
    for name in ("translations", "sentences", "loose_sentences"):
        sys.modules.pop(name, None)


def test_words_between_tags_are_found_and_comparisons_are_not(
    translations: Any,
) -> None:
    loose = translations.loose_in_javascript
    assert loose("html`<p class=${name}>Nothing yet</p>`") == ["Nothing yet"]
    assert loose("html`<button\n  onClick=${run}\n>Stop</button>`") == ["Stop"]
    assert loose('html`<p class="plain and quiet">${t("Stop")}</p>`') == []
    code = "if (first > 0 && last >= end) rows.find((row) => row.seq < last);"
    assert loose(code) == []


_PLANTED = {
    "app/profiles.py": 'def added() -> str:\n    return "the file was not found here"\n',
    "store/sessions.py": 'raise HermesError("It broke.")\n',
    "providers/routing.py": 'hint = f"Name another one than {name}, or none."\n',
}


def test_a_sentence_outside_the_catalogue_fails_the_check_in_any_package(
    translations: Any, tmp_path: Path
) -> None:
    source = SCRIPTS.parent / "src" / "hermes"
    for module, planted in _PLANTED.items():
        copy = tmp_path / "src" / "hermes" / module
        copy.parent.mkdir(parents=True)
        copy.write_text((source / module).read_text("utf-8") + planted, "utf-8")
    found = translations.loose_sentences(tmp_path)
    problems = list(translations.loose_problems(found, {}))
    places = {one.partition(": outside the catalogue: ")[0] for one in problems}
    assert places == {f"src/hermes/{module}" for module in _PLANTED}


def test_a_module_may_have_no_more_loose_sentences_than_are_listed(
    translations: Any,
) -> None:
    found = {"a.py": ["1: some words here", "2: and more words"]}
    assert list(translations.loose_problems(found, {"a.py": 2})) == []
    assert len(list(translations.loose_problems(found, {"a.py": 1}))) == 2
    (fewer,) = translations.loose_problems(found, {"a.py": 3})
    assert "lower the number" in fewer
