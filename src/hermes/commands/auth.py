"""Sign-ins: signing in with accounts instead of keys, and managing the accounts. No token is ever shown."""

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from hermes.commands.command import Arg, command
from hermes.commands.context import CommandContext, LineReader
from hermes.commands.views import (
    Block,
    Column,
    Look,
    TableRow,
    TextResult,
    line,
    message,
    table,
)
from hermes.errors import HermesError, UsageError, for_reader
from hermes.primitives.tasks import cancel_and_wait
from hermes.providers import provider_table
from hermes.providers.sign_in.states import (
    AccountState,
    PendingSignIn,
    SignInOptions,
)
from hermes.text.formats import ago
from hermes.text.translation import to_translate, translator

if TYPE_CHECKING:
    from hermes.app.sign_ins import SignIns
    from hermes.providers.sign_in.services import SignInService

t = translator(__name__)


EXAMPLES = to_translate("""\
examples:
  hermes auth add openai                    your ChatGPT account; codex's login is shared if there is one
  hermes auth add openrouter                makes a key for you
  hermes auth add copilot                   GitHub Copilot
  hermes auth add azure --endpoint https://NAME.openai.azure.com
  hermes auth status                        accounts, and what is left of their limits
  hermes auth priority openai-2 0           use this account first
  hermes auth remove openai-1
""")
_ADD_ONE = to_translate("Sign in with: hermes auth add SERVICE")

Service = Annotated[str, Arg("what to sign in with", metavar="SERVICE")]
AccountName = Annotated[str, Arg("an account, such as openai-1", metavar="ACCOUNT")]


class SignInChoice(msgspec.Struct, frozen=True, kw_only=True):
    """A service that somebody can sign in with."""

    name: str
    label: str
    provider: str
    needs: str = ""
    """The option that it can't do without."""
    codex_login: bool = False
    """Whether codex has a login that can be shared."""


class AccountListing(msgspec.Struct, frozen=True, kw_only=True):
    """The accounts, the sign-ins that wait, and what there is to sign in with."""

    accounts: tuple[AccountState, ...]
    pending: tuple[PendingSignIn, ...] = ()
    services: tuple[SignInChoice, ...] = ()

    def view(self, now: float) -> Iterable[Block]:
        for one in self.pending:
            if one.state == "waiting":
                yield line(t("Waiting for {label}:", label=one.label), "warn")
                yield from map(line, one.instructions())
            elif one.sentence:
                yield line(one.sentence, "good" if one.state == "done" else "bad")
        if not self.accounts:
            yield line(t("Nobody is signed in."))
            names = ", ".join(one.name for one in self.services)
            yield line(f"{t.marked(_ADD_ONE)} ({names})", "dim", fit="wrap")
            return
        columns = (
            Column(t("ACCOUNT")),
            Column(t("FOR")),
            Column(t("WHO"), widest=34, shrinks=True),
            Column(t("STATE")),
            Column(t("ORDER"), right=True),
        )
        rows = [_row(one) for one in self.accounts]
        yield table(columns, rows, narrow=((0, 3), (1, 2)))
        yield from self._remarks(now)

    def _remarks(self, now: float) -> Iterable[Block]:
        for one in self.accounts:
            for limit in one.limits:
                age = _age(limit.seen_at, now)
                yield line(f"{one.id}  {limit.sentence(now)}{age}", "dim")
        for one in self.accounts:
            if one.problem:
                yield line(f"{one.id}: {one.problem}", "bad")
                yield line(t("Sign in again: {command}", command=one.command))


