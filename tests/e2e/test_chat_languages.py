"""The chat in other languages, at 40 columns: no row is wider than the screen, also with wide and right-to-left letters."""

import json
from pathlib import Path

import pytest

from hermes.surfaces.terminal.text import width
from hermes.testing.installed import InstalledHermes
from hermes.testing.model_server import ModelServer
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall

COLUMNS = 40
ENTER, ESCAPE = "\r", "\x1b"


@pytest.mark.parametrize(
    ("locale", "words"),
    [
        ("de_DE.UTF-8", ("beendet", "Erlauben?", "1  Ja", "Tasten", "Unterbrochen.")),
        ("ja_JP.UTF-8", ("終了", "許可しますか？", "1  はい", "キー", "中断しました。")),
        ("ar_EG.UTF-8", ("يخرج", "السماح؟", "1  نعم", "المفاتيح", "قوطع.")),
    ],
)  # fmt: skip
async def test_a_narrow_terminal_in_the_language_of_the_system(
    tmp_path: Path, locale: str, words: tuple[str, ...]
) -> None:
    ready, question, yes, help_word, stopped = words
    call = ServedCall("write_file", json.dumps({"path": "a.txt", "content": "x"}))
    async with (
        ModelServer(ScriptedResponse(calls=(call,)), "ok") as server,
        InstalledHermes(tmp_path, server.url).terminal(
            size=(COLUMNS, 40), LANG=locale
        ) as terminal,
    ):
        await terminal.sees(ready)
        terminal.type("/help" + ENTER)
        await terminal.until(lambda shown: "/steer" in shown)
        terminal.type(f"/{help_word}{ENTER}")
        await terminal.until(lambda shown: f"\n{help_word}" in shown)
        terminal.type("q")
        await terminal.until(lambda shown: help_word not in shown)
        terminal.type("go" + ENTER)
        shown = await terminal.until(lambda shown: question in shown and yes in shown)
        assert all(width(line) <= COLUMNS for line in shown.split("\n"))
        terminal.type(ESCAPE)
        await terminal.sees(stopped)


async def test_a_setting_names_the_language_whatever_the_system_says(
    tmp_path: Path,
) -> None:
    hermes = InstalledHermes(tmp_path, "http://127.0.0.1:9")
    found = await hermes.run("--help", LANG="de_DE.UTF-8")
    assert "Aufruf:" in found.out
    found = await hermes.run("--help", LANG="de_DE.UTF-8", HERMES_DISPLAY_LANGUAGE="fr")
    assert "Usage :" in found.out
    assert "Sitzungen" not in found.out


_GERMAN = """
msgctxt "commands.session_views"
msgid "No sessions yet. Each conversation with Hermes becomes one."
msgstr "Noch gar keine Sitzungen."

msgctxt "settings.setting_keys"
msgid "There is no setting called {name}."
msgstr "Die Einstellung {name} gibt es leider nicht."

msgctxt "commands.tools"
msgid "uses the network"
msgstr "nutzt das weite Netz"
"""


async def test_results_and_errors_are_in_the_language_of_the_reader_but_json_is_english(
    tmp_path: Path,
) -> None:
    hermes = InstalledHermes(tmp_path)
    (hermes.home / "locales").mkdir(parents=True)
    (hermes.home / "locales" / "de.po").write_text(_GERMAN, "utf-8")
    listed = await hermes.run("sessions", "list", LANG="de_DE.UTF-8")
    assert "Noch gar keine Sitzungen." in listed.out
    unknown = await hermes.run("config", "get", "no.such", LANG="de_DE.UTF-8")
    assert "Die Einstellung no.such gibt es leider nicht." in unknown.err
    english = await hermes.run("config", "get", "no.such")
    assert "There is no setting called no.such." in english.err
    tools = await hermes.run("tools", LANG="de_DE.UTF-8")
    assert "nutzt das weite Netz" in tools.out
    document = await hermes.run("tools", "--json", LANG="de_DE.UTF-8")
    assert "uses the network" in document.out
    assert "Netz" not in document.out
