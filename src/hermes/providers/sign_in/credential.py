"""Credentials of accounts: the tokens of `auth.json`, refreshed by one process at a time, written before they are used.

The store is looked at before every use and read again under the lock before every refresh, so a token that another
process or another program has renewed is used instead of being renewed again.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import msgspec

from hermes.errors import LoginExpiredError, ModelError, SettingsError
from hermes.providers.credentials import Authorization, Credential
from hermes.providers.http_client import Http
from hermes.providers.sign_in import codex_login, copilot, token_grants
from hermes.providers.sign_in.accounts import Account, AccountStore, Tokens, now
from hermes.providers.sign_in.identity_http import IdentityHttp, SignInError
from hermes.providers.sign_in.limits import SeenLimits
from hermes.providers.sign_in.services import SignInService, find_service
from hermes.settings import Secrets, Settings
from hermes.settings.load import environment
from hermes.text.translation import translator

t = translator(__name__)

_JUST_CAME_S = (
    30.0  # a token that just came is not renewed again, whatever the clock says
)
_CACHE = "cache"


class RenewedTokens(msgspec.Struct, frozen=True, kw_only=True):
    """What a refresh brought, and what else is to be kept."""

    tokens: Tokens
    answer: Mapping[str, Any] = {}
    facts: Mapping[str, str] = {}

    def __repr__(self) -> str:
        return "RenewedTokens()"


class TokenSource(Protocol):
    """Where the tokens of one kind of account are, and how they are renewed."""

    def read(self, account: Account) -> Tokens: ...

    def stamp(self, account: Account) -> str:
        """Changes with the tokens, where another program keeps them; else empty."""
        ...

    async def renew(
        self, http: IdentityHttp, account: Account, tokens: Tokens
    ) -> RenewedTokens: ...

    def save(self, account: Account, used: Tokens, renewed: RenewedTokens) -> Tokens:
        """Writes the tokens. Returns those to be used, which are another program's if that was faster."""
        ...


class StoredTokens:
    """Tokens that are kept in `auth.json`."""

    def __init__(self, store: AccountStore, service: SignInService) -> None:
        self._store = store
        self._service = service

    def read(self, account: Account) -> Tokens:
        return account.tokens

    def stamp(self, account: Account) -> str:  # noqa: ARG002 - nobody else writes them
        return ""

    async def renew(
        self, http: IdentityHttp, account: Account, tokens: Tokens
    ) -> RenewedTokens:
        if account.kind == "copilot":
            found, facts = await copilot.exchange(http, self._service, account, now())
            return RenewedTokens(tokens=found, facts={**account.facts, **facts})
        found, answer = await token_grants.refresh(http, self._service, tokens, now())
        return RenewedTokens(tokens=found, answer=answer, facts=account.facts)

    def save(self, account: Account, used: Tokens, renewed: RenewedTokens) -> Tokens:
        current = self._store.get(account.id)
        if current is not None and current.tokens.refresh != used.refresh:
            return current.tokens  # somebody signed in again meanwhile
        fields = {"tokens": renewed.tokens, "facts": renewed.facts, "problem": ""}
        return self._store.update(account.id, **fields).tokens


class CodexTokens:
    """Tokens that the codex program keeps, in its own file."""

    def __init__(self, service: SignInService) -> None:
        self._service = service

    def read(self, account: Account) -> Tokens:
        return codex_login.read_login(Path(account.facts["file"])).tokens

    def stamp(self, account: Account) -> str:
        try:
            return str(Path(account.facts["file"]).stat().st_mtime_ns)
        except OSError:
            return "none"

    async def renew(
        self,
        http: IdentityHttp,
        account: Account,  # noqa: ARG002 - of the protocol
        tokens: Tokens,
    ) -> RenewedTokens:
        found, answer = await token_grants.refresh(http, self._service, tokens, now())
        return RenewedTokens(tokens=found, answer=answer)

    def save(self, account: Account, used: Tokens, renewed: RenewedTokens) -> Tokens:
        file = Path(account.facts["file"])
        try:
            if codex_login.save_login(file, used.refresh, renewed.answer):
                return renewed.tokens
        except OSError as error:
            raise SignInError(
                t.later(
                    "{file} can't be written, so codex would be signed out.", file=file
                ),
                hint=t.later(
                    "Make the file writable, or sign in separately: {command}",
                    command=self._service.command,
                ),
            ) from error
        return self.read(account)


