"""Accounts in use: tokens that expire, siblings that renew them first, processes that are killed, logins that die."""

import asyncio
import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.identity_server import FakeIdentityServer, identity_server, jwt

from hermes.app.sign_ins import SignIns
from hermes.errors import LoginExpiredError, ModelError
from hermes.providers.build import build_model
from hermes.providers.credentials import Credential
from hermes.providers.sign_in.accounts import Account, AccountStore, Tokens
from hermes.providers.sign_in.credential import credential_for
from hermes.schema.messages import UserMessage
from hermes.schema.model import LoginLost, ModelEvent, ModelRequest, ReplyFinished
from hermes.settings import Home, load, load_secrets
from hermes.settings.edit import set_value

REQUEST = ModelRequest(system=("Hi.",), messages=(UserMessage(text="hi"),))


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
    for name in ("openai", "openrouter", "copilot", "xai", "nous"):
        set_value(home.config, f"sign_ins.{name}.issuer", provider.url)
        set_value(home.config, f"sign_ins.{name}.base_url", provider.base_url)
    return home


def tokens_of(provider: FakeIdentityServer, *, life_s: float = 3600.0) -> Tokens:
    """What the provider last gave out, good for so long from now."""
    provider.grant()
    now = time.time()
    return Tokens(
        access=provider.access,
        refresh=provider.refresh_token,
        expires_at=now + life_s,
        received_at=now - 1000,
    )


def signed_in(
    home: Home, tokens: Tokens, service: str = "xai", label: str = "ada@example.org"
) -> Account:
    account = Account(id="", service=service, label=label, tokens=tokens)
    return AccountStore(home.accounts).add(account)


def credential(home: Home, account: Account) -> Credential:
    return credential_for(account, AccountStore(home.accounts), load(home=home))


async def ask(home: Home, model: str) -> list[ModelEvent]:
    resilient = build_model(load(home=home), load_secrets({}, home=home), model=model)
    try:
        return [event async for event in resilient.stream(REQUEST)]
    finally:
        await resilient.close()


async def test_a_token_that_is_good_is_used_as_it_is(
    home: Home, provider: FakeIdentityServer
) -> None:
    account = signed_in(home, tokens_of(provider))
    granted = await credential(home, account).acquire()
    assert granted.headers["authorization"] == f"Bearer {provider.access}"
    assert granted.expires_at == account.tokens.expires_at
    assert provider.asked == []


async def test_a_token_is_refreshed_early_and_written_before_it_is_used(
    home: Home, provider: FakeIdentityServer
) -> None:
    account = signed_in(home, tokens_of(provider, life_s=30))
    granted = await credential(home, account).acquire()
    (stored,) = AccountStore(home.accounts).accounts()
    assert provider.refreshes == 1
    assert granted.secrets[0] == stored.tokens.access == provider.access
    assert stored.tokens.refresh == provider.refresh_token


async def test_a_long_lived_process_sees_what_another_one_renewed(
    home: Home, provider: FakeIdentityServer
) -> None:
    account = signed_in(home, tokens_of(provider))
    held = credential(home, account)
    await held.acquire()
    fresh = tokens_of(provider)
    AccountStore(home.accounts).update(account.id, tokens=fresh)
    assert (await held.acquire()).secrets[0] == fresh.access
    assert provider.refreshes == 0


async def test_a_wrong_clock_costs_one_refresh_not_one_for_each_call(
    home: Home, provider: FakeIdentityServer
) -> None:
    """The provider's clock says 2027; the token's own times are far from this machine's."""
    provider.expires_in = None
    account = signed_in(home, tokens_of(provider, life_s=-86_400))
    held = credential(home, account)
    for _ in range(3):
        await held.acquire()
    assert provider.refreshes == 1


async def test_a_token_that_is_rejected_is_renewed_once_and_the_call_succeeds(
    home: Home, provider: FakeIdentityServer
) -> None:
    tokens = tokens_of(provider)
    signed_in(home, tokens)
    provider.access = "revoked-by-the-provider"
    events = await ask(home, "xai:grok-4")
    assert isinstance(events[-1], ReplyFinished)
    assert provider.refreshes == 1


