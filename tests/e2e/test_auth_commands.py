"""`hermes auth` and `hermes report` as a user runs them, with an identity provider on loopback."""

import json
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fakes.identity_server import FakeIdentityServer, identity_server

from hermes.settings.edit import set_value
from hermes.testing.installed import InstalledHermes


@pytest.fixture
def provider() -> Iterator[FakeIdentityServer]:
    with identity_server() as served:
        yield served


@pytest.fixture
def hermes(tmp_path: Path, provider: FakeIdentityServer) -> InstalledHermes:
    hermes = InstalledHermes(tmp_path)
    hermes.home.mkdir(parents=True, exist_ok=True)
    for name in ("openrouter", "copilot", "nous"):
        config = hermes.home / "config.yaml"
        set_value(config, f"sign_ins.{name}.issuer", provider.url)
        set_value(config, f"sign_ins.{name}.base_url", provider.base_url)
    return hermes


async def test_signing_in_asking_and_signing_out(
    hermes: InstalledHermes, provider: FakeIdentityServer
) -> None:
    provider.github_token = "github_pat_0123456789abcdefghijklmnopqrstuvwxyz"  # noqa: S105 - of nobody
    added = await hermes.run(
        "auth", "add", "copilot", "--token", stdin=provider.github_token.encode()
    )
    assert added.code == 0, added.err
    assert "Signed in with GitHub Copilot: copilot-1." in added.out
    file = hermes.home / "auth.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600

    answered = await hermes.run("hi")  # nobody named a model: the account decides
    assert answered.out.strip() == "Hello."
    assert provider.api_calls[-1]["authorization"] == f"Bearer {provider.access}"

    listed = await hermes.run("auth", "list", "--json")
    (account,) = json.loads(listed.out)["accounts"]
    assert (account["id"], account["state"]) == ("copilot-1", "ok")
    models = await hermes.run("model", "list", "--json")
    found = {one["provider"]: one for one in json.loads(models.out)["models"]}
    assert found["copilot"]["signed_in"]

    everything = [added, answered, listed, models]
    for path in hermes.home.rglob("*"):
        if path.is_file() and path.name != "auth.json":
            content = path.read_bytes()
            assert provider.access.encode() not in content, path
            assert provider.github_token.encode() not in content, path
    for run in everything:
        assert provider.access not in run.out + run.err
        assert provider.github_token not in run.out + run.err

    assert (await hermes.run("auth", "remove", "copilot-1")).code == 3
    removed = await hermes.run("auth", "remove", "copilot-1", "--yes")
    assert removed.out == "Forgot copilot-1.\n"
    assert "Nobody is signed in." in (await hermes.run("auth")).out


async def test_the_address_can_be_pasted_at_the_terminal(
    hermes: InstalledHermes, provider: FakeIdentityServer
) -> None:
    size = (400, 24)
    async with hermes.terminal("auth", "add", "openrouter", size=size) as terminal:
        await terminal.sees("Waiting for OpenRouter")
        (link,) = [word for word in terminal.screen.split() if "/auth?" in word]
        target = link.removeprefix(provider.url)
        back = provider.answer("GET", target, {}, b"")[2]["location"]
        terminal.type("nonsense with blanks\r")
        await terminal.sees("not the address of this sign-in")
        terminal.type(f"{back}\r")
        await terminal.sees("Signed in with OpenRouter")
        assert await terminal.ends() == 0
        assert provider.key not in terminal.screen


async def test_a_dead_login_names_the_command(
    hermes: InstalledHermes, provider: FakeIdentityServer
) -> None:
    provider.github_token = "github_pat_0123456789abcdefghijklmnopqrstuvwxyz"  # noqa: S105 - of nobody
    token = provider.github_token.encode()
    await hermes.run("auth", "add", "copilot", "--token", stdin=token)
    provider.refusal = (403, {"error_details": {"message": "Your subscription has ended."}})  # fmt: skip
    refreshed = await hermes.run("auth", "refresh", "copilot-1")
    assert refreshed.code != 0
    assert "Your subscription has ended." in refreshed.err
    assert "hermes auth add copilot" in refreshed.err
    listed = await hermes.run("auth", "list")
    assert "sign in again" in listed.out
    asked = await hermes.run("hi", "--model", "copilot:gpt-4.1")
    assert asked.code != 0
    assert "hermes auth add copilot" in asked.err


async def test_a_report_is_shown_redacted_and_written_for_the_user_alone(
    hermes: InstalledHermes, tmp_path: Path
) -> None:
    secret = "sk-proj-0123456789abcdefghijABCDEFGHIJ"  # noqa: S105 - of nobody
    (hermes.home / ".env").write_text(f"MY_SERVICE_PASSWORD=Tr0ub4dor&3xyz\nOPENAI_API_KEY={secret}\n")  # fmt: skip
    (hermes.home / "logs").mkdir()
    (hermes.home / "logs" / "hermes.log").write_text(f"failed with {secret} and Tr0ub4dor&3xyz\n")  # fmt: skip
    shown = await hermes.run("report", "--show")
    assert "# Hermes report" in shown.out
    assert "failed with ********" in shown.out
    target = tmp_path / "report.md"
    refused = await hermes.run("report", str(target))
    assert (refused.code, target.exists()) == (3, False)
    assert "# Hermes report" in refused.out  # seen before anything is written
    written = await hermes.run("report", str(target), "--yes")
    assert written.code == 0
    text = target.read_text()
    assert secret not in text
    assert "Tr0ub4dor" not in text
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
