"""The gateways of all profiles: one process for each, kept running by this one.

The processes share nothing but the program: each has its own home, and an environment without the keys of this shell
or of another profile. A gateway that ends is started again, after a longer wait each time. SIGTERM lets all of them
finish their turns.
"""

import asyncio
import contextlib
import logging
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

import msgspec

from hermes.app.profiles import Profiles
from hermes.children.own_python import hermes_command
from hermes.children.piped_child import PipedChild
from hermes.children.process_tree import describe_exit
from hermes.core.ports import Clock
from hermes.errors import HermesError, UsageError, for_reader
from hermes.mcp.environment import handed_on
from hermes.primitives.backoff import Backoff
from hermes.primitives.tasks import BackgroundTasks, run_until_first
from hermes.settings import Home, atomic
from hermes.settings.gateway import GatewaySettings
from hermes.settings.load import load, load_secrets
from hermes.settings.profiles import DEFAULT_PROFILE, PROFILE_VARIABLE
from hermes.settings.secrets import is_secret_name
from hermes.store.leases import this_process
from hermes.surfaces.gateway.registry import configured_platforms
from hermes.surfaces.gateway.status import (
    ProfileGateway,
    ProfileState,
    SupervisorStatus,
    status_path,
)
from hermes.surfaces.terminal.text import one_line
from hermes.text.translation import translator

t = translator(__name__)


log = logging.getLogger("hermes.gateway")

Say: TypeAlias = Callable[[str], None]
_KEPT_VARIABLES = ("HERMES_CACHE", "HERMES_DEBUG")
_FIRST_RETRY_S, _MAX_RETRY_S = 1.0, 60.0
_STABLE_AFTER_S = 60.0
_DRAIN_MARGIN_S = 10.0
_EXIT_TIMEOUT_S = 10.0


def profile_environment(environ: Mapping[str, str], home: Home) -> dict[str, str]:
    """The environment of a profile's process: paths and language of this one, no keys, and its own home."""
    kept = {name: environ[name] for name in _KEPT_VARIABLES if name in environ}
    return {
        **handed_on(environ),
        **kept,
        "HERMES_HOME": str(home.root),
        PROFILE_VARIABLE: home.profile or DEFAULT_PROFILE,
    }


def withheld_variables(environ: Mapping[str, str]) -> list[str]:
    """The keys of this shell, which no profile gets."""
    return sorted(name for name in environ if is_secret_name(name) and environ[name])