class SignInResult(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a sign-in: finished, or waiting for the person."""

    sentence: str
    pending: PendingSignIn | None = None
    hint: str = ""

    def view(self, _now: float) -> Iterable[Block]:
        if self.pending is not None and self.pending.state == "waiting":
            yield from map(line, self.pending.instructions())
        yield line(self.sentence)
        if self.hint:
            yield line(self.hint, "dim")


@command("auth list", scope="admin")
def list_accounts(context: CommandContext) -> AccountListing:
    """List the accounts you are signed in with."""
    sign_ins = _sign_ins(context)
    return _listing(sign_ins, sign_ins.states())


@command("auth status", scope="admin")
async def show_accounts(context: CommandContext) -> AccountListing:
    """Show the accounts and what is left of their limits."""
    sign_ins = _sign_ins(context)
    return _listing(sign_ins, await sign_ins.fresh_states())


@command("auth add", scope="admin")
async def add_account(  # noqa: PLR0913 - the options of the clouds
    context: CommandContext,
    service: Service,
    *,
    endpoint: Annotated[str, "azure: the address of your resource"] = "",
    tenant: Annotated[str, "azure: the tenant, if not the usual one"] = "",
    project: Annotated[str, "vertex: the project, if not the usual one"] = "",
    location: Annotated[str, "vertex: the location (default: global)"] = "",
    region: Annotated[str, "bedrock: the region"] = "",
    profile: Annotated[str, "bedrock: the profile of AWS's settings"] = "",
    token: Annotated[
        bool, "copilot: with a GitHub token that you are asked for"
    ] = False,
    own_login: Annotated[
        bool, "openai: sign in separately instead of sharing codex's login"
    ] = False,
) -> SignInResult:
    """Sign in with an account.

    A link is shown, and a code if the page asks for one. Both also work in a browser on another machine.
    """
    options = SignInOptions(
        endpoint=endpoint,
        tenant=tenant,
        project=project,
        location=location,
        region=region,
        profile=profile,
        token=context.surface.read_secret("GitHub token") if token else "",
        own_login=own_login,
    )
    if context.is_shared:
        return await _begin(context, service, options)
    return await _sign_in(context, service, options)


@command("auth paste", scope="admin")
async def paste_address(
    context: CommandContext,
    address: Annotated[
        str, Arg("the address of the browser's last page", metavar="ADDRESS")
    ],
) -> TextResult:
    """Finish a sign-in by pasting the address of the last page in your browser."""
    try:
        service = _sign_ins(context).paste(address)
    except HermesError as error:
        hint = error.hint_words or t(
            "In a shell, paste it where `hermes auth add` waits."
        )
        raise UsageError(error.words, hint=hint) from error
    return message(
        t("Thank you. {label} is checking it.", label=_service(service).label)
    )


@command("auth refresh", scope="admin")
async def refresh_account(context: CommandContext, account: AccountName) -> TextResult:
    """Renew an account's token now, to check that its login still works."""
    renewed = await _sign_ins(context).refresh(account)
    return message(t("{name} works.", name=renewed.name))


@command("auth priority", scope="admin")
def prefer_account(
    context: CommandContext,
    account: AccountName,
    order: Annotated[int, Arg("0 is used first", metavar="N", at_least=0)],
) -> TextResult:
    """Choose which account is used first; the next takes over when it runs out of credit or requests."""
    changed = _sign_ins(context).prefer(account, order)
    return message(
        t(
            "{name} has place {priority} now.",
            name=changed.name,
            priority=changed.priority,
        )
    )


@command("auth remove", scope="admin")
def remove_account(
    context: CommandContext,
    account: AccountName,
    *,
    yes: Annotated[bool, "don't ask"] = False,
) -> TextResult:
    """Sign out: forget the tokens of an account."""
    sign_ins = _sign_ins(context)
    found = sign_ins.store.require(account)
    if not yes:
        context.confirm(t("Forget {name}?", name=found.name), t("Nothing was changed."))
    sign_ins.remove(found.id)
    shared = t(" codex stays signed in.") if found.kind == "codex" else ""
    return message(t("Forgot {name}.{shared}", name=found.name, shared=shared))


@command(slash="auth action name", role="owner", group="Model", private=True)
async def use_accounts(
    context: CommandContext,
    action: Annotated[
        Literal["list", "status", "add", "paste", "refresh", "remove"],
        Arg("list, status, add, paste, refresh or remove", metavar="ACTION"),
    ] = "list",
    name: Annotated[str, Arg("a service or an account", metavar="NAME")] = "",
) -> AccountListing | SignInResult | TextResult:
    """Sign in with an account; alone: list your accounts."""
    if action == "list":
        return list_accounts.function(context)
    if action == "status":
        return await show_accounts.function(context)
    if not name:
        raise UsageError(
            t("/auth {action} needs a name.", action=action), hint=t("See: /auth list")
        )
    if action == "add":
        return await _begin(context, name, SignInOptions())
    if action == "paste":
        return await paste_address.function(context, name)
    if action == "refresh":
        return await refresh_account.function(context, name)
    return remove_account.function(context, name, yes=True)


def _sign_ins(context: CommandContext) -> "SignIns":
    if context.is_shared:
        return context.app.sign_ins
    from hermes.app.sign_ins import SignIns

    return SignIns(context.home)


def _listing(sign_ins: "SignIns", accounts: tuple[AccountState, ...]) -> AccountListing:
    from hermes.providers.sign_in.services import SERVICES

    has_codex = sign_ins.codex_file() is not None
    return AccountListing(
        accounts=accounts,
        pending=sign_ins.pending(),
        services=tuple(
            SignInChoice(
                name=one.name,
                label=one.label,
                provider=one.provider,
                needs={"azure": "endpoint", "bedrock": "region"}.get(one.name, ""),
                codex_login=has_codex and one.name == "openai",
            )
            for one in SERVICES
        ),
    )


async def _begin(
    context: CommandContext, service: str, options: SignInOptions
) -> SignInResult:
    """Starts a sign-in on a surface where nobody can wait for its end."""
    pending = await context.app.sign_ins.begin(service, options)
    if pending.state != "waiting":
        return _done(pending.service, pending.sentence)
    if context.conversation is not None:
        surface = context.surface

        def tell(end: PendingSignIn) -> None:
            surface.tell(line(end.sentence, "good" if end.state == "done" else "bad"))

        context.app.sign_ins.when_ended(pending.service, tell)
    how = t(" Paste the address with: /auth paste ADDRESS") if pending.can_paste else ""
    return SignInResult(
        sentence=t("Waiting for you.{how}", how=how),
        pending=pending,
        hint=t("See: /auth list"),
    )


async def _sign_in(
    context: CommandContext, service: str, options: SignInOptions
) -> SignInResult:
    """Signs in while the person waits. They may paste the address that their browser was sent to."""
    sign_ins = _sign_ins(context)

    def show(pending: PendingSignIn) -> None:
        context.surface.tell(
            *(line(text, "bold" if not at else "") for at, text in enumerate(pending.instructions())),
            line(t("Waiting for {label} ...", label=pending.label), "dim"),
        )  # fmt: skip
        surface = context.surface
        if pending.can_paste and isinstance(surface, LineReader) and surface.can_read:
            typing.append(asyncio.create_task(_take_pasted(context, surface, sign_ins)))

    typing: list[asyncio.Task[None]] = []
    try:
        account = await sign_ins.add(service, options, show)
    finally:
        await cancel_and_wait(*typing)
    return _done(
        account.service,
        t(
            "Signed in with {label}: {name}.",
            label=_service(account.service).label,
            name=account.name,
        ),
    )


async def _take_pasted(
    context: CommandContext, reader: LineReader, sign_ins: "SignIns"
) -> None:
    """Takes lines that the person types until one is the address of the sign-in."""
    while True:
        text = await reader.read_line()
        try:
            sign_ins.paste(text)
        except HermesError as error:
            context.surface.warn(for_reader(error))
        else:
            return


def _done(service: str, sentence: str) -> SignInResult:
    provider = _service(service).provider
    family = provider_table.family(provider)
    model = family.default_model if family else ""
    return SignInResult(
        sentence=sentence,
        hint=t(
            "Use it with: hermes model pick {provider}:{model}",
            provider=provider,
            model=model,
        ),
    )


def _service(name: str) -> "SignInService":
    from hermes.providers.sign_in.services import find_service

    return find_service(name)


def _row(one: AccountState) -> TableRow:
    looks: dict[str, Look] = {"ok": "good", "shared": "good", "expired": "bad"}
    words = {
        "ok": t("signed in"),
        "shared": t("codex's login"),
        "expired": t("sign in again"),
    }
    state = words[one.state]
    if one.state == "ok" and one.kind in {"azure", "vertex", "bedrock"}:
        state = t("this machine")
    label = provider_table.label_of(one.provider)
    return TableRow(
        (one.id, label, one.label, state, str(one.priority)), looks[one.state]
    )


def _age(seen_at: float, now: float) -> str:
    """How old a limit is, if that matters."""
    is_old = now - seen_at > 7200
    return f" ({t('seen {when}', when=ago(seen_at, now))})" if is_old else ""
