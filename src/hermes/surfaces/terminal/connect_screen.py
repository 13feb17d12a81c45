"""The screens that connect a model: a key or a sign-in, the user's own server, or a small local model.

The first run, `hermes setup` and `/setup` show them. Going back leads to the screen before; nothing is saved that was not
tried first, or that the person wants in spite of a failure.
"""

from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

import msgspec

from hermes.app.connections import (
    Connection,
    OfferedModel,
    advice_for,
    key_variable_of,
    known_service,
    list_models,
    local_service,
    locate,
    name_for_address,
    offered,
    save,
    small_context,
    try_model,
    use_codex_login,
)
from hermes.app.model_sources import (
    LocalOffer,
    ModelSources,
    local_offers,
    pinned_models,
)
from hermes.errors import HermesError, ModelError, for_reader
from hermes.providers import provider_table
from hermes.providers.embedded import size_text
from hermes.providers.key_recognition import recognise
from hermes.providers.routing import EMBEDDED
from hermes.providers.server_discovery import LocalServer
from hermes.settings import Home
from hermes.settings.load import load_secrets
from hermes.surfaces.terminal.menus import MenuItem, Menus, MenuText
from hermes.surfaces.terminal.signals import interruptible
from hermes.surfaces.terminal.stderr_message import remark
from hermes.text.translation import to_translate, translator

t = translator(__name__)

_Found = TypeVar("_Found")
_WELCOME = to_translate("Welcome to Hermes. What should answer?")
_QUESTION = to_translate("What should answer?")
_PASTE = to_translate("Paste your API key")
_PASTE_INTRO = to_translate(
    "It stays hidden, and is sent only to the provider that it belongs to."
)
_KEY_OR_ACCOUNT = to_translate("Use an API key or an account")
_SIGN_IN = to_translate("Sign in with an account, no key")
_SIGN_IN_DETAIL = to_translate(
    "ChatGPT, OpenRouter, GitHub Copilot, Grok, Nous Portal, Azure, Google or AWS."
)
_ADDRESS = to_translate("Another address")
_LOCAL_INTRO = to_translate(
    "It runs on this machine, needs no account and sends nothing anywhere."
    " It makes more mistakes than a large one."
)
_NO_MODELS = to_translate(
    "{server} is running but has no models yet. Add one there first, such as: ollama pull qwen3"
)


class ConnectedModel(msgspec.Struct, frozen=True):
    """What answers from now on, and what the person should know about it."""

    sentence: str
    notes: tuple[str, ...] = ()


_Way = tuple[MenuItem, Callable[[], ConnectedModel | None]]
"""A choice and what it does."""


