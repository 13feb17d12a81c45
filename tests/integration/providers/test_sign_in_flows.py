"""Signing in with identity providers on loopback that behave like the real ones."""

# ruff: noqa: S105, S106 - tokens of nobody

import asyncio
import json
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from tests.fakes.identity_server import FakeIdentityServer, identity_server, jwt

from hermes.app.sign_ins import SignIns
from hermes.errors import HermesError, UsageError
from hermes.oauth.loopback import RedirectError
from hermes.providers.sign_in.accounts import Account
from hermes.providers.sign_in.identity_http import SignInError
from hermes.providers.sign_in.states import PendingSignIn, SignInOptions
from hermes.settings import Home
from hermes.settings.edit import set_value

SERVICES = ("openai", "openrouter", "copilot", "xai", "nous")
NONE = SignInOptions()


class Waiting:
    """A sleep that takes no time, and remembers how long it should have been."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)


@pytest.fixture
def provider() -> Iterator[FakeIdentityServer]:
    with identity_server() as served:
        yield served


@pytest.fixture
def home(
    tmp_path: Path, provider: FakeIdentityServer, monkeypatch: pytest.MonkeyPatch
) -> Home:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    home = Home(tmp_path / "home").ensure()
    for name in SERVICES:
        set_value(home.config, f"sign_ins.{name}.issuer", provider.url)
        set_value(home.config, f"sign_ins.{name}.base_url", provider.base_url)
    return home


async def sign_in(
    home: Home,
    service: str,
    options: SignInOptions = NONE,
    waiting: Waiting | None = None,
) -> tuple[Account, list[PendingSignIn]]:
    shown: list[PendingSignIn] = []
    sign_ins = SignIns(home, sleep=waiting or Waiting())
    return await sign_ins.add(service, options, shown.append), shown


@pytest.mark.parametrize("service", ["openai", "xai", "nous"])
async def test_a_code_that_is_typed_signs_in(
    home: Home, provider: FakeIdentityServer, service: str
) -> None:
    provider.polls = ["authorization_pending", "authorization_pending", "ok"]
    account, (shown,) = await sign_in(home, service)
    assert shown.code in {"ABCD-1234", "WDJB-MJHT"}
    assert shown.link.startswith(provider.url)
    assert account.label == "ada@example.org"
    assert account.tokens.access == provider.access
    assert account.tokens.refresh == provider.refresh_token
    assert abs((account.tokens.expires_at or 0) - time.time() - 3600) < 60
    assert stat.S_IMODE(home.accounts.stat().st_mode) == 0o600


async def test_the_account_of_chatgpt_is_known_by_its_id_and_plan(
    home: Home, provider: FakeIdentityServer
) -> None:
    account, _ = await sign_in(home, "openai")
    assert account.facts == {"account_id": "acc-1", "plan": "plus"}
    assert "POST /oauth/token" in provider.asked


async def test_a_provider_that_wants_it_slower_is_asked_more_slowly(
    home: Home, provider: FakeIdentityServer
) -> None:
    provider.polls = ["authorization_pending", "slow_down", "slow_down", "ok"]
    waiting = Waiting()
    await sign_in(home, "xai", waiting=waiting)
    assert waiting.slept == [5.0, 5.0, 10.0, 15.0]


async def test_a_provider_that_fails_for_a_moment_is_asked_again(
    home: Home, provider: FakeIdentityServer
) -> None:
    provider.polls = ["unreachable", "ok"]
    account, _ = await sign_in(home, "nous")
    assert account.id == "nous-1"


@pytest.mark.parametrize(
    ("word", "said"), [("access_denied", "denied"), ("expired_token", "expired")]
)
async def test_a_refusal_ends_the_sign_in_and_stores_nothing(
    home: Home, provider: FakeIdentityServer, word: str, said: str
) -> None:
    provider.polls = ["authorization_pending", word]
    with pytest.raises(SignInError, match=said) as caught:
        await sign_in(home, "xai")
    assert "hermes auth add xai" in caught.value.hint
    assert not home.accounts.exists()


async def test_a_code_that_nobody_types_expires(
    home: Home, provider: FakeIdentityServer
) -> None:
    provider.polls = ["authorization_pending"]
    waiting = Waiting()
    with pytest.raises(SignInError, match="expired"):
        await sign_in(home, "nous", waiting=waiting)
    assert sum(waiting.slept) == pytest.approx(900, abs=5)


@pytest.mark.parametrize("name", ["token_endpoint", "device_authorization_endpoint"])
async def test_discovery_that_names_another_host_is_not_followed(
    home: Home, provider: FakeIdentityServer, name: str
) -> None:
    with identity_server() as thief:
        provider.discovery = {name: f"{thief.url}/oauth2/token"}
        with pytest.raises(SignInError, match="another host"):
            await sign_in(home, "xai")
        assert thief.asked == []


async def test_discovery_of_another_issuer_is_refused(
    home: Home, provider: FakeIdentityServer
) -> None:
    provider.discovery = {"issuer": "https://auth.example.org"}
    with pytest.raises(SignInError, match="another issuer"):
        await sign_in(home, "xai")


async def test_a_page_on_another_host_is_not_shown(
    home: Home, provider: FakeIdentityServer
) -> None:
    provider.verification_uri = "https://auth.evil.example/device"
    shown: list[PendingSignIn] = []
    with pytest.raises(SignInError, match=r"evil\.example"):
        await SignIns(home, sleep=Waiting()).add("nous", NONE, shown.append)
    assert shown == []


async def test_signing_in_again_replaces_the_account_and_another_one_comes_behind(
    home: Home, provider: FakeIdentityServer
) -> None:
    await sign_in(home, "nous")
    again, _ = await sign_in(home, "nous")
    provider.email = "bob@example.org"
    other, _ = await sign_in(home, "nous")
    assert (again.id, again.priority) == ("nous-1", 0)
    assert (other.id, other.priority) == ("nous-2", 1)


# GitHub Copilot


async def test_copilot_signs_in_and_exchanges_the_token(
    home: Home, provider: FakeIdentityServer
) -> None:
    account, _ = await sign_in(home, "copilot")
    assert account.tokens.refresh == provider.github_token
    assert not account.tokens.access


async def test_copilot_refuses_classic_tokens(home: Home) -> None:
    options = SignInOptions(token="ghp_0123456789abcdefghijklmnopqrstuvwxyz")
    with pytest.raises(SignInError, match="classic personal access tokens"):
        await sign_in(home, "copilot", options)
    assert not home.accounts.exists()


async def test_copilot_takes_a_fine_grained_token(
    home: Home, provider: FakeIdentityServer
) -> None:
    provider.github_token = "github_pat_0123456789abcdefghijklmnopqrstuvwxyz"
    options = SignInOptions(token=provider.github_token)
    account, shown = await sign_in(home, "copilot", options)
    assert shown == []
    assert account.tokens.access == provider.access
    assert account.facts == {"base_url": provider.base_url}


# codex's login


def codex_file(tmp_path: Path, **tokens: Any) -> Path:
    path = tmp_path / "codex" / "auth.json"
    path.parent.mkdir(exist_ok=True)
    document = {
        "auth_mode": "chatgpt",
        "OPENAI_API_KEY": None,
        "tokens": tokens,
        "last_refresh": "2026-11-01T10:00:00Z",
        "of_a_newer_codex": {"kept": True},
    }
    path.write_text(json.dumps(document))
    path.chmod(0o600)
    return path


async def test_codexs_login_is_found_and_shared_without_a_copy(
    home: Home, tmp_path: Path
) -> None:
    access = jwt(iat=1, exp=2, email="ada@example.org")
    path = codex_file(
        tmp_path, access_token=access, refresh_token="r", account_id="acc"
    )
    before = path.read_bytes()
    account, shown = await sign_in(home, "openai")
    assert (account.kind, account.label, shown) == ("codex", "ada@example.org", [])
    assert path.read_bytes() == before
    assert access not in home.accounts.read_text()


async def test_a_login_of_its_own_can_be_had_beside_codexs(
    home: Home, tmp_path: Path, provider: FakeIdentityServer
) -> None:
    codex_file(tmp_path, access_token=jwt(iat=1, exp=2), refresh_token="r")
    account, _ = await sign_in(home, "openai", SignInOptions(own_login=True))
    assert (account.kind, account.tokens.access) == ("oauth", provider.access)


# PKCE on loopback


def open_page(url: str, **headers: str) -> int:
    """What a browser does: it follows the redirect back to this machine. Returns the status of the last page."""
    request = Request(url, headers=headers)  # noqa: S310 - loopback
    with urlopen(request, timeout=10) as reply:  # noqa: S310 - loopback
        return int(reply.status)


async def test_openrouter_mints_a_key_by_pkce(
    home: Home, provider: FakeIdentityServer
) -> None:
    sign_ins = SignIns(home)
    pending = await sign_ins.begin("openrouter", NONE)
    assert pending.can_paste
    assert await asyncio.to_thread(open_page, pending.link) == 200
    await finished(sign_ins)
    (account,) = sign_ins.store.accounts()
    assert (account.kind, account.tokens.access) == ("key", provider.key)
    assert sign_ins.pending()[0].state == "done"
    assert sign_ins.pending()[0].link == ""


async def finished(sign_ins: SignIns) -> None:
    async with asyncio.timeout(10):
        await sign_ins.join()


async def test_the_address_of_the_last_page_can_be_pasted(
    home: Home, provider: FakeIdentityServer
) -> None:
    sign_ins = SignIns(home)
    pending = await sign_ins.begin("openrouter", NONE)
    back = await asyncio.to_thread(redirect_of, provider, pending.link)
    with pytest.raises(RedirectError, match="not the address of this sign-in"):
        sign_ins.paste(back.replace("/callback/", "/callback/x"))
    assert sign_ins.paste(back) == "openrouter"
    await finished(sign_ins)
    assert sign_ins.store.accounts()[0].tokens.access == provider.key


def redirect_of(provider: FakeIdentityServer, link: str) -> str:
    target = link.removeprefix(provider.url)
    return provider.answer("GET", target, {}, b"")[2]["location"]


async def test_a_person_who_says_no_is_told_so(
    home: Home, provider: FakeIdentityServer
) -> None:
    provider.polls = ["access_denied"]
    sign_ins = SignIns(home)
    pending = await sign_ins.begin("openrouter", NONE)
    await asyncio.to_thread(open_page, pending.link)
    await finished(sign_ins)
    (ended,) = sign_ins.pending()
    assert ended.state == "failed"
    assert "access_denied" in ended.sentence
    assert not home.accounts.exists()


async def raw_request(port: int, target: str, host: str) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    line = await asyncio.wait_for(reader.readline(), 10)
    writer.close()
    await writer.wait_closed()
    return int(line.split()[1])


@pytest.mark.parametrize(
    ("change", "host", "status"),
    [
        ("", "evil.example", 421),
        ("", "localhost:1", 421),
        ("x", "", 400),
        ("&state=other", "", 400),
    ],
)
async def test_the_listener_refuses_other_hosts_and_other_states(
    home: Home, provider: FakeIdentityServer, change: str, host: str, status: int
) -> None:
    sign_ins = SignIns(home)
    pending = await sign_ins.begin("openrouter", NONE)
    back = await asyncio.to_thread(redirect_of, provider, pending.link)
    origin, _, path = back.removeprefix("http://").partition("/")
    port = int(origin.partition(":")[2])
    target = f"/{path}{change}" if change.startswith("&") else f"/{path}".replace("?", f"{change}?")  # fmt: skip
    assert await raw_request(port, target, host or origin) == status
    assert sign_ins.pending()[0].state == "waiting"
    assert "POST /api/v1/auth/keys" not in provider.asked
    assert sign_ins.paste(back) == "openrouter"  # the real one still gets through
    await finished(sign_ins)
    assert sign_ins.pending()[0].state == "done"


# What is not there


async def test_a_service_that_nobody_knows_is_named(home: Home) -> None:
    with pytest.raises(UsageError, match="can't sign in with 'anthropic'"):
        await sign_in(home, "anthropic")


@pytest.mark.parametrize(
    ("service", "said"), [("azure", "address of your resource"), ("bedrock", "region")]
)
async def test_a_cloud_says_what_it_needs(
    home: Home, service: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_REGION", raising=False)
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    set_value(home.config, "sign_ins.azure.base_url", "")
    with pytest.raises(HermesError, match=said):
        await sign_in(home, service)


async def test_an_issuer_without_encryption_is_refused(home: Home) -> None:
    set_value(home.config, "sign_ins.nous.issuer", "http://portal.example.org")
    with pytest.raises(SignInError, match="not an address to sign in at"):
        await sign_in(home, "nous")
