"""The table of slash commands."""

from hermes.surfaces.terminal.styled_text import plain
from hermes.surfaces.terminal.text import width
from hermes.surfaces.tui.slash_lookup import (
    find_skill,
    find_slash,
    help_rows,
    hook_name,
    narrowed,
    page,
    reserved,
    slashes,
)

WANTED = """help new resume sessions title undo diff branch retry compress context model tools mcp approvals status usage
steer queue stop history search export config doctor quit
learn skills memory"""


def shown_help(columns: int) -> str:
    return "\n".join(plain(row) for row in help_rows(columns))


def test_every_command_is_there_once() -> None:
    names = [one.slash for one in slashes()]
    assert len(names) == len(set(names))
    assert set(WANTED.split()) <= set(names)


def test_a_command_is_found_by_name_or_beginning() -> None:
    typed = ("help", "exit", "qui", "sess", "sessions", "s", "")
    found = [slash.slash if (slash := find_slash(name)) else None for name in typed]
    assert found == ["help", "quit", "quit", "sessions", "sessions", None, None]


def test_hooks_know_a_command_by_its_name_and_cost_by_its_own() -> None:
    typed = ("cost", "usage", "q", "sess")
    found = [hook_name(name, slash) for name in typed if (slash := find_slash(name))]
    assert found == ["cost", "usage", "quit", "sessions"]


def test_config_with_words_is_the_command_of_the_shell() -> None:
    config = find_slash("config")
    assert config is not None
    typed = ("", " get a.b", " set a.b x y", " nope", " path")
    found = [narrowed(config, words) for words in typed]
    assert [(one.name, words) for one, words in found] == [
        ("config show", ""),
        ("config get", "a.b"),
        ("config set", "a.b x y"),
        ("config show", " nope"),
        ("config path", ""),
    ]
    setter, words = found[2]
    assert setter.words(words, {}) == {"key": "a.b", "value": "x y"}


def test_help_and_the_page_of_the_docs_tell_all_commands() -> None:
    for text in (shown_help(80), page()):
        assert all(
            f"/{one.slash}" in text and one.summary.split()[0] in text
            for one in slashes()
        )


def test_help_fits_a_narrow_screen() -> None:
    assert max(map(width, shown_help(39).split("\n"))) <= 39
    assert max(map(width, shown_help(79).split("\n"))) <= 79


def test_help_lists_the_aliases_of_the_person() -> None:
    rows = [plain(row) for row in help_rows(79, aliases={"gs": "!git status"})]
    assert rows[-2:] == ["Your aliases", f"{'  /gs':<22}!git status"]
    assert "Your aliases" not in shown_help(79)


def test_a_skill_is_found_by_name_or_beginning_and_shadows_no_command() -> None:
    skills = ["brew-tea", "brew-coffee", "mod", "session-notes", "skill:status"]
    typed = (
        "brew-tea",
        "brew-t",
        "brew",
        "mod",
        "sess",
        "session-n",
        "skill:brew-tea",
        "status",
        "skill:status",
        "q",
        "",
    )
    found = [find_skill(name, skills) for name in typed]
    assert found == [
        "brew-tea", "brew-tea", "", "mod", "", "session-notes", "skill:brew-tea", "", "skill:status", "", "",
    ]  # fmt: skip
    assert {"status", "q", "exit"} <= reserved()
