"""The log of Hermes itself."""

import logging
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.surfaces.cli import logs
from hermes.surfaces.terminal.style import settings_of_this_run


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    logger = logging.getLogger("hermes")
    before = (logger.handlers[:], logger.level, logger.propagate)
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "home"))
    settings_of_this_run.cache_clear()
    yield tmp_path / "home"
    logger.handlers[:], logger.propagate = before[0], before[2]
    logger.setLevel(before[1])
    settings_of_this_run.cache_clear()


def test_the_file_is_made_by_the_first_record_and_holds_no_secret(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs.start()
    logs.start()
    assert not home.exists()
    logging.getLogger("hermes.app").warning("sent %s to \x1b[31m", "sk-" + "abcdefghijklmnop1234")
    file = home / "logs" / "hermes.log"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    text = file.read_text()
    assert text.count("\n") == 1
    assert "WARNING hermes.app: sent ******** to \\x1b[31m" in text
    assert capsys.readouterr() == ("", "")


def test_the_level_is_that_of_the_settings(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERMES_LOGGING_LEVEL", "error")
    logs.start()
    logging.getLogger("hermes.app").warning("quiet")
    assert not home.exists()
    logging.getLogger("hermes.app").error("loud")
    assert "loud" in (home / "logs" / "hermes.log").read_text()


def test_a_large_file_makes_room(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MAX_BYTES", 10)
    logs.start()
    for word in ("first", "second"):
        logging.getLogger("hermes.app").warning(word)
    assert "first" in (home / "logs" / "hermes.log.1").read_text()
    assert "second" in (home / "logs" / "hermes.log").read_text()


def test_a_log_that_can_not_be_written_stops_nothing(home: Path) -> None:
    home.write_text("in the way")
    logs.start()
    logging.getLogger("hermes.app").warning("lost")


def test_the_settings_are_read_once(home: Path) -> None:
    assert settings_of_this_run().display.color == "auto"
    home.mkdir()
    (home / "config.yaml").write_text("display: {color: never}\n")
    assert settings_of_this_run().display.color == "auto"