class ProfileGateways:
    """Runs the gateways of all profiles that have a platform. `say` shows a line to whoever watches."""

    def __init__(
        self, base: Home, environ: Mapping[str, str], clock: Clock, say: Say
    ) -> None:
        self._base = base
        self._environ = environ
        self._clock = clock
        self._say = say
        self._status = SupervisorStatus(this_process())
        self._stopping = asyncio.Event()
        self._children: dict[str, PipedChild] = {}
        self._readers = BackgroundTasks("reading what a gateway prints")

    async def run(self) -> None:
        """Runs until `stop`, then until every gateway has finished. Raises UsageError if no profile has a platform."""
        homes = {one.name: one.home for one in Profiles(self._base).all()}
        chosen = {name: home for name, home in homes.items() if self._has_platform(name, home)}  # fmt: skip
        if not chosen:
            raise UsageError(
                t("No profile has a platform."),
                hint=t(
                    "Store a token first, such as: hermes --profile NAME config set TELEGRAM_BOT_TOKEN"
                ),
            )
        withheld = withheld_variables(self._environ)
        if withheld:
            self._say(
                t(
                    "Not handed on to the profiles: {withheld}. Each uses its own keys.",
                    withheld=", ".join(withheld),
                )
            )
        self._status.gateways = [ProfileGateway(name) for name in chosen]
        try:
            async with asyncio.TaskGroup() as group:
                for one in self._status.gateways:
                    group.create_task(self._keep_running(one, chosen[one.profile]))
        finally:
            await self._readers.close()
            with contextlib.suppress(OSError):
                status_path(self._base).unlink()

    def stop(self) -> None:
        """Lets every gateway finish its turns and end."""
        self._stopping.set()

    def end(self) -> None:
        """Ends every gateway at once."""
        for child in self._children.values():
            child.end()

    def reload(self) -> None:
        """Lets every gateway read its settings again."""
        for child in self._children.values():
            child.send_signal(signal.SIGHUP)

    def _has_platform(self, name: str, home: Home) -> bool:
        try:
            found = configured_platforms(load({}, home=home), load_secrets({}, home=home), home)  # fmt: skip
        except HermesError as error:
            self._say(f"{name}: not started. {for_reader(error)}")
            return False
        if not found:
            self._say(t("{name}: not started, because it has no platform.", name=name))
        return bool(found)

    async def _keep_running(self, one: ProfileGateway, home: Home) -> None:
        backoff = Backoff(_FIRST_RETRY_S, _MAX_RETRY_S)
        while not self._stopping.is_set():
            began = self._clock.now()
            self._note(one, "running")
            one.ended = await self._run_once(one.profile, home)
            if self._stopping.is_set():
                break
            if self._clock.now() - began > _STABLE_AFTER_S:
                backoff.reset()
            wait_s = backoff.next_s()
            one.restarts += 1
            self._note(one, "waiting")
            text = t(
                "{profile}: the gateway ended ({ended}). It starts again in {wait_s:.0f} s.",
                profile=one.profile,
                ended=one.ended,
                wait_s=wait_s,
            )
            log.warning("%s", text)
            self._say(text)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._stopping.wait()
        self._note(one, "stopped")
        self._say(f"{one.profile}: stopped.")

    async def _run_once(self, profile: str, home: Home) -> str:
        """Runs a gateway to its end, and says how it ended."""
        try:
            child = await PipedChild.start(
                hermes_command("gateway", "run"),
                cwd=Path.home(),
                environment=profile_environment(self._environ, home),
                on_stderr=lambda data: self._show(
                    profile, data.decode(errors="replace")
                ),
            )
        except (OSError, ValueError) as error:
            return t("it can't be started: {error}", error=error)
        self._children[profile] = child
        try:
            self._readers.start(self._read(profile, child))
            await run_until_first(_ended(child), self._stopped(profile, child, home))
            code = child.return_code
            return "stopped" if code is None else describe_exit(code)
        finally:
            self._children.pop(profile, None)
            await child.stop(grace=0)

    async def _stopped(self, profile: str, child: PipedChild, home: Home) -> None:
        """Waits until a gateway that was told to stop has used up its time."""
        await self._stopping.wait()
        child.send_signal(signal.SIGTERM)
        drain_s = _drain_timeout_s(home) + _DRAIN_MARGIN_S
        if await child.wait(drain_s) is None:
            self._say(
                t(
                    "{profile}: did not finish in {drain_s:.0f} s, and was ended.",
                    profile=profile,
                    drain_s=drain_s,
                )
            )

    async def _read(self, profile: str, child: PipedChild) -> None:
        while line := await child.output.readline():
            self._show(profile, line.decode(errors="replace"))

    def _show(self, profile: str, text: str) -> None:
        for line in text.splitlines():
            if line.strip():
                self._say(f"{profile}: {one_line(line)}")

    def _note(self, one: ProfileGateway, state: ProfileState) -> None:
        one.state, one.since = state, self._clock.now()
        path = status_path(self._base)
        self._base.ensure(path.parent)
        atomic.replace(path, msgspec.json.encode(self._status).decode(), mode=0o600)


async def _ended(child: PipedChild) -> None:
    await child.stderr.closed.wait()  # by then the leash has ended everything
    await child.wait(_EXIT_TIMEOUT_S)


def _drain_timeout_s(home: Home) -> float:
    """How long the turns of a gateway may take to finish."""
    try:
        return load({}, home=home).gateway.drain_timeout
    except HermesError:  # it runs with the settings that it had
        return GatewaySettings().drain_timeout


async def serve_profiles(
    base: Home, environ: Mapping[str, str], clock: Clock, say: Say
) -> None:
    """Runs the gateways of all profiles until SIGINT or SIGTERM; a second one ends them at once."""
    loop = asyncio.get_running_loop()
    gateways = ProfileGateways(base, environ, clock, say)

    def stop() -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
            loop.add_signal_handler(number, gateways.end)
        gateways.stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    loop.add_signal_handler(signal.SIGHUP, gateways.reload)
    await gateways.run()
