"""Signing in, for every surface: start a flow, wait for it or look at it later, and manage the accounts.

A flow shows a link, and a code if the page asks for one. It ends when the person has finished on the page, on any
device, or pastes the address that the browser was redirected to. Nothing is stored before the flow has ended.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlencode

import msgspec

from hermes.codex.environment import codex_home
from hermes.errors import HermesError, NotFound, UsageError, in_sentences
from hermes.oauth.loopback import LoopbackListener, RedirectError
from hermes.oauth.pkce import Pkce
from hermes.primitives.tasks import BackgroundTasks
from hermes.providers import provider_table
from hermes.providers.http_client import Http
from hermes.providers.sign_in import codex_login, copilot, device_code, limits
from hermes.providers.sign_in.accounts import Account, AccountStore, Tokens, now
from hermes.providers.sign_in.credential import (
    AccountCredential,
    credential_for,
    machine_tokens,
)
from hermes.providers.sign_in.identity_http import IdentityHttp, SignInError
from hermes.providers.sign_in.services import SERVICES, SignInService, find_service
from hermes.providers.sign_in.states import (
    AccountLimit,
    AccountState,
    PendingSignIn,
    SignInOptions,
)
from hermes.providers.sign_in.token_grants import claims_of
from hermes.settings import Home, Settings
from hermes.settings.load import environment, load
from hermes.text.translation import translator

t = translator(__name__)


_OPENROUTER_PORT = 3000  # which it recommends for programs on a person's machine
_PKCE_LIFE_S = 600.0
_USUAL_LOCATION = "global"
_CHATGPT_USAGE = "https://chatgpt.com/backend-api/wham/usage"

Sleep = Callable[[float], Awaitable[Any]]


class SignIns:
    """The accounts of a home, and the sign-ins that were begun in this process."""

    def __init__(self, home: Home, *, sleep: Sleep = asyncio.sleep) -> None:
        self._home = home
        self._sleep = sleep
        self.store = AccountStore(home.accounts)
        self._flows: dict[str, PendingSignIn] = {}
        self._pasted: dict[str, Callable[[str], None]] = {}
        self._waiting: dict[str, list[Callable[[PendingSignIn], None]]] = {}
        self._tasks = BackgroundTasks("signing in")

    @property
    def _settings(self) -> Settings:
        """The settings as they are now: a client id may have been set a moment ago."""
        return load(home=self._home)

    # Beginning and ending a sign-in

    def codex_file(self) -> Path | None:
        """Where codex's login is, if it has one with a ChatGPT account."""
        path = codex_home(environment(), self._settings.codex.home) / "auth.json"
        try:
            codex_login.read_login(path)
        except SignInError:
            return None
        return path

    async def add(
        self, name: str, options: SignInOptions, show: Callable[[PendingSignIn], None]
    ) -> Account:
        """Signs in, and returns when that is done. `show` is called once there is something to open. Raises HermesError."""
        service = find_service(name, self._settings.sign_ins)
        if (direct := await self._without_page(service, options)) is not None:
            return self._added(direct)
        http = IdentityHttp(Http(environment()))
        try:
            if service.flow == "mint_key":
                return self._added(await self._mint_key(http, service, show))
            code = await device_code.request_code(http, service)
            pending = PendingSignIn(
                service=service.name,
                label=service.label,
                link=code.link,
                code=code.user_code,
                expires_at=now() + code.life_s,
            )
            self._show(pending, show)
            tokens, answer = await device_code.wait_for_tokens(
                http, service, code, sleep=self._sleep, clock=now
            )
        finally:
            await http.close()
        return self._added(_account_of(service, tokens, answer))

    async def begin(self, name: str, options: SignInOptions) -> PendingSignIn:
        """Begins a sign-in that continues in the background. Returns what to open, or how it ended. Raises HermesError."""
        service = find_service(name, self._settings.sign_ins)
        running = self._flows.get(service.name)
        if running is not None and running.state == "waiting":
            return running
        shown: asyncio.Future[PendingSignIn] = (
            asyncio.get_running_loop().create_future()
        )

        def show(pending: PendingSignIn) -> None:
            if not shown.done():
                shown.set_result(pending)

        task = self._tasks.start(self._run(service, options, show))
        await asyncio.wait({task, shown}, return_when=asyncio.FIRST_COMPLETED)
        if not shown.done():
            error = task.exception()
            if error is not None:
                raise error
        return self._flows[service.name]

    async def _run(
        self,
        service: SignInService,
        options: SignInOptions,
        show: Callable[[PendingSignIn], None],
    ) -> None:
        """Runs one sign-in in the background. Once it has shown something, its end is kept for whoever asks."""
        try:
            account = await self.add(service.name, options, show)
        except HermesError as error:
            if service.name not in self._pasted and not self._is_waiting(service):
                raise
            self._ended(service, "failed", in_sentences(error))
        else:
            text = t(
                "Signed in with {label}: {name}.",
                label=service.label,
                name=account.name,
            )
            self._ended(service, "done", text)

    def _is_waiting(self, service: SignInService) -> bool:
        flow = self._flows.get(service.name)
        return flow is not None and flow.state == "waiting"

    def _ended(
        self, service: SignInService, state: Literal["done", "failed"], sentence: str
    ) -> None:
        self._pasted.pop(service.name, None)
        before = self._flows.get(service.name) or PendingSignIn(
            service=service.name, label=service.label, link=""
        )
        ended = msgspec.structs.replace(
            before, state=state, sentence=sentence, link="", code=""
        )
        self._flows[service.name] = ended
        for tell in self._waiting.pop(service.name, ()):
            tell(ended)

    def when_ended(self, name: str, tell: Callable[[PendingSignIn], None]) -> None:
        """Calls `tell` when the sign-in that waits has ended, however it did."""
        self._waiting.setdefault(name, []).append(tell)

    def _show(
        self, pending: PendingSignIn, show: Callable[[PendingSignIn], None]
    ) -> None:
        self._flows[pending.service] = pending
        show(pending)

    def pending(self) -> tuple[PendingSignIn, ...]:
        """Returns the sign-ins of this process that wait, and how the last ones ended."""
        return tuple(self._flows.values())

    def paste(self, text: str) -> str:
        """Takes the address that a browser was sent to. Returns the service that it was for. Raises HermesError."""
        if not self._pasted:
            raise NotFound(t.later("No sign-in is waiting for an address."))
        failure: RedirectError | None = None
        for name, take in list(self._pasted.items()):
            try:
                take(text)
            except RedirectError as error:
                failure = error
            else:
                return name
        assert failure is not None  # noqa: S101 - at least one was asked
        raise failure

    async def join(self) -> None:
        """Waits until no sign-in of this process is under way."""
        await self._tasks.join()

    def cancel(self) -> None:
        """Gives up every sign-in that waits."""
        self._tasks.cancel()

    # The flows without a code to type

    async def _without_page(
        self, service: SignInService, options: SignInOptions
    ) -> Account | None:
        """Returns the account of a sign-in that needs no page: codex's login, a token, or the machine's identity."""
        if service.flow == "machine":
            return await self._machine_account(service, options)
        if options.token and service.name == "copilot":
            copilot.check_github_token(options.token)
            account = _account_of(service, Tokens(access=options.token), {})
            return await self._proved(service, account)
        if options.token:
            raise UsageError(
                t.later("{label} takes no token here.", label=service.label)
            )
        if service.name == "openai" and not options.own_login:
            return self._codex_account(service)
        return None

    def _codex_account(self, service: SignInService) -> Account | None:
        path = self.codex_file()
        if path is None:
            return None
        login = codex_login.read_login(path)
        facts = {"file": str(path), "account_id": login.account_id, "plan": login.plan}
        return Account(
            id="",
            service=service.name,
            kind="codex",
            label=login.email or "codex's login",
            added_at=now(),
            facts={key: value for key, value in facts.items() if value},
        )

    async def _machine_account(
        self, service: SignInService, options: SignInOptions
    ) -> Account:
        facts = await asyncio.to_thread(_machine_facts, service, options)
        label = facts.get("endpoint") or facts.get("project") or facts.get("region", "")
        account = Account(
            id="",
            service=service.name,
            kind=service.name,  # type: ignore[arg-type]
            label=label.removeprefix("https://"),
            added_at=now(),
            facts=facts,
        )
        await asyncio.to_thread(machine_tokens, account, service)
        return account

    async def _proved(self, service: SignInService, account: Account) -> Account:
        """Returns the account with a first short-lived token. Raises SignInError if it gets none."""
        http = IdentityHttp(Http(environment()))
        try:
            tokens, facts = await copilot.exchange(http, service, account, now())
        finally:
            await http.close()
        return msgspec.structs.replace(account, tokens=tokens, facts=facts)

    async def _mint_key(
        self,
        http: IdentityHttp,
        service: SignInService,
        show: Callable[[PendingSignIn], None],
    ) -> Account:
        pkce = Pkce()
        async with LoopbackListener(
            host="localhost", preferred_port=_OPENROUTER_PORT, state_in_path=True
        ) as listener:
            query = {
                "callback_url": listener.redirect_uri,
                "code_challenge": pkce.challenge,
                "code_challenge_method": "S256",
            }
            self._pasted[service.name] = listener.paste
            pending = PendingSignIn(
                service=service.name,
                label=service.label,
                link=f"{service.issuer}/auth?{urlencode(query)}",
                can_paste=True,
                expires_at=now() + _PKCE_LIFE_S,
            )
            self._show(pending, show)
            try:
                async with asyncio.timeout(_PKCE_LIFE_S):
                    redirect = await listener.wait()
            except TimeoutError as error:
                raise SignInError(
                    t.later("Nobody came back from the sign-in page in ten minutes."),
                    hint=t.later("To try again: {command}", command=service.command),
                ) from error
            finally:
                self._pasted.pop(service.name, None)
        if redirect.error:
            raise SignInError(
                t.later(
                    "Signing in with {label} was denied: {error}",
                    label=service.label,
                    error=redirect.error,
                ),
                hint=t.later("To try again: {command}", command=service.command),
            )
        return await _exchange_for_key(http, service, redirect.code, pkce.verifier)

    def _added(self, account: Account) -> Account:
        if account.kind == "copilot" and not account.tokens.refresh:
            github = Tokens(refresh=account.tokens.access)
            account = msgspec.structs.replace(account, tokens=github)
        return self.store.add(account)

    # Accounts

    def states(self) -> tuple[AccountState, ...]:
        """Returns every account, by service and priority, with the limits that were last seen."""
        seen = self._seen().read()
        order = [service.name for service in SERVICES]
        found = sorted(
            self.store.accounts(),
            key=lambda one: (order.index(one.service), one.priority),
        )
        return tuple(self._state(one, seen.get(one.id, ())) for one in found)

    async def fresh_states(self) -> tuple[AccountState, ...]:
        """The same after asking the services that tell an account's limits."""
        for account in self.store.usable():
            try:
                await self._ask_limits(account)
            except HermesError:  # what was last seen is shown, with its age
                continue
        return self.states()

    def _seen(self) -> limits.SeenLimits:
        return limits.SeenLimits(self._home.cache)

    def _state(self, account: Account, seen: tuple[AccountLimit, ...]) -> AccountState:
        service = find_service(account.service)
        state: Literal["ok", "expired", "shared"] = "ok"
        if account.problem:
            state = "expired"
        elif account.kind == "codex":
            state = "shared"
        return AccountState(
            id=account.id,
            service=account.service,
            provider=service.provider,
            label=account.label,
            kind=account.kind,
            priority=account.priority,
            state=state,
            expires_at=account.tokens.expires_at,
            problem=account.problem,
            command=service.command if account.problem else "",
            limits=seen,
        )

    async def _ask_limits(self, account: Account) -> None:
        """Asks ChatGPT or OpenRouter what is left of an account. Others tell it in the headers of their answers."""
        service = find_service(account.service, self._settings.sign_ins)
        urls = {"openai": _CHATGPT_USAGE, "openrouter": f"{service.issuer}/api/v1/key"}
        url = urls.get(service.name)
        if url is None:
            return
        if service.name == "openai" and service.base_url:
            url = f"{service.base_url.removesuffix('/codex')}/wham/usage"
        granted = await credential_for(account, self.store, self._settings).acquire()
        http = IdentityHttp(Http(environment()))
        try:
            answer = await http.get(url, granted.headers)
        finally:
            await http.close()
        if not answer.is_ok:
            return
        read = (
            limits.chatgpt_limits
            if service.name == "openai"
            else limits.openrouter_limits
        )
        self._seen().put(account.id, read(answer.document, now()))

    async def refresh(self, name: str) -> Account:
        """Refreshes an account now. Raises HermesError."""
        account = self.store.require(name)
        credential = credential_for(account, self.store, self._settings)
        if account.problem:
            self.store.update(account.id, problem="")
        if isinstance(credential, AccountCredential):
            await credential.refresh_now()
        else:
            await credential.acquire()
        return self.store.require(account.id)

    def prefer(self, name: str, priority: int) -> Account:
        """Gives an account its place among those of its service; 0 is the first."""
        return self.store.update(self.store.require(name).id, priority=priority)

    def remove(self, name: str) -> Account:
        """Forgets an account. A login that another program keeps stays there."""
        account = self.store.require(name)
        self.store.remove(account.id)
        return account