class AccountCredential:
    """A `Credential` whose tokens expire and are renewed."""

    def __init__(
        self,
        account: Account,
        store: AccountStore,
        service: SignInService,
        source: TokenSource,
        limits: SeenLimits,
    ) -> None:
        self.id = account.id
        self.name = account.name
        self.advice = t.logged("Sign in again: {command}", command=service.command)
        self._store = store
        self._service = service
        self._source = source
        self._limits = limits
        self._rejected = ""
        self._refreshing = asyncio.Lock()

    async def acquire(self) -> Authorization:
        """Returns the headers of the account. Raises ModelError; LoginExpiredError if somebody has to sign in again."""
        account = self._account()
        try:
            tokens = self._source.read(account)
            if not self._is_good(tokens):
                tokens = await self._renewed()
                account = self._account()
        except SignInError as error:
            raise self._failure(error, account) from error
        except SettingsError as error:
            raise ModelError(
                error.words, hint=error.hint_words, reason="auth"
            ) from error
        return authorization(account, tokens, self._service)

    async def renew(
        self,
        rejected: Authorization,
        *,
        is_certain: bool = True,  # noqa: ARG002 - of the protocol
    ) -> bool:
        """The next `acquire` refreshes, unless another process has done so."""
        if not rejected.secrets or rejected.secrets[0] == self._rejected:
            return False
        self._rejected = rejected.secrets[0]
        return True

    def observe(self, headers: Mapping[str, str], status: int) -> None:  # noqa: ARG002 - of the protocol
        self._limits.note(self.id, headers)

    async def refresh_now(self) -> None:
        """Refreshes whether or not it is due. Raises ModelError."""
        account = self._account()
        try:
            self._rejected = self._source.read(account).access
            await self._renewed()
        except SignInError as error:
            raise self._failure(error, account) from error

    def _account(self) -> Account:
        account = self._store.get(self.id)
        if account is None:
            raise removed(self)
        if not account.problem:
            return account
        if self._source.stamp(account) != account.facts.get("dead_stamp", ""):
            return self._store.update(self.id, problem="")  # signed in again elsewhere
        raise self._dead(account.problem, is_news=False)

    def _is_good(self, tokens: Tokens) -> bool:
        if not tokens.access or tokens.access == self._rejected:
            return False
        if tokens.expires_at is None:
            return True
        moment = now()
        if 0 <= moment - tokens.received_at < _JUST_CAME_S:
            return True
        life = tokens.expires_at - tokens.received_at
        early = min(self._service.refresh_early_s, max(life, 0.0) / 2)
        return moment < tokens.expires_at - early

    async def _renewed(self) -> Tokens:
        """Returns good tokens, renewed by this process or meanwhile by another one. Raises SignInError."""
        async with self._refreshing:
            try:
                async with self._store.refreshing(self.id):
                    return await self._renew_locked()
            except TimeoutError as error:
                raise SignInError(
                    t.later(
                        "Another process has been refreshing {name} for a minute.",
                        name=self.name,
                    ),
                    hint=t.later("Try again."),
                    is_final=False,
                ) from error

    async def _renew_locked(self) -> Tokens:
        account = self._account()
        tokens = self._source.read(account)
        if self._is_good(tokens):
            return tokens
        http = IdentityHttp(Http(environment()))
        try:
            renewed = await self._source.renew(http, account, tokens)
        except SignInError as error:
            latest = self._source.read(self._account())
            if latest.refresh != tokens.refresh and self._is_good(latest):
                return latest  # another program was faster, and used the token up
            if not error.is_final and self._still_works(tokens):
                return tokens
            raise
        finally:
            await http.close()
        return self._source.save(account, tokens, renewed)

    def _still_works(self, tokens: Tokens) -> bool:
        """Whether tokens that are to be renewed early are good for a while yet."""
        is_rejected = tokens.access == self._rejected
        return (
            not is_rejected
            and tokens.expires_at is not None
            and now() < tokens.expires_at
        )

    def _failure(self, error: SignInError, account: Account) -> ModelError:
        if not error.is_final:
            return ModelError(
                error.message,
                hint=error.hint,
                reason="connection",
                retryable=True,
                rotate_key=True,
                fall_back=True,
            )
        stamp = self._source.stamp(account)
        facts = {"dead_stamp": stamp} if stamp else {}
        is_news = self._store.mark_dead(self.id, error.message, account.tokens, facts)
        return self._dead(error.message, is_news=is_news)

    def _dead(self, problem: str, *, is_news: bool) -> LoginExpiredError:
        return expired(self, self._service, problem, is_news=is_news)


