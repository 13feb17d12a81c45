"""`hermes mcp` as a user runs it, and the guide's own examples."""

import json
import re
import sys
from pathlib import Path

import pytest
from tests.fakes.oauth_mcp_server import oauth_mcp_server

from hermes.settings.parse import parse_config
from hermes.testing.installed import InstalledHermes

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "guide" / "mcp.md").read_text(encoding="utf-8")
PROGRAM = ROOT / "tests" / "integration" / "mcp" / "fake_server.py"
COMMAND = (sys.executable, "-I", "-S", str(PROGRAM))
TOKEN = "tok-very-secret-123"  # noqa: S105 - of nobody


def example(language: str) -> str:
    found = re.search(
        rf"^```{language}[^\n]*\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL
    )
    assert found is not None
    return found[1]


async def test_a_server_is_added_listed_tested_and_removed(tmp_path: Path) -> None:
    hermes = InstalledHermes(tmp_path)
    hermes.home.mkdir()
    config = hermes.home / "config.yaml"
    config.write_text("# my settings\ndisplay:\n  color: never  # I like it plain\n")
    done = await hermes.run(
        "mcp", "add", "fake", "--env", "FAKE_TOKEN", "--", *COMMAND, FAKE_TOKEN=TOKEN
    )
    assert done.code == 0, done.err
    assert "answers in" in done.out
    assert "Says it again." in done.out
    written = config.read_text()
    assert "# my settings" in written
    assert "# I like it plain" in written
    assert 'FAKE_TOKEN: "${FAKE_TOKEN}"' in written
    (listed,) = json.loads((await hermes.run("mcp", "list", "--json")).out)["servers"]
    assert (listed["name"], listed["state"], listed["tools"]) == ("fake", "idle", 28)
    assert "28 tools" in (await hermes.run("mcp")).out
    (tested,) = json.loads(
        (await hermes.run("mcp", "test", "--json", FAKE_TOKEN=TOKEN)).out
    )["servers"]
    assert tested["ok"]
    assert {
        "name": "mcp.fake.echo",
        "description": "Says it again.",
        "changed": False,
    } in tested["tools"]
    assert (await hermes.run("mcp", "remove", "fake")).code == 0
    assert (
        config.read_text()
        == "# my settings\ndisplay:\n  color: never  # I like it plain\n"
    )
    assert "echo" not in (hermes.home / "mcp-pins.json").read_text()
    assert not list((hermes.home / "cache" / "mcp").iterdir())
    for file in hermes.home.rglob("*"):
        assert file == config or not file.stat().st_mode & 0o077, (
            f"{file} is open to others"
        )
        assert not file.is_file() or TOKEN.encode() not in file.read_bytes()


async def test_a_server_that_does_not_answer_is_not_added(tmp_path: Path) -> None:
    hermes = InstalledHermes(tmp_path)
    done = await hermes.run("mcp", "add", "fake", "--", *COMMAND, "die")
    assert done.code == 1
    assert "it ended by itself (exit code 4): no such database" in " ".join(
        done.err.split()
    )
    assert "Nothing was changed" in done.err
    assert not (hermes.home / "config.yaml").exists()
    assert (
        await hermes.run("mcp", "add", "fake", "--no-test", "--", *COMMAND, "die")
    ).code == 0
    failed = await hermes.run("mcp", "test", "fake")
    assert failed.code == 1
    assert "no such database" in failed.err


async def test_a_server_that_wants_a_sign_in_is_added_and_says_so(
    tmp_path: Path,
) -> None:
    hermes = InstalledHermes(tmp_path)
    with oauth_mcp_server() as remote:
        done = await hermes.run("mcp", "add", "far", "--url", f"{remote.url}/mcp")
    assert (done.code, done.out.startswith("Added far")) == (0, True), done.err
    assert "Sign in: hermes mcp login far" in " ".join(done.err.split())
    assert "far:" in (hermes.home / "config.yaml").read_text()


async def test_what_has_changed_is_shown_and_accepted(tmp_path: Path) -> None:
    hermes = InstalledHermes(tmp_path)
    await hermes.run("mcp", "add", "fake", "--", *COMMAND)
    await hermes.run(
        "config", "set", "mcp_servers.fake.args", json.dumps([*COMMAND[1:], "changed"])
    )
    shown = await hermes.run("mcp", "test", "fake")
    assert "Changed since you accepted it: echo." in shown.out
    assert "1 changed" in (await hermes.run("mcp", "list")).out
    assert (
        "Accepted as it is now."
        in (await hermes.run("mcp", "test", "fake", "--accept")).out
    )
    assert "changed" not in (await hermes.run("mcp", "list", "--json")).out.replace(
        '"changed": []', ""
    ).replace("fake_server.py changed", "")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("add", "a b", "--", "x"), "can't be a server's name"),
        (("add", "fake"), "either a program or a service"),
        (
            ("add", "fake", "--url", "http://x/mcp", "--", "x"),
            "either a program or a service",
        ),
        (
            ("add", "fake", "--url", "http://x/mcp", "--env", "A=b"),
            "a service takes --header",
        ),
        (("add", "fake", "--header", "A: b", "--", "x"), "a program takes --env"),
        (
            ("add", "fake", "--env", f"MY_TOKEN={TOKEN}", "--", "x"),
            "looks like a secret",
        ),
        (
            (
                "add",
                "fake",
                "--url",
                "https://x/mcp",
                "--header",
                f"Authorization: Bearer {TOKEN}",
            ),
            "like a secret",
        ),
        (
            ("add", "fake", "--", "x", "--key", "sk-ant-0123456789abcdef"),
            "must not contain a key",
        ),
        (
            ("add", "fake", "--timeout", "-1", "--", "x"),
            "not valid settings for a server",
        ),
        (("test", "fake"), "There is no MCP server 'fake'"),
        (("test",), "no MCP server to test"),
        (("remove", "fake"), "There is no MCP server 'fake'"),
    ],
)
async def test_what_can_not_be_done_is_said(
    tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    hermes = InstalledHermes(tmp_path)
    done = await hermes.run("mcp", *arguments)
    assert done.code == (1 if words.startswith(("There is no", "no MCP")) else 2)
    assert words in " ".join(done.err.split())
    assert TOKEN not in done.err
    assert not (hermes.home / "config.yaml").exists()


async def test_the_server_of_the_guide_works(tmp_path: Path) -> None:
    hermes = InstalledHermes(tmp_path)
    (hermes.work / "weather.py").write_text(example("python"))
    done = await hermes.run(
        "mcp",
        "add",
        "weather",
        "--cwd",
        str(hermes.work),
        "--",
        sys.executable,
        "weather.py",
    )
    assert done.code == 0, done.err
    assert "forecast  Tomorrow's weather in a city." in done.out


def test_the_settings_of_the_guide_are_sound() -> None:
    data, problems = parse_config(example("yaml"))
    assert not problems
    assert set(data) == {"mcp_servers"}