class ConnectScreen:
    """Asks with `menus` and saves to `home`."""

    def __init__(self, menus: Menus, home: Home, *, verbose: bool = False) -> None:
        self._menus = menus
        self._home = home
        self._verbose = verbose
        self._sources = ModelSources(home)
        self._pasted = ""

    def run(self, *, is_first_run: bool) -> ConnectedModel | None:
        """Returns what was connected; None if the person went back from the first of three choices."""
        text = MenuText(
            title=t.marked(_WELCOME if is_first_run else _QUESTION),
            is_first=is_first_run,
        )
        items = (
            MenuItem(t.marked(_KEY_OR_ACCOUNT), self._about_keys),
            MenuItem(t("Use a server of your own"), self._about_servers),
            MenuItem(t("Use a small local model, no account"), self._about_local),
        )
        sources = self._sources
        updates = (sources.servers, sources.files, sources.choice, sources.codex)
        ways = (self._key_or_account, self._server, self._local_model)
        choose, paste = self._menus.choose, self._take_paste
        while (chosen := choose(text, items, updates, paste)) is not None:
            if (connected := ways[chosen]()) is not None:
                remark(connected.sentence)
                for note in connected.notes:
                    remark(note)
                return connected
            text = msgspec.structs.replace(text, start=chosen)
        return None

    def _about_keys(self) -> str:
        if _done(self._sources.codex):
            codex = t("Or use Codex's sign-in: codex is on this machine.")
            return f"{_known_providers()} {codex}"
        return _known_providers()

    def _about_servers(self) -> str:
        servers = _done(self._sources.servers)
        if servers is None:
            return t(
                "Looking for Ollama, LM Studio, llama.cpp and vLLM on this machine ..."
            )
        if not servers:
            return t(
                "Ollama, LM Studio, llama.cpp, vLLM or any address. No server was found on this machine."
            )
        running = (
            t(
                "{label} ({count:,} model)",
                "{label} ({count:,} models)",
                count=len(one.models),
                label=one.label,
            )
            for one in servers
        )
        return t("Running on this machine: {servers}.", servers=", ".join(running))

    def _about_local(self) -> str:
        choice, files = _done(self._sources.choice), _done(self._sources.files)
        if choice is None or files is None:
            return t("Nothing leaves this machine. Looking for one that fits ...")
        best = local_offers((), choice)[0]
        words = f"{best.label}. {best.detail} {t('Nothing leaves this machine.')}"
        if files:
            found = t("{count:,} model file", "{count:,} model files", count=len(files))
            return t(
                "{found} of other programs can be used. Or {words}",
                found=found,
                words=words,
            )
        return words

    # A key, or an account

    def _key_or_account(self) -> ConnectedModel | None:
        """Offers to paste a key or sign in, and what is on this machine already."""
        if self._pasted and (connected := self._paste_key()) is not None:
            return connected
        ways = self._key_and_account_ways()
        items = [item for item, _ in ways]
        text = MenuText(title=t.marked(_KEY_OR_ACCOUNT))
        choose, paste = self._menus.choose, self._take_paste
        while (chosen := choose(text, items, (), paste)) is not None:
            if (connected := ways[chosen][1]()) is not None:
                return connected
            text = msgspec.structs.replace(text, start=chosen)
        return None

    def _take_paste(self, text: str) -> int | None:
        """Keeps a key that was pasted onto a menu. Returns the first choice, which leads to the screen for keys."""
        if recognise(text).problem:
            return None
        self._pasted = text
        return 0

    def _key_and_account_ways(self) -> list[_Way]:
        ways: list[_Way] = [
            (MenuItem(t.marked(_PASTE), _known_providers), self._paste_key),
            (
                MenuItem(t.marked(_SIGN_IN), lambda: t.marked(_SIGN_IN_DETAIL)),
                self._account,
            ),
        ]
        if _done(self._sources.codex) is True:
            about = t("Codex runs your turns with its account.")
            item = MenuItem(t("Use Codex's sign-in"), lambda: about)
            ways.append((item, self._sign_in))
        secrets = load_secrets(home=self._home)
        ways.extend(
            self._stored_key(family)
            for family in provider_table.FAMILIES
            if family.takes_key and secrets.get(family.key_variable)
        )
        return ways

    def _stored_key(self, family: provider_table.Quirks) -> _Way:
        about = t("{key_variable} is set already.", key_variable=family.key_variable)
        item = MenuItem(t("Use {name}", name=family.label), lambda: about)
        return item, lambda: self._connect(known_service(family.family))

    def _sign_in(self) -> ConnectedModel | None:
        lines, problem = self._attempt(
            t("Switching to codex"), use_codex_login(self._home)
        )
        if lines is None:
            self._menus.choose(
                MenuText(title=t("Codex can't be used"), problem=problem),
                [MenuItem(t("Go back"))],
            )
            return None
        return ConnectedModel(lines[0], lines[1:])

    def _paste_key(self, problem: str = "") -> ConnectedModel | None:
        """Asks for a key until one works or the person goes back."""
        while True:
            text = MenuText(
                title=t.marked(_PASTE), intro=t.marked(_PASTE_INTRO), problem=problem
            )
            pasted, self._pasted = self._pasted, ""
            pasted = pasted or self._menus.read_line(
                text, secret=True, remark=_key_comment
            )
            if pasted is None:
                return None
            found = recognise(pasted)
            problem = found.problem
            if problem:
                continue
            provider = self._provider(found.providers)
            if not provider:
                continue
            connection = known_service(provider, key=found.key)
            models, problem = self._attempt(
                f"Trying {connection.label}", self._models(connection)
            )
            if models is None:
                continue
            if (connected := self._pick_model(connection, models)) is not None:
                return connected

    def _provider(self, candidates: Sequence[str]) -> str:
        """Returns whose key it is. Asks if its shape does not tell; empty to go back."""
        if len(candidates) == 1:
            return candidates[0]
        every = [one.family for one in provider_table.FAMILIES if one.takes_key]
        if candidates:
            items = [MenuItem(provider_table.label_of(one)) for one in candidates]
            items.append(MenuItem(t("Another provider")))
            title = t("Several providers use keys like this one. Which is it from?")
            chosen = self._menus.choose(MenuText(title=title), items)
            if chosen is None:
                return ""
            if chosen < len(candidates):
                return candidates[chosen]
        labels = {provider_table.label_of(one): one for one in every}
        picked = self._menus.search(
            MenuText(title=t("Which provider is the key from?")),
            [MenuItem(one) for one in labels],
        )
        return labels.get(picked or "", "")

    # An account

    def _account(self) -> ConnectedModel | None:
        """Signs in, and lets the person pick one of the account's models."""
        from hermes.surfaces.terminal.account_screen import AccountScreen

        screen = AccountScreen(self._menus, self._home)
        while provider := screen.run():
            if (connected := self._connect_account(provider)) is not None:
                return connected
        return None

    def _connect_account(self, provider: str) -> ConnectedModel | None:
        connection = known_service(provider)
        models, problem = self._attempt(
            f"Trying {connection.label}", self._models(connection)
        )
        if models is None and problem:
            failed = MenuText(
                title=t("{label} can't be used", label=connection.label),
                problem=problem,
            )
            self._menus.choose(failed, [MenuItem(t("Go back"))])
        return None if models is None else self._pick_model(connection, models)

    # A server of one's own

    def _server(self) -> ConnectedModel | None:
        problem = ""
        while True:
            servers = (
                self._wait_for(t("Looking for servers"), self._sources.servers) or ()
            )
            if not servers:
                return self._typed_address()
            items = [_server_item(one) for one in servers]
            items.append(
                MenuItem(
                    t.marked(_ADDRESS), lambda: t("Such as http://192.168.1.5:8000/v1")
                )
            )
            text = MenuText(title=t("Which server?"), problem=problem)
            chosen = self._menus.choose(text, items)
            if chosen is None:
                return None
            problem = ""
            if chosen == len(servers):
                connected = self._typed_address()
            elif servers[chosen].models:
                connected = self._local_server(servers[chosen])
            else:
                connected, problem = (
                    None,
                    t.marked(_NO_MODELS, server=servers[chosen].label),
                )
            if connected is not None:
                return connected

    def _local_server(self, server: LocalServer) -> ConnectedModel | None:
        sizes = {one.name: one.size for one in server.models}
        names = [
            msgspec.structs.replace(one, is_usual=False) for one in offered(list(sizes))
        ]
        return self._pick_model(local_service(server), tuple(names), sizes)

    def _typed_address(self) -> ConnectedModel | None:
        """Asks for an address, and for a key if the server there wants one."""
        problem, typed = "", ""
        while True:
            text = MenuText(
                title=t("The address of your server"),
                intro=t(
                    "Such as http://localhost:8000/v1; any server that speaks OpenAI's protocol."
                ),
                problem=problem,
            )
            read = self._menus.read_line(text, typed=typed)
            if read is None:
                return None
            typed = read
            try:
                name = name_for_address(typed, self._home)
            except HermesError as error:
                problem = for_reader(error)
                continue
            connection = Connection(provider=name, base_url=typed, is_custom=True)
            found, problem = self._reach(connection)
            if found is None:
                continue
            if (connected := self._pick_model(*found)) is not None:
                return connected

    def _reach(
        self, connection: Connection
    ) -> tuple[tuple[Connection, tuple[OfferedModel, ...]] | None, str]:
        """Finds the service behind an address, with a key if it wants one."""
        try:
            with advice_for(connection):
                found = self._menus.wait(
                    f"Trying {connection.base_url}", locate(connection, self._home)
                )
        except ModelError as error:
            if error.reason != "auth":
                return None, for_reader(error)
            rejected = error.message if connection.key else ""
        except HermesError as error:
            return None, for_reader(error)
        else:
            return found, ""
        text = MenuText(
            title=t("The server asks for a key"),
            intro=t.marked(_PASTE_INTRO),
            problem=rejected,
        )
        pasted = self._menus.read_line(text, secret=True)
        if pasted is None:
            return None, ""
        again = msgspec.structs.replace(
            connection,
            key=recognise(pasted).key or pasted,
            key_variable=key_variable_of(connection.provider),
        )
        return self._reach(again)

    # A local model

    def _local_model(self) -> ConnectedModel | None:
        problem = ""
        while True:
            choice = self._wait_for(
                t("Looking for a model that fits"), self._sources.choice
            )
            files = self._wait_for(t("Looking for model files"), self._sources.files)
            if choice is None:
                return None
            offers = local_offers(files or (), choice, pinned_models(self._home))
            text = MenuText(
                title=t("Which local model?"),
                intro=t.marked(_LOCAL_INTRO),
                problem=problem,
            )
            items = [MenuItem(one.label, lambda one=one: one.detail) for one in offers]
            chosen = self._menus.choose(text, items)
            if chosen is None:
                return None
            connected, problem = self._use_local(offers[chosen])
            if connected is not None:
                return connected

    def _use_local(self, offer: LocalOffer) -> tuple[ConnectedModel | None, str]:
        """Downloads the model if needed, or tries a file of another program."""
        connection = Connection(provider=EMBEDDED, model=offer.name)
        if not offer.is_here:
            problem = self._download(offer)
            if problem:
                return None, problem
        elif "/" in offer.name:
            seconds, problem = self._attempt(
                f"Trying {offer.label}", try_model(connection, self._home)
            )
            if seconds is None:
                return None, problem
        return self._saved(
            connection, t("{label} answers, on this machine.", label=offer.label)
        ), ""

    def _download(self, offer: LocalOffer) -> str:
        """Downloads with a progress bar. Returns what went wrong; empty if nothing did."""
        from hermes.surfaces.terminal.weights_download import fetch_weights

        choice = self._sources.choice.result()
        is_choice = choice.entry.id == offer.name
        try:
            with interruptible():
                fetch_weights(
                    offer.name,
                    agreed=True,
                    verbose=self._verbose,
                    choice=choice if is_choice else None,
                )
        except KeyboardInterrupt:
            return t("The download was stopped. What came so far is kept.")
        except HermesError as error:
            return for_reader(error)
        return ""

    # Of all three

    def _connect(self, connection: Connection) -> ConnectedModel | None:
        models, problem = self._attempt(
            f"Trying {connection.label}", self._models(connection)
        )
        if models is None:
            return self._paste_key(problem) if problem else None
        return self._pick_model(connection, models)

    def _pick_model(
        self,
        connection: Connection,
        models: tuple[OfferedModel, ...],
        sizes: dict[str, int] | None = None,
    ) -> ConnectedModel | None:
        """Lets the person pick, and tries what was picked."""
        family = provider_table.family(connection.provider)
        usual = family.default_model if family else ""
        listed = models or offered([usual] if usual else [], usual)
        items = [_model_item(one, (sizes or {}).get(one.name, 0)) for one in listed]
        problem = ""
        while True:
            text = MenuText(
                title=t("Which model from {label}?", label=connection.label),
                problem=problem,
            )
            name = self._menus.search(text, items)
            if name is None:
                return None
            chosen = connection.at_model(name)
            warnings, problem = self._attempt(f"Trying {name}", self._try(chosen))
            if warnings is not None:
                sentence = f"{connection.label} {name} answers."
                return self._saved(chosen, sentence, *warnings)
            if problem and self._keeps(name, problem):
                sentence = t(
                    "Saved {label} {name}, which has not answered yet.",
                    label=connection.label,
                    name=name,
                )
                return self._saved(chosen, sentence)

    async def _models(self, connection: Connection) -> tuple[OfferedModel, ...]:
        with advice_for(connection):
            return await list_models(connection, self._home)

    async def _try(self, connection: Connection) -> tuple[str, ...]:
        """Tries the model. Returns what the person should know about its server. Raises HermesError if it can't answer."""
        with advice_for(connection):
            await try_model(connection, self._home)
        facts = await small_context(connection, self._home)
        if facts is None:
            return ()
        return (facts.warning(), facts.advice())

    def _keeps(self, name: str, problem: str) -> bool:
        text = MenuText(title=t("{name} did not answer", name=name), problem=problem)
        items = [MenuItem(t("Choose another model")), MenuItem(t("Use it anyway"))]
        return self._menus.choose(text, items) == 1

    def _saved(
        self, connection: Connection, sentence: str, *warnings: str
    ) -> ConnectedModel:
        notes = (*save(connection, self._home), *warnings)
        return ConnectedModel(
            f"{sentence} {t('To change it: /model or hermes setup')}",
            notes,
        )

    def _attempt(
        self, words: str, work: Coroutine[Any, Any, _Found]
    ) -> tuple[_Found | None, str]:
        """Runs the work. Returns its result, or what went wrong; neither if the person gave up."""
        try:
            return self._menus.wait(words, work), ""
        except HermesError as error:
            return None, for_reader(error)

    def _wait_for(self, words: str, future: "Future[_Found]") -> _Found | None:
        """Returns the result of a search, which may still be running; None if it failed or the person gave up."""
        import asyncio

        async def result() -> _Found:
            return await asyncio.wrap_future(future)

        if future.done():
            return _done(future)
        try:
            return self._menus.wait(words, result())
        except HermesError:
            return None