class KeyCredential:
    """A key that signing in has made. It stays good until somebody revokes it."""

    def __init__(
        self,
        account: Account,
        store: AccountStore,
        service: SignInService,
        limits: SeenLimits,
    ) -> None:
        self.id = account.id
        self.name = account.name
        self.advice = t.logged("Sign in again: {command}", command=service.command)
        self._store = store
        self._service = service
        self._limits = limits
        self._doubted = ""  # the key that the last answer rejected without naming it

    async def acquire(self) -> Authorization:
        """Returns the headers of the account, with the key that is stored now. Raises ModelError."""
        account = self._store.get(self.id)
        if account is None:
            raise removed(self)
        if account.problem:
            raise self._dead(account.problem, is_news=False)
        return authorization(account, account.tokens, self._service)

    async def renew(self, rejected: Authorization, *, is_certain: bool = True) -> bool:
        """Looks for another key: somebody may have signed in again. Raises LoginExpiredError if nobody has.

        A rejection that names no key may have another cause; only the second of the same key in a row counts.
        """
        used = Tokens(access=rejected.secrets[0])
        account = self._store.get(self.id)
        if account is not None and account.tokens.access != used.access:
            return True
        if not is_certain and used.access != self._doubted:
            self._doubted = used.access
            return False
        problem = t.logged("{label} rejects its key.", label=self._service.label)
        is_news = self._store.mark_dead(self.id, problem, used, {})
        raise self._dead(problem, is_news=is_news)

    def observe(self, headers: Mapping[str, str], status: int) -> None:
        if status == 200:
            self._doubted = ""
        self._limits.note(self.id, headers)

    def _dead(self, problem: str, *, is_news: bool) -> LoginExpiredError:
        return expired(self, self._service, problem, is_news=is_news)


class MachineCredential:
    """Who this machine or its user is, as a cloud's own library finds out. The library is asked for each request."""

    def __init__(
        self, account: Account, service: SignInService, limits: SeenLimits
    ) -> None:
        self.name = account.name
        self.advice = t.logged(
            "Check the sign-in: {command}",
            command=f"hermes auth refresh {account.id}",
        )
        self._account = account
        self._service = service
        self._limits = limits
        self._kept: Authorization | None = None

    async def acquire(self) -> Authorization:
        kept = self._kept
        if kept is not None and kept.expires_at and now() < kept.expires_at - 300:
            return kept
        try:
            tokens, base_url = await asyncio.to_thread(
                machine_tokens, self._account, self._service
            )
        except SignInError as error:
            raise ModelError(
                error.message,
                hint=error.hint,
                reason="auth",
                rotate_key=True,
                fall_back=True,
            ) from error
        granted = _bearer(tokens, {}, self._service.base_url or base_url)
        self._kept = granted
        return granted

    async def renew(
        self,
        rejected: Authorization,
        *,
        is_certain: bool = True,  # noqa: ARG002 - of the protocol
    ) -> bool:
        is_ours = self._kept is rejected
        self._kept = None
        return is_ours

    def observe(self, headers: Mapping[str, str], status: int) -> None:  # noqa: ARG002 - of the protocol
        self._limits.note(self._account.id, headers)