async def test_an_account_whose_token_stays_rejected_ends_with_the_command(
    home: Home, provider: FakeIdentityServer
) -> None:
    signed_in(home, tokens_of(provider))
    provider.api_refusal = (401, "This token is not accepted.", "invalid_token")
    with pytest.raises(ModelError, match="rejected the sign-in") as caught:
        await ask(home, "xai:grok-4")
    assert caught.value.hint == "Sign in again: hermes auth add xai"
    assert provider.refreshes == 1


async def test_an_entitlement_error_is_said_verbatim_and_not_retried(
    home: Home, provider: FakeIdentityServer
) -> None:
    signed_in(home, tokens_of(provider))
    words = "Your plan has no active subscription to Grok."
    provider.api_refusal = (403, words, "permission_denied")
    with pytest.raises(ModelError, match=words) as caught:
        await ask(home, "xai:grok-4")
    assert caught.value.reason == "forbidden"
    assert len(provider.api_calls) == 1
    assert provider.refreshes == 0


async def test_a_dead_login_is_one_loud_event_with_the_command(
    home: Home, provider: FakeIdentityServer
) -> None:
    signed_in(home, tokens_of(provider, life_s=-1))
    provider.refusal = (400, {"error": "invalid_grant", "error_description": "gone"})
    set_value(home.config, "model.fallback", ["nous:Hermes-4-405B"])
    provider_two = provider.grant()
    now = time.time()
    other = Tokens(access=provider.access, refresh="r", expires_at=now + 999, received_at=now)  # fmt: skip
    signed_in(home, other, service="nous")
    events = await ask(home, "xai:grok-4")
    lost = [event for event in events if isinstance(event, LoginLost)]
    assert [(one.command, one.account) for one in lost] == [
        ("hermes auth add xai", "xai-1 (ada@example.org)")
    ]
    assert "gone" in lost[0].detail
    assert isinstance(events[-1], ReplyFinished)
    assert provider_two["access_token"] not in repr(events)
    again = await ask(home, "xai:grok-4")  # neither tried nor told a second time
    assert not any(isinstance(event, LoginLost) for event in again)
    assert isinstance(again[-1], ReplyFinished)
    set_value(home.config, "model.fallback", [])
    with pytest.raises(ModelError, match="no longer works") as caught:
        await ask(home, "xai:grok-4")
    assert caught.value.hint == "Sign in again: hermes auth add xai"
    assert provider.refreshes == 1


async def test_a_minted_key_that_was_revoked_is_one_loud_event_and_the_next_takes_over(
    home: Home, provider: FakeIdentityServer
) -> None:
    store = AccountStore(home.accounts)
    provider.access = provider.key
    for label, key in (("ada", "sk-or-v1-revoked0123456789"), ("bob", provider.key)):
        tokens = Tokens(access=key)
        store.add(Account(id="", service="openrouter", kind="key", label=label, tokens=tokens))  # fmt: skip
    events = await ask(home, "openrouter:some/model")
    lost = [event for event in events if isinstance(event, LoginLost)]
    assert [(one.command, one.account) for one in lost] == [
        ("hermes auth add openrouter", "openrouter-1 (ada)")
    ]
    assert isinstance(events[-1], ReplyFinished)
    assert "revoked0123456789" not in repr(events)
    states = {one.id: one.state for one in SignIns(home).states()}
    assert states == {"openrouter-1": "expired", "openrouter-2": "ok"}
    again = await ask(home, "openrouter:some/model")  # neither tried nor told again
    assert not any(isinstance(event, LoginLost) for event in again)
    assert len(provider.api_calls) == 3


async def test_a_key_that_somebody_signed_in_for_meanwhile_is_used(
    home: Home, provider: FakeIdentityServer
) -> None:
    store = AccountStore(home.accounts)
    old = Account(id="", service="openrouter", kind="key", label="ada", tokens=Tokens(access="sk-or-old"))  # fmt: skip
    held = credential(home, store.add(old))
    before = await held.acquire()
    fresh = Tokens(access=provider.key)
    store.update("openrouter-1", tokens=fresh)
    assert await held.renew(before)
    assert (await held.acquire()).secrets[0] == provider.key
    assert store.accounts()[0].problem == ""


