"""`hermes logs` as a process: filtered, without secrets, and following a file that is rotated meanwhile."""

import asyncio
from pathlib import Path

from hermes.testing.installed import InstalledHermes

_TIMEOUT_S = 30.0
SECRET = "sk-proj-0123456789abcdefghijABCDEFGHIJ"  # noqa: S105 - of nobody


def entry(text: str, level: str = "INFO") -> str:
    return f"2026-11-17 08:00:00,000 7 {level} hermes.app: {text}\n"


async def test_the_log_is_filtered_and_masked(tmp_path: Path) -> None:
    hermes = InstalledHermes(tmp_path)
    logs = hermes.home / "logs"
    logs.mkdir(parents=True)
    (hermes.home / ".env").write_text("MY_SERVICE_PASSWORD=Tr0ub4dor&3xyz\n")
    (logs / "hermes.log.1").write_text(entry("the oldest", "ERROR"))
    (logs / "hermes.log").write_text(
        entry("dull")
        + entry(f"failed with {SECRET} and Tr0ub4dor&3xyz", "WARNING")
        + "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg\n-----END PRIVATE KEY-----\n"
    )
    shown = await hermes.run("logs", "--level", "warning")
    assert shown.code == 0, shown.err
    first, second, key = shown.out.splitlines()
    assert key == "********"
    assert "the oldest" in first
    assert "failed with ********" in second
    assert SECRET not in shown.out
    assert "Tr0ub4dor" not in shown.out
    last = await hermes.run("logs", "-n", "2")
    assert last.out.splitlines() == [second, key]
    none = await hermes.run("logs", "--since", "2099-01-01")
    assert (none.out, none.code) == ("", 0)
    assert "No matching lines" in none.err
    wrong = await hermes.run("logs", "--since", "soon")
    assert wrong.code == 2


async def test_follow_shows_new_lines_also_after_the_file_was_renamed(
    tmp_path: Path,
) -> None:
    hermes = InstalledHermes(tmp_path)
    logs = hermes.home / "logs"
    logs.mkdir(parents=True)
    log = logs / "hermes.log"
    log.write_text(entry("one"))
    process = await hermes.start("logs", "-f", "--level", "info")
    assert process.stdout is not None

    async def line() -> str:
        assert process.stdout is not None
        read = process.stdout.readline()
        return (await asyncio.wait_for(read, _TIMEOUT_S)).decode()

    try:
        assert "one" in await line()
        with log.open("a") as file:
            file.write(entry("hidden", "DEBUG") + entry("two"))
        assert "two" in await line()
        log.rename(logs / "hermes.log.1")
        log.write_text(entry("three"))
        assert "three" in await line()
    finally:
        process.kill()
        await process.communicate()
