"""Loading and changing real files: what can't be read, what wins, and that nothing is lost."""

import os
import socket
import stat
from pathlib import Path

import pytest

from hermes.errors import SettingsError
from hermes.settings import Home, Settings, load, load_secrets
from hermes.settings.edit import set_secret, set_value, unset_value


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home").ensure()


def refused(home: Home) -> SettingsError:
    with pytest.raises(SettingsError) as error:
        load({}, home=home)
    return error.value


def test_no_file_means_defaults(home: Home) -> None:
    assert load({}, home=home) == Settings()
    assert not home.config.exists()


def test_the_file_wins_over_defaults_and_the_environment_over_the_file(
    home: Home,
) -> None:
    home.config.write_text("store:\n  busy_timeout: 5\nbudget:\n  max_steps: 7\n")
    settings = load(
        {"HERMES_STORE_BUSY_TIMEOUT": "6", "HERMES_DISPLAY_COLOR": "never"}, home=home
    )
    assert (
        settings.store.busy_timeout,
        settings.budget.max_steps,
        settings.display.color,
    ) == (6.0, 7, "never")


def test_every_mistyped_variable_is_named_without_its_value(home: Home) -> None:
    with pytest.raises(SettingsError) as error:
        load(
            {"HERMES_STORE_BUSY_TIMEOUT": "hunter2", "HERMES_DISPLAY_COLOR": "hunter2"},
            home=home,
        )
    assert (
        "HERMES_STORE_BUSY_TIMEOUT: expected a number from 0 to 3600"
        in error.value.message
    )
    assert (
        "HERMES_DISPLAY_COLOR: expected one of auto, always, never"
        in error.value.message
    )
    assert "hunter2" not in error.value.message


def test_a_config_that_is_a_folder_is_refused(home: Home) -> None:
    home.config.mkdir()
    assert "config.yaml is a folder" in refused(home).message


def test_a_binary_config_is_refused_and_untouched(home: Home) -> None:
    content = bytes(range(256))
    home.config.write_bytes(content)
    assert "is not UTF-8 text" in refused(home).message
    home.config.write_bytes(b"store:\x00\n")
    assert "binary" in refused(home).message
    with pytest.raises(SettingsError):
        set_value(home.config, "store.busy_timeout", 1.0)
    assert home.config.read_bytes() == b"store:\x00\n"


def test_a_huge_config_is_refused_without_reading_it(home: Home) -> None:
    with home.config.open("wb") as file:
        file.truncate(100 * 1024**2)
    assert "too large: 100.0 MiB" in refused(home).message


def test_a_dangling_link_and_a_loop_are_refused(home: Home, tmp_path: Path) -> None:
    home.config.symlink_to(tmp_path / "nowhere")
    assert "broken symbolic link" in refused(home).message
    with pytest.raises(SettingsError, match="broken symbolic link"):
        set_value(home.config, "store.busy_timeout", 1.0)
    home.config.unlink()
    home.config.symlink_to(home.config)
    assert "can't be read" in refused(home).message


def test_a_pipe_or_socket_is_refused_and_does_not_hang(home: Home) -> None:
    os.mkfifo(home.config)
    assert "not a regular file" in refused(home).message
    home.config.unlink()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(home.config))
        assert "can't be read" in refused(home).message


def test_a_home_below_a_file_is_an_error_not_a_crash(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "can't be read" in refused(Home(tmp_path / "file")).message


def test_a_broken_file_lists_its_problems_and_is_not_edited(home: Home) -> None:
    home.config.write_text("stor:\n  busy_timeout: 1\ndisplay:\n\tcolor: x\n")
    before = home.config.read_bytes()
    assert "config.yaml:4: a tab in the indentation" in refused(home).message
    with pytest.raises(SettingsError, match="a tab in the indentation") as error:
        set_value(home.config, "store.busy_timeout", 2.0)
    assert "Nothing was changed" in error.value.hint
    assert home.config.read_bytes() == before


def test_an_edit_follows_a_link_and_keeps_the_mode(home: Home, tmp_path: Path) -> None:
    target = tmp_path / "dotfiles" / "hermes.yaml"
    target.parent.mkdir()
    target.write_text("# mine\n")
    target.chmod(0o640)
    home.config.symlink_to(target)
    set_value(home.config, "display.color", "never")
    assert home.config.is_symlink()
    assert target.read_text() == "# mine\ndisplay:\n  color: never\n"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_a_new_config_is_for_this_user_only_and_can_be_undone(home: Home) -> None:
    set_value(home.config, "budget.max_steps", 8)
    assert stat.S_IMODE(home.config.stat().st_mode) == 0o600
    assert unset_value(home.config, "budget.max_steps")
    assert not unset_value(home.config, "budget.max_steps")
    assert load({}, home=home) == Settings()


def test_an_entry_of_a_table_goes_with_its_only_field(home: Home) -> None:
    set_value(home.config, "mcp_servers.notes.command", "/bin/notes")
    set_value(home.config, "mcp_servers.other.command", "/bin/other")
    assert unset_value(home.config, "mcp_servers.notes.command")
    assert list(load({}, home=home).mcp_servers) == ["other"]
    assert unset_value(home.config, "mcp_servers.other.command")
    assert load({}, home=home) == Settings()


def test_a_value_that_breaks_the_settings_is_not_written(home: Home) -> None:
    with pytest.raises(SettingsError, match="would break"):
        set_value(home.config, "budget.max_steps", "many")
    assert not home.config.exists()


def test_secrets_are_written_for_this_user_only(home: Home) -> None:
    home.env_file.write_text("# mine\nexport OTHER_TOKEN='x'\n")
    home.env_file.chmod(0o644)
    set_secret(home.env_file, "A_TOKEN", "s p a c e")
    assert stat.S_IMODE(home.env_file.stat().st_mode) == 0o600
    assert (
        home.env_file.read_text()
        == "# mine\nexport OTHER_TOKEN='x'\nA_TOKEN=\"s p a c e\"\n"
    )
    secrets = load_secrets({"OTHER_TOKEN": "real"}, home=home)
    assert (secrets.get("A_TOKEN"), secrets.get("OTHER_TOKEN")) == ("s p a c e", "real")
    set_secret(home.env_file, "A_TOKEN", None)
    assert load_secrets({}, home=home).get("A_TOKEN") is None


def test_a_broken_env_file_names_the_line_not_its_content(home: Home) -> None:
    home.env_file.write_text("A=1\nhunter2\n")
    with pytest.raises(SettingsError) as error:
        load_secrets({}, home=home)
    assert ".env:2: expected NAME=VALUE" in error.value.message
    assert "hunter2" not in error.value.message