async def test_a_minted_key_is_dead_after_two_rejections_in_a_row_that_name_no_key(
    home: Home, provider: FakeIdentityServer
) -> None:
    store = AccountStore(home.accounts)
    provider.access = provider.key
    account = Account(id="", service="openrouter", kind="key", label="ada", tokens=Tokens(access=provider.key))  # fmt: skip
    store.add(account)
    model = build_model(load(home=home), load_secrets({}, home=home), model="openrouter:some/model")  # fmt: skip
    problems: list[str] = []
    for is_refused in (True, False, True, False, True, True):
        provider.api_refusal = (401, "Unauthorized", "") if is_refused else None
        with pytest.raises(ModelError) if is_refused else contextlib.nullcontext():
            assert [one async for one in model.stream(REQUEST)]
        problems.append(store.accounts()[0].problem)
    await model.close()
    assert problems == [""] * 5 + ["OpenRouter rejects its key."]


async def test_two_calls_report_a_death_once(
    home: Home, provider: FakeIdentityServer
) -> None:
    account = signed_in(home, tokens_of(provider, life_s=-1))
    provider.refusal = (401, {"error": "invalid_grant"})
    held = [credential(home, account) for _ in range(2)]
    failures = [await failure(one) for one in held]
    assert [one.is_news for one in failures] == [True, False]
    assert provider.refreshes == 1


async def failure(one: Credential) -> LoginExpiredError:
    with pytest.raises(LoginExpiredError) as caught:
        await one.acquire()
    return caught.value


async def test_a_provider_that_is_away_for_a_moment_kills_no_login(
    home: Home, provider: FakeIdentityServer
) -> None:
    account = signed_in(home, tokens_of(provider, life_s=60))
    provider.refusal = (503, {})
    granted = await credential(home, account).acquire()  # good for a minute yet
    assert granted.secrets[0] == account.tokens.access
    AccountStore(home.accounts).update(account.id, tokens=tokens_of(provider, life_s=-1))  # fmt: skip
    with pytest.raises(ModelError) as caught:
        await credential(home, account).acquire()
    assert (caught.value.reason, caught.value.retryable) == ("connection", True)
    assert not AccountStore(home.accounts).require(account.id).problem


async def test_the_next_account_takes_over_by_priority(
    home: Home, provider: FakeIdentityServer
) -> None:
    soon = time.time() + 9999
    worn = Tokens(access="tired-account-token", expires_at=soon, received_at=soon)
    tired = signed_in(home, worn, label="a")
    good = signed_in(home, tokens_of(provider), label="b")
    events = await ask(home, "xai:grok-4")
    assert isinstance(events[-1], ReplyFinished)
    used = [call["authorization"].removeprefix("Bearer ") for call in provider.api_calls]  # fmt: skip
    assert used[0] == tired.tokens.access
    assert used[-1] == good.tokens.access
    SignIns(home).prefer(good.id, 0)
    AccountStore(home.accounts).update(tired.id, priority=5)
    provider.api_calls.clear()
    await ask(home, "xai:grok-4")
    assert len(provider.api_calls) == 1


async def test_tokens_go_only_to_the_providers_own_address(
    home: Home, provider: FakeIdentityServer
) -> None:
    signed_in(home, tokens_of(provider))
    with identity_server() as thief:
        set_value(home.config, "custom_providers.mine.base_url", thief.base_url)
        set_value(home.config, "custom_providers.mine.family", "xai")
        with pytest.raises(ModelError):
            await ask(home, "mine:grok-4")
        assert provider.access not in str(thief.api_calls)


# codex's file


def codex_account(home: Home, tmp_path: Path, provider: FakeIdentityServer) -> tuple[Account, Path]:  # fmt: skip
    """A login of codex that has expired."""
    granted = provider.grant()
    granted["access_token"] = jwt(iat=1000, exp=1010, email="ada@example.org")
    path = tmp_path / "codex" / "auth.json"
    path.parent.mkdir()
    names = ("access_token", "refresh_token", "id_token")
    tokens = {name: granted[name] for name in names} | {"account_id": "acc-9"}
    document = {
        "auth_mode": "chatgpt",
        "OPENAI_API_KEY": None,
        "tokens": tokens,
        "last_refresh": "2026-11-01T10:00:00Z",
        "of_a_newer_codex": {"kept": True},
    }
    path.write_text(json.dumps(document))
    path.chmod(0o640)
    facts = {"file": str(path), "account_id": "acc-9"}
    account = Account(id="", service="openai", kind="codex", label="codex", facts=facts)
    return AccountStore(home.accounts).add(account), path