def _done(future: "Future[_Found]") -> _Found | None:
    """The result of a search that is over; None while it runs, or if it failed."""
    if future.done() and future.exception() is None:
        return future.result()
    return None


def _known_providers() -> str:
    return t("From Anthropic, OpenAI, OpenRouter, Google or another provider.")


def _key_comment(pasted: str) -> str:
    """Comments on a key while it is being pasted."""
    if not pasted:
        return ""
    found = recognise(pasted)
    if found.problem or not found.providers:
        return found.problem or t(
            "Hermes does not recognise this key; you can name its provider."
        )
    labels = [provider_table.label_of(one) for one in found.providers]
    return t("This looks like a key from {providers}.", providers=" or ".join(labels))


def _server_item(server: LocalServer) -> MenuItem:
    names = [one.name for one in server.models]
    more = t(" and {count:,} more", count=len(names) - 3) if len(names) > 3 else ""
    about = f"{', '.join(names[:3])}{more}" if names else t("no models yet")
    return MenuItem(server.label, lambda: about)


def _model_item(model: OfferedModel, size: int) -> MenuItem:
    usual = t("the usual one") if model.is_usual else ""
    known = size_text(size) if size else model.facts
    about = " · ".join(word for word in (known, usual) if word)
    return MenuItem(model.name, lambda: about)
