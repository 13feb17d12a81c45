"""The log of Hermes itself."""

import contextlib
import logging
import os
import resource
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.surfaces.cli import logs
from hermes.surfaces.terminal.style import settings_of_this_run


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    loggers = [logging.getLogger(name) for name in ("hermes", *logs.LIBRARIES)]
    before = [
        (logger.handlers[:], logger.level, logger.propagate) for logger in loggers
    ]
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "home"))
    settings_of_this_run.cache_clear()
    yield tmp_path / "home"
    for handler in loggers[0].handlers:
        if isinstance(handler, logs.LogFile):
            handler.close()
    for logger, (handlers, level, propagate) in zip(loggers, before, strict=True):
        logger.handlers[:], logger.propagate = handlers, propagate
        logger.setLevel(level)
    settings_of_this_run.cache_clear()


def test_the_file_is_made_by_the_first_record_and_holds_no_secret(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs.start()
    logs.start()
    assert not home.exists()
    logging.getLogger("hermes.app").warning(
        "sent %s to \x1b[31m", "sk-" + "abcdefghijklmnop1234"
    )
    file = home / "logs" / "hermes.log"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    text = file.read_text()
    assert text.count("\n") == 1
    assert "WARNING hermes.app: sent ******** to \\x1b[31m" in text
    assert capsys.readouterr() == ("", "")


def test_the_level_is_that_of_the_settings(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_what_repeats_is_written_once_then_counted(home: Path) -> None:
    logs.start()
    for _ in range(1000):
        error = OSError(24, "Too many open files")
        logging.getLogger("asyncio").error(
            "socket.accept() out of system resource", exc_info=error
        )
    logging.getLogger("hermes.app").warning("another")
    text = (home / "logs" / "hermes.log").read_text()
    assert text.count("Too many open files") == 1
    assert "another" in text


def test_a_record_that_goes_on_comes_again_with_its_number_after_a_while_that_grows() -> (
    None
):
    now = [0.0]
    repeats = logs.Repeats(lambda: now[0])
    written: list[tuple[float, str]] = []
    for tick in range(200):
        now[0] = tick / 10
        record = logging.LogRecord(
            "hermes", logging.WARNING, "", 0, "it failed: %s", ("why",), None
        )
        if (passed := repeats.passed(record)) is not None:
            written.append((now[0], passed.getMessage()))
    assert written == [
        (0.0, "it failed: why"),
        (1.0, "it failed: why (repeated 9 times since)"),
        (3.0, "it failed: why (repeated 19 times since)"),
        (7.0, "it failed: why (repeated 39 times since)"),
        (15.0, "it failed: why (repeated 79 times since)"),
    ]
    info = logging.LogRecord("hermes", logging.INFO, "", 0, "all is well", None, None)
    assert all(repeats.passed(info) is info for _ in range(3))


def test_a_process_without_file_handles_still_has_its_log(home: Path) -> None:
    logs.start()
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = [os.open("/dev/null", os.O_RDONLY)]
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (taken[0] + 8, before[1]))
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.open("/dev/null", os.O_RDONLY))
        with pytest.raises(OSError, match="Too many open files"):
            os.open("/dev/null", os.O_RDONLY)
        logging.getLogger("hermes.app").warning("no handles left")
        logging.getLogger("hermes.app").warning("and still none")
    finally:
        for handle in taken:
            os.close(handle)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    text = (home / "logs" / "hermes.log").read_text()
    assert "no handles left" in text
    assert "and still none" in text