async def test_codexs_login_is_renewed_in_its_own_file_and_nothing_else_changes(
    home: Home, tmp_path: Path, provider: FakeIdentityServer
) -> None:
    account, path = codex_account(home, tmp_path, provider)
    granted = await credential(home, account).acquire()
    document: dict[str, Any] = json.loads(path.read_text())
    assert document["tokens"]["access_token"] == provider.access == granted.secrets[0]
    assert document["tokens"]["refresh_token"] == provider.refresh_token
    assert document["tokens"]["account_id"] == "acc-9"
    assert document["of_a_newer_codex"] == {"kept": True}
    assert document["last_refresh"] > "2026-11-01T10:00:00Z"
    assert granted.headers["chatgpt-account-id"] == "acc-9"
    assert path.stat().st_mode & 0o777 == 0o640
    await credential(home, account).acquire()
    assert provider.refreshes == 1


async def test_codex_that_refreshes_at_the_same_moment_is_not_harmed(
    home: Home, tmp_path: Path, provider: FakeIdentityServer
) -> None:
    account, path = codex_account(home, tmp_path, provider)

    def codex_is_faster() -> None:
        provider.before_refresh = None
        document = json.loads(path.read_text())
        document["tokens"] |= provider.grant()
        document["last_refresh"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        path.write_text(json.dumps(document))

    provider.before_refresh = codex_is_faster
    granted = await credential(home, account).acquire()
    assert provider.reused == 1
    assert granted.secrets[0] == provider.access  # codex's new token, not a dead login
    assert not AccountStore(home.accounts).require(account.id).problem
    assert json.loads(path.read_text())["tokens"]["access_token"] == provider.access


async def test_a_dead_login_of_codex_lives_again_after_codex_login(
    home: Home, tmp_path: Path, provider: FakeIdentityServer
) -> None:
    account, path = codex_account(home, tmp_path, provider)
    provider.refusal = (401, {"error": {"code": "refresh_token_expired"}})
    before = path.read_bytes()
    with pytest.raises(LoginExpiredError):
        await credential(home, account).acquire()
    assert path.read_bytes() == before
    document = json.loads(before)
    document["tokens"] |= provider.grant()
    document["last_refresh"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    path.write_text(json.dumps(document))
    assert (await credential(home, account).acquire()).secrets[0] == provider.access


async def test_chatgpt_answers_with_its_account_and_without_a_limit_for_the_reply(
    home: Home, tmp_path: Path, provider: FakeIdentityServer
) -> None:
    codex_account(home, tmp_path, provider)
    provider.api_headers = {
        "x-codex-primary-used-percent": "12.5",
        "x-codex-primary-window-minutes": "300",
        "x-codex-primary-reset-after-seconds": "600",
    }
    set_value(home.config, "model.max_output_tokens", 512)
    events = await ask(home, "chatgpt:gpt-5.5")
    assert isinstance(events[-1], ReplyFinished)
    assert events[-1].message.usage is not None
    assert events[-1].message.usage.cost_usd == 0.0
    assert provider.api_calls[0]["chatgpt-account-id"] == "acc-9"
    assert provider.api_calls[0]["originator"] == "hermes"
    assert "max_output_tokens" not in provider.bodies[-1]
    (state,) = SignIns(home).states()
    assert [(one.name, one.used_percent) for one in state.limits] == [("5-hour window", 12.5)]  # fmt: skip
    (asked,) = await SignIns(home).fresh_states()
    assert asked.limits[0].used_percent == 42


# Copilot


async def test_copilots_short_token_is_exchanged_kept_and_used_at_its_own_address(
    home: Home, provider: FakeIdentityServer
) -> None:
    account = Account(id="", service="copilot", kind="copilot", tokens=Tokens(refresh=provider.github_token))  # fmt: skip
    AccountStore(home.accounts).add(account)
    for _ in range(2):
        assert isinstance((await ask(home, "copilot:gpt-4.1"))[-1], ReplyFinished)
    assert provider.refreshes == 1
    assert "copilot-integration-id" in provider.api_calls[0]


async def test_copilot_at_a_foreign_host_is_refused(
    home: Home, provider: FakeIdentityServer
) -> None:
    provider.copilot_api = "https://api.evil.example"
    account = Account(id="", service="copilot", kind="copilot", tokens=Tokens(refresh=provider.github_token))  # fmt: skip
    AccountStore(home.accounts).add(account)
    with pytest.raises(ModelError, match="another host"):
        await ask(home, "copilot:gpt-4.1")
    assert provider.api_calls == []


# Several processes

_PROCESS = """
import asyncio, sys
from pathlib import Path
from hermes.providers.sign_in.accounts import AccountStore
from hermes.providers.sign_in.credential import credential_for
from hermes.settings import Home, load

async def main():
    home = Home(Path(sys.argv[1]))
    store = AccountStore(home.accounts)
    held = credential_for(store.accounts()[0], store, load(home=home))
    print("ready", flush=True)
    sys.stdin.readline()
    print((await held.acquire()).secrets[0], flush=True)
    sys.stdin.readline()

asyncio.run(main())
"""


def start(home: Home) -> "subprocess.Popen[str]":
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, "-c", _PROCESS, str(home.root)], stdin=pipe, stdout=pipe, text=True
    )  # fmt: skip


