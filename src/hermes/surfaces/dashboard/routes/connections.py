"""Connecting a model from the page: with a key or a sign-in, the user's own server, or a local model.

Everything here needs the scope `admin`. A key comes in a body, is tried, and is never sent back; a service is tried
before it is saved, and no redirect is followed. An address that a person types is called only if it is neither a
cloud's metadata service nor another link-local one.
"""

import asyncio
import ipaddress
import logging
import threading
from contextlib import closing
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from hermes.app.connections import (
    OWN,
    Connection,
    OfferedModel,
    advice_for,
    check_service,
    has_codex_login,
    key_variable_of,
    known_service,
    list_models,
    locate,
    name_for_address,
    possible_addresses,
    save,
    small_context,
    try_model,
    use_codex_login,
)
from hermes.app.model_sources import (
    LocalOffer,
    choose_download,
    find_files,
    local_offers,
    pinned_models,
)
from hermes.errors import HermesError, UsageError, for_reader
from hermes.providers import provider_table
from hermes.providers.embedded import (
    KnownModel,
    fetch,
    known_models,
    model_hub,
    models_folder,
)
from hermes.providers.key_recognition import RecognisedKey, recognise
from hermes.providers.local_model import display_name
from hermes.providers.metadata_addresses import leads_to_own_network
from hermes.providers.routing import EMBEDDED
from hermes.providers.server_discovery import LocalServer, find_local_servers
from hermes.settings import Home
from hermes.settings.load import environment, load, load_secrets
from hermes.surfaces.dashboard.dashboard import Dashboard
from hermes.surfaces.web.endpoint import Endpoint, EndpointCall
from hermes.text.translation import shown_reason, to_translate, translator

t = translator(__name__)


log = logging.getLogger("hermes.dashboard")

CODEX = "codex"
_MAX_BODY_BYTES = 16_384
_UNCHANGED = to_translate("Nothing was changed.")

Key = Annotated[str, Meta(max_length=8192)]
Name = Annotated[str, Meta(max_length=400)]
Address = Annotated[str, Meta(max_length=2000)]


class KnownProvider(msgspec.Struct, frozen=True, kw_only=True):
    """A provider that Hermes knows, and whether its key is set."""

    name: str
    label: str
    key_variable: str
    key_set: bool


class ConnectionChoices(msgspec.Struct, frozen=True, kw_only=True):
    """What a key can belong to, and whether codex's sign-in can be used."""

    providers: list[KnownProvider]
    codex_login: bool


class RunningServers(msgspec.Struct, frozen=True):
    servers: tuple[LocalServer, ...]


class LocalModelOffers(msgspec.Struct, frozen=True, kw_only=True):
    """The local models to choose from; `reason` says why the one to download was chosen."""

    offers: tuple[LocalOffer, ...]
    reason: str


class TryBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A service to try. Without a provider and an address, the shape of the key decides whose it is."""

    key: Key = ""
    provider: Name = ""
    base_url: Address = ""


class TriedService(msgspec.Struct, frozen=True, kw_only=True):
    """The models of a service; or, if the shape of the key does not tell whose it is, who it may belong to."""

    provider: str = ""
    label: str = ""
    base_url: str = ""
    models: tuple[OfferedModel, ...] = ()
    candidates: tuple[KnownProvider, ...] = ()


class ConnectBody(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True
):
    """What should answer. `force` saves it although it did not answer."""

    provider: Name
    model: Name = ""
    key: Key = ""
    base_url: Address = ""
    force: bool = False


class ConnectedService(msgspec.Struct, frozen=True, kw_only=True):
    """What answers from the next turn on."""

    sentence: str
    notes: tuple[str, ...] = ()


class DownloadBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: Name


class DownloadState(msgspec.Struct, frozen=True, kw_only=True):
    """A download of a local model. `name` is empty if there was none."""

    name: str = ""
    running: bool = False
    done: int = 0
    total: int = 0
    bytes_per_second: float = 0.0
    seconds_left: float | None = None
    source: str = ""
    problem: str = ""
    is_stopped: bool = False


class WeightsDownload:
    """One download in a thread of its own; the next one waits for its end."""

    def __init__(self, home: Home) -> None:
        self.state = DownloadState()
        self._home = home
        self._starting = threading.Lock()
        self._stop = threading.Event()

    def start(self, name: str) -> DownloadState:
        """Starts a download, or returns the state of the one that runs."""
        entry = known_models(load(home=self._home).local_models).get(name)
        if entry is None:
            raise UsageError(
                t("There is no local model {name!r}.", name=name),
                hint=t.marked(_UNCHANGED),
            )
        with self._starting:
            if self.state.running:
                return self.state
            started = self.state = DownloadState(name=name, running=True)
            self._stop.clear()
        threading.Thread(
            target=self._run, args=(entry,), daemon=True, name="downloading a model"
        ).start()
        return started

    def stop(self) -> DownloadState:
        """Stops it at the next step. What came so far is kept."""
        self._stop.set()
        return self.state

    def _run(self, entry: KnownModel) -> None:
        """Downloads; whatever goes wrong, the state says so and no longer says that it runs."""
        problem, is_stopped = "", False
        try:
            is_stopped = not self._fetch(entry)
        except HermesError as error:
            problem = for_reader(error)
            problem = problem[:1].upper() + problem[1:]
        except Exception as error:
            log.exception("the download of %s failed", entry.id)
            problem = t("The download failed: {error}", error=error)
        self.state = msgspec.structs.replace(
            self.state, running=False, problem=problem, is_stopped=is_stopped
        )

    def _fetch(self, entry: KnownModel) -> bool:
        """Downloads until the end, or until somebody stops it. Returns whether all of it is there."""
        environ = environment()
        folder = models_folder(environ, Path.home())
        with closing(fetch(entry, folder, hub=model_hub(environ))) as steps:
            for step in steps:
                if self._stop.is_set():
                    return False
                self.state = msgspec.structs.replace(
                    self.state,
                    done=step.done,
                    total=step.total,
                    bytes_per_second=step.bytes_per_second,
                    seconds_left=step.seconds_left or None,
                    source=step.notice or shown_reason(step.source),
                )
        return True


class ConnectionRoutes:
    """Handlers over one dashboard."""

    def __init__(self, dashboard: Dashboard) -> None:
        self._board = dashboard
        self._home = dashboard.app.home
        self._download = WeightsDownload(self._home)

    def endpoints(self) -> list[Endpoint]:
        base = "/api/connections"
        return [
            Endpoint("GET", base, "admin", self.choices, answer=ConnectionChoices),
            Endpoint("GET", f"{base}/servers", "admin", self.servers, answer=RunningServers),
            Endpoint("GET", f"{base}/local", "admin", self.local, answer=LocalModelOffers),
            Endpoint(
                "POST", f"{base}/try", "admin", self.try_service,
                body=TryBody, answer=TriedService, max_body_bytes=_MAX_BODY_BYTES,
            ),
            Endpoint(
                "POST", base, "admin", self.connect,
                body=ConnectBody, answer=ConnectedService, max_body_bytes=_MAX_BODY_BYTES,
            ),
            Endpoint("GET", f"{base}/download", "admin", self.download, answer=DownloadState),
            Endpoint(
                "POST", f"{base}/download", "admin", self.start_download,
                body=DownloadBody, answer=DownloadState,
            ),
            Endpoint("DELETE", f"{base}/download", "admin", self.stop_download, answer=DownloadState),
        ]  # fmt: skip

    def choices(self) -> ConnectionChoices:
        """The providers, which keys are set, and whether codex is signed in. Never a key."""
        every = [one.family for one in provider_table.FAMILIES if one.takes_key]
        return ConnectionChoices(
            providers=self._known(every), codex_login=has_codex_login(self._home)
        )

    async def servers(self) -> RunningServers:
        """The model servers that run on the dashboard's machine, at their usual ports."""
        return RunningServers(await find_local_servers(environment()))

    def local(self) -> LocalModelOffers:
        """The local models: files on the disk, and what fits this machine."""
        choice = choose_download()
        offers = local_offers(find_files(), choice, pinned_models(self._home))
        return LocalModelOffers(offers=offers, reason=choice.reason)

    async def try_service(self, call: EndpointCall) -> TriedService:
        """Tries a key or an address and lists the models there. Nothing is saved."""
        body: TryBody = call.body
        provider, key = body.provider, body.key.strip()
        if key:
            found = _recognised(key)
            key = found.key
            if not provider and not body.base_url:
                if len(found.providers) != 1:
                    return TriedService(
                        candidates=tuple(self._known(found.providers or _keyed()))
                    )
                provider = found.providers[0]
        connection = await self._connection(provider, body.base_url, key)
        with advice_for(connection):
            if connection.is_custom:
                connection, models = await locate(connection, self._home)
            else:
                models = await list_models(connection, self._home)
        return TriedService(
            provider=connection.provider,
            label=connection.label,
            base_url=connection.base_url,
            models=models,
        )

    async def connect(self, call: EndpointCall) -> ConnectedService:
        """Makes a model answer from the next turn on. It is tried first."""
        body: ConnectBody = call.body
        if body.provider == CODEX:
            first, *rest = await use_codex_login(self._home)
            return await self._connected(first, tuple(rest))
        warnings: tuple[str, ...] = ()
        if body.provider == EMBEDDED:
            connection = await asyncio.to_thread(self._local_connection, body.model)
        else:
            key = _recognised(body.key).key if body.key.strip() else ""
            connection = await self._connection(body.provider, body.base_url, key)
            connection = connection.at_model(body.model)
            if not body.force:
                with advice_for(connection):
                    await try_model(connection, self._home)
                facts = await small_context(connection, self._home)
                warnings = (facts.warning(), facts.advice()) if facts else ()
        notes = await asyncio.to_thread(save, connection, self._home)
        who = f"{connection.label} {body.model}".strip()
        if body.provider == EMBEDDED:
            who = display_name(body.model)
        sentence = (
            t(
                "{who} is used from the next message on. It has not answered yet.",
                who=who,
            )
            if body.force
            else t("{who} answers from the next message on.", who=who)
        )
        return await self._connected(sentence, (*notes, *warnings))

    def download(self) -> DownloadState:
        """How the download of a local model is going."""
        return self._download.state

    def start_download(self, call: EndpointCall) -> DownloadState:
        """Downloads a local model."""
        return self._download.start(call.body.name)

    def stop_download(self) -> DownloadState:
        """Stops the download. What came so far is kept."""
        return self._download.stop()

    async def _connected(
        self, sentence: str, notes: tuple[str, ...]
    ) -> ConnectedService:
        await self._board.use_changed_model()
        return ConnectedService(sentence=sentence, notes=notes)

    async def _connection(self, provider: str, base_url: str, key: str) -> Connection:
        """The service that a request names. A key that is stored goes only to its own provider's address."""
        if not base_url:
            return known_service(provider, key=key)
        family = provider_table.family(provider) if provider else None
        if family is not None and not family.needs_key and _is_loopback(base_url):
            return Connection(provider=family.family, base_url=base_url)
        for address in possible_addresses(base_url):
            check_service(OWN, address, "")
            await asyncio.to_thread(_require_allowed, address)
        name = await asyncio.to_thread(name_for_address, base_url, self._home)
        return Connection(
            provider=name,
            base_url=base_url,
            key=key,
            key_variable=key_variable_of(name) if key else "",
            is_custom=True,
        )

    def _local_connection(self, name: str) -> Connection:
        """A local model that was offered: a known one that is here, or a file of another program."""
        pinned = pinned_models(self._home)
        offers = local_offers(find_files(), choose_download(), pinned)
        if not any(one.name == name and one.is_here for one in offers):
            raise UsageError(
                t("That local model is not on this machine."),
                hint=t(
                    "{unchanged} Download it first.", unchanged=t.marked(_UNCHANGED)
                ),
            )
        return Connection(provider=EMBEDDED, model=name)

    def _known(self, names: tuple[str, ...] | list[str]) -> list[KnownProvider]:
        secrets = load_secrets(home=self._home)
        found = (provider_table.family(name) for name in names)
        return [
            KnownProvider(
                name=one.family,
                label=one.label,
                key_variable=one.key_variable,
                key_set=secrets.get(one.key_variable) is not None,
            )
            for one in found
            if one is not None
        ]


def _recognised(key: str) -> RecognisedKey:
    """The key in what was pasted. Raises UsageError if there is none: a stored key must not stand in for it unseen."""
    found = recognise(key)
    if found.problem:
        raise UsageError(found.problem, hint=t.marked(_UNCHANGED))
    return found


def _keyed() -> list[str]:
    return [one.family for one in provider_table.FAMILIES if one.takes_key]


def _is_loopback(base_url: str) -> bool:
    host = urlsplit(base_url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _require_allowed(base_url: str) -> None:
    """Refuses addresses where no model server is, but a cloud keeps the machine's credentials."""
    if leads_to_own_network(base_url):
        raise UsageError(
            t(
                "Hermes does not call that address: it belongs to the machine's own network."
            ),
            hint=t(
                "{unchanged} A model server has an address of its own.",
                unchanged=t.marked(_UNCHANGED),
            ),
        )