async def _exchange_for_key(
    http: IdentityHttp, service: SignInService, code: str, verifier: str
) -> Account:
    fields = {"code": code, "code_verifier": verifier, "code_challenge_method": "S256"}
    answer = await http.post_json(f"{service.issuer}/api/v1/auth/keys", fields)
    key = answer.document.get("key")
    if not answer.is_ok or not isinstance(key, str) or not key:
        raise SignInError(
            t.later(
                "{label} gave no key: {words}", label=service.label, words=answer.words
            ),
            hint=t.later("To try again: {command}", command=service.command),
        )
    return Account(
        id="",
        service=service.name,
        kind="key",
        label=str(answer.document.get("user_id") or "")[:80],
        added_at=now(),
        tokens=Tokens(access=key, received_at=now()),
    )


def _account_of(
    service: SignInService, tokens: Tokens, answer: Mapping[str, Any]
) -> Account:
    """Describes the account that tokens came for, as far as they tell."""
    about: dict[str, str] = {}
    if service.name == "openai":
        about = codex_login.describe_login(answer)
    else:
        claims = claims_of(str(answer.get("id_token") or ""))
        about = {"email": str(claims.get("email") or "")}
    kind: Any = "copilot" if service.name == "copilot" else "oauth"
    if kind == "copilot":
        tokens = Tokens(refresh=tokens.access)
    label = "".join(c for c in about.pop("email", "") if c.isprintable())[:80]
    return Account(
        id="",
        service=service.name,
        kind=kind,
        label=label,
        added_at=now(),
        tokens=tokens,
        facts={key: value for key, value in about.items() if value},
    )