def machine_tokens(account: Account, service: SignInService) -> tuple[Tokens, str]:
    """Returns a token of the machine's identity, and the address it is for. Blocks; raises SignInError."""
    facts, moment = account.facts, now()
    if account.kind == "azure":
        from hermes.providers.sign_in import azure

        token, expires_at = azure.fetch_token(service, facts.get("tenant", ""))
        address = azure.address_of(facts["endpoint"])
    elif account.kind == "vertex":
        from hermes.providers.sign_in import vertex

        token, expires_at, _ = vertex.fetch_token(service)
        address = vertex.address_of(facts["project"], facts["location"])
    else:
        from hermes.providers.sign_in import bedrock

        region = facts["region"]
        token, life_s = bedrock.fetch_token(region, facts.get("profile", ""))
        expires_at, address = moment + life_s, bedrock.address_of(region)
    return Tokens(access=token, expires_at=expires_at, received_at=moment), address


def removed(credential: Credential) -> ModelError:
    """Returns the failure of an account that is no longer there."""
    return ModelError(
        t.later("The account {name} was removed.", name=credential.name),
        hint=credential.advice,
        reason="auth",
        rotate_key=True,
        fall_back=True,
    )


def expired(
    credential: Credential, service: SignInService, problem: str, *, is_news: bool
) -> LoginExpiredError:
    """Returns the failure of an account that somebody has to sign in with again."""
    return LoginExpiredError(
        t.later(
            "The sign-in {name} no longer works. {problem}",
            name=credential.name,
            problem=problem,
        ),
        hint=credential.advice,
        account=credential.name,
        command=service.command,
        is_news=is_news,
    )


def authorization(
    account: Account, tokens: Tokens, service: SignInService
) -> Authorization:
    """Returns what a request with an account's tokens carries."""
    headers: dict[str, str] = {}
    if account_id := account.facts.get("account_id"):
        headers["chatgpt-account-id"] = account_id
    base_url = service.base_url or account.facts.get("base_url", "")
    return _bearer(tokens, headers, base_url)


def _bearer(tokens: Tokens, headers: dict[str, str], base_url: str) -> Authorization:
    return Authorization(
        headers=headers | {"authorization": f"Bearer {tokens.access}"},
        secrets=(tokens.access, tokens.refresh),
        expires_at=tokens.expires_at,
        base_url=base_url,
    )


def credential_for(
    account: Account, store: AccountStore, settings: Settings
) -> Credential:
    """Returns the credential of an account."""
    service = find_service(account.service, settings.sign_ins)
    limits = SeenLimits(store.path.parent / _CACHE)
    if account.kind == "key":
        return KeyCredential(account, store, service, limits)
    if account.kind in {"azure", "vertex", "bedrock"}:
        return MachineCredential(account, service, limits)
    source: TokenSource = StoredTokens(store, service)
    if account.kind == "codex":
        source = CodexTokens(service)
    return AccountCredential(account, store, service, source, limits)


def credentials_for(
    accounts: tuple[Account, ...], settings: Settings, secrets: Secrets
) -> tuple[Credential, ...]:
    """Returns the credentials of accounts, in their order."""
    assert secrets.sign_in_file is not None  # noqa: S101 - that is where the accounts come from
    store = AccountStore(secrets.sign_in_file)
    return tuple(credential_for(account, store, settings) for account in accounts)