def say(process: "subprocess.Popen[str]") -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def hear(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_processes_that_refresh_at_once_ask_the_provider_once(
    home: Home, provider: FakeIdentityServer
) -> None:
    signed_in(home, tokens_of(provider, life_s=-1))
    processes = [start(home) for _ in range(3)]
    try:
        assert [hear(one) for one in processes] == ["ready"] * 3
        for one in processes:
            say(one)
        assert [hear(one) for one in processes] == [provider.access] * 3
    finally:
        for one in processes:
            say(one)
            one.communicate(timeout=20)
    assert (provider.refreshes, provider.reused) == (1, 0)


def test_a_process_that_is_killed_after_a_refresh_loses_no_token(
    home: Home, provider: FakeIdentityServer
) -> None:
    signed_in(home, tokens_of(provider, life_s=-1))
    first = start(home)
    assert hear(first) == "ready"
    say(first)
    renewed = hear(first)
    first.kill()
    first.communicate(timeout=20)
    (account,) = AccountStore(home.accounts).accounts()
    assert account.tokens.access == renewed == provider.access
    granted = asyncio.run(refreshed_again(home, account))
    assert granted == provider.access
    assert (provider.refreshes, provider.reused) == (2, 0)


async def refreshed_again(home: Home, account: Account) -> str:
    await SignIns(home).refresh(account.id)
    return AccountStore(home.accounts).require(account.id).tokens.access


def test_what_other_programs_keep_in_the_file_stays(home: Home) -> None:
    theirs = {"version": 1, "providers": {"nous": {"access_token": "theirs"}}}
    home.accounts.write_text(json.dumps(theirs))
    signed_in(home, Tokens(access="ours", refresh="r"))
    document = json.loads(home.accounts.read_text())
    assert document["providers"] == theirs["providers"]
    assert home.accounts.stat().st_mode & 0o777 == 0o600


async def test_headers_of_a_provider_entry_are_sent(
    home: Home, provider: FakeIdentityServer
) -> None:
    signed_in(home, tokens_of(provider))
    set_value(home.config, "custom_providers.xai.headers.X-BILLING-INVOKE-ORIGIN", "Hermes")  # fmt: skip
    await ask(home, "xai:grok-4")
    assert provider.api_calls[0]["x-billing-invoke-origin"] == "Hermes"


async def test_a_failed_call_says_its_request_id_and_how_long_it_took(
    home: Home, provider: FakeIdentityServer
) -> None:
    signed_in(home, tokens_of(provider))
    provider.api_refusal = (400, "bad", "invalid_request_error")
    provider.api_headers = {"x-request-id": "req_123"}
    with pytest.raises(ModelError, match=r"\[request req_123: .*ended after") as caught:
        await ask(home, "xai:grok-4")
    assert caught.value.request_id == "req_123"
    provider.api_refusal, provider.is_cut = None, True
    with pytest.raises(ModelError, match=r"\[request req_123: .*ended after") as caught:
        await ask(home, "xai:grok-4")
    assert caught.value.timing