def _machine_facts(service: SignInService, options: SignInOptions) -> dict[str, str]:
    """What an account of a cloud needs to know. Raises UsageError for what is missing. Blocks."""
    if service.name == "azure":
        endpoint = options.endpoint.rstrip("/")
        if not endpoint.startswith("https://") and not service.base_url:
            raise UsageError(
                t.later("Azure needs the address of your resource."),
                hint=t.later(
                    "hermes auth add azure --endpoint https://NAME.openai.azure.com"
                ),
            )
        facts = {"endpoint": endpoint or service.base_url, "tenant": options.tenant}
    elif service.name == "vertex":
        project = options.project
        if not project:
            from hermes.providers.sign_in.vertex import fetch_token

            project = fetch_token(service)[2]
        if not project:
            raise UsageError(
                t.later("Google's credentials name no project."),
                hint="hermes auth add vertex --project PROJECT",
            )
        facts = {"project": project, "location": options.location or _USUAL_LOCATION}
    else:
        environ = environment()
        usual = environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION") or ""
        region = options.region or usual
        if not region:
            raise UsageError(
                t.later("Bedrock needs a region."),
                hint="hermes auth add bedrock --region us-east-1",
            )
        facts = {"region": region, "profile": options.profile}
    return {key: value for key, value in facts.items() if value}


def provider_label(service: str) -> str:
    """Returns what people call the provider that a service's accounts are for."""
    return provider_table.label_of(find_service(service).provider)
