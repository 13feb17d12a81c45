"""Switches codex on and off and shows its status, for `/codex-runtime` and `hermes codex`. A change takes effect with the
next session, never in the middle of a turn."""

import asyncio
import tempfile
from collections.abc import Mapping
from pathlib import Path

import msgspec

from hermes.codex import codex_config, config_block
from hermes.codex.binary import (
    find_codex,
    how_to_get_codex,
    parse_version,
    preflight,
    require_codex,
    run_once,
    version_warning,
)
from hermes.codex.client import Client, CodexLaunch, CodexListener
from hermes.codex.engine_choice import ON, is_on
from hermes.codex.environment import child_environment, codex_home, named_variables
from hermes.codex.failures import CodexFailed, CodexRefused
from hermes.errors import SettingsError
from hermes.settings import Home, Settings
from hermes.settings.edit import set_value, unset_value
from hermes.settings.load import read_text
from hermes.text.translation import shown_reason, to_translate, translator

t = translator(__name__)

KEY = "model.openai_runtime"
_NEXT = to_translate("It takes effect with the next session.")
WORDS: Mapping[str, str] = {
    "on": "on", "codex_app_server": "on", "codex": "on",
    "off": "off", "auto": "off", "native": "off",
    "status": "status", "": "status",
}  # fmt: skip
"""The arguments of `/codex-runtime`, and what each means."""


class SwitchContext(msgspec.Struct, frozen=True, kw_only=True):
    """The dependencies of a switch."""

    home: Home
    settings: Settings
    environ: Mapping[str, str]
    tool_server: tuple[str, ...] = ()
    """The command of Hermes' tool server."""

    @property
    def codex_home(self) -> Path:
        return codex_home(self.environ, self.settings.codex.home)

    @property
    def config(self) -> Path:
        """Codex's own settings."""
        return self.codex_home / "config.toml"

    def environment(self) -> dict[str, str]:
        """Returns the environment that codex is started with."""
        return child_environment(
            self.environ,
            codex_home=self.settings.codex.home,
            named=named_variables(self.config),
        )


class SwitchOutcome(msgspec.Struct, frozen=True):
    """What was done, one sentence per line; `diff` is the change of codex's config.toml."""

    lines: tuple[str, ...]
    diff: str = ""


class CodexStatus(msgspec.Struct, frozen=True):
    """The status of codex on this machine."""

    on: bool
    program: str = ""
    version: str = ""
    warning: str = ""
    signed_in: bool | None = None
    config: str = ""
    migrated: bool = False
    complaint: str = ""
    """Codex's objection to its configuration."""
    hint: str = ""

    def lines(self) -> tuple[str, ...]:
        """Returns the status as lines for a person."""
        engine = "codex" if self.on else "Hermes"
        version = self.version or t("version unknown")
        found = f"{self.program} ({version})"
        if not self.program:
            found = t("not found. {hint}", hint=shown_reason(self.hint))
        logins = {None: t("unknown"), True: t("yes"), False: t("no. Run: codex login")}
        config = t("Codex settings: {path}, without Hermes' block", path=self.config)
        if self.migrated:
            config = t("Codex settings: {path}, with Hermes' block", path=self.config)
        extra = (shown_reason(text) for text in (self.warning, self.complaint) if text)
        return (
            t("Engine of new sessions: {engine}", engine=engine),
            t("Codex program: {found}", found=found),
            t("Signed in: {login}", login=logins[self.signed_in]),
            config,
            *extra,
        )


async def enable(place: SwitchContext, *, dry_run: bool = False) -> SwitchOutcome:
    """Switches codex on. Raises CodexGone without a codex program, SettingsError if its config.toml can't be changed."""
    program = require_codex(place.environ, place.settings.codex.binary)
    ran = await run_once(program, ("--version",), place.environment())
    warning = version_warning(parse_version(ran.out))
    plugins, missed = await _plugins(place, program)
    wanted = codex_config.BlockContents(
        servers=place.settings.mcp_servers,
        tool_server=place.tool_server,
        plugins=plugins,
    )
    planned = codex_config.plan(place.config, wanted)
    complaint = await _objection(place, program, planned)
    notes = [
        shown_reason(note)
        for note in (warning, missed, complaint, *planned.unmapped)
        if note
    ]
    if dry_run:
        return SwitchOutcome(
            (t("Nothing was changed. This would be written:"), *notes), planned.diff
        )
    set_value(place.home.ensure().config, KEY, ON)
    try:
        written = codex_config.write(planned)
    except SettingsError:
        unset_value(place.home.config, KEY)
        raise
    done = t("Codex now runs your turns ({program}).", program=program)
    told = t("{path} has Hermes' block already.", path=place.config)
    if written:
        told = t("{path} has Hermes' block.", path=place.config)
    return SwitchOutcome((f"{done} {t.marked(_NEXT)}", told, *notes), planned.diff)


def disable(place: SwitchContext) -> SwitchOutcome:
    """Switches codex off, and removes the block from codex's config.toml."""
    if place.home.config.exists():
        unset_value(place.home.config, KEY)
    planned = codex_config.plan_removal(place.config)
    removed = codex_config.write(planned)
    done = t("Hermes now runs your turns itself.")
    lines = [f"{done} {t.marked(_NEXT)}"]
    if removed:
        lines.append(
            t(
                "Removed Hermes' block from {path}; the rest of the file is unchanged.",
                path=place.config,
            )
        )
    return SwitchOutcome(tuple(lines), planned.diff)


async def status(place: SwitchContext) -> CodexStatus:
    """Returns the status. Changes nothing."""
    on = is_on(place.settings.model)
    program = find_codex(place.environ, place.settings.codex.binary)
    migrated, broken = _migrated(place.config)
    if program is None:
        return CodexStatus(
            on,
            hint=how_to_get_codex(place.environ, place.settings.codex.binary),
            config=str(place.config),
            migrated=migrated,
            complaint=broken,
        )
    environment = place.environment()
    try:
        ran, login, complaint = await asyncio.gather(
            run_once(program, ("--version",), environment),
            run_once(program, ("login", "status"), environment),
            preflight(program, environment),
        )
    except CodexFailed as error:
        return CodexStatus(
            on,
            str(program),
            config=str(place.config),
            migrated=migrated,
            complaint=error.message,
        )
    version = parse_version(ran.out)
    return CodexStatus(
        on=on,
        program=str(program),
        version=".".join(map(str, version)),
        warning=version_warning(version),
        signed_in=login.code == 0,
        config=str(place.config),
        migrated=migrated,
        complaint=broken or complaint,
    )


def _migrated(config: Path) -> tuple[bool, str]:
    try:
        return bool(config_block.split(read_text(config) or "", config.name).block), ""
    except SettingsError as error:
        return False, error.message


async def _objection(
    place: SwitchContext, program: Path, planned: codex_config.ConfigPlan
) -> str:
    """Returns codex's objection to the new file. Raises SettingsError if our block is the cause."""
    with tempfile.TemporaryDirectory(prefix="hermes-") as folder:
        trial = Path(folder) / "config.toml"
        environment = place.environment() | {"CODEX_HOME": folder}
        trial.write_bytes(planned.after.encode())
        after = await preflight(program, environment)
        if not after:
            return ""
        trial.write_bytes((planned.before or "").encode())
        before = await preflight(program, environment)
    shown = after.replace(folder, str(place.codex_home))
    if before:
        return t.logged("Codex rejects your config.toml: {shown}", shown=shown)
    raise SettingsError(
        t.later("Codex would reject the new config.toml: {shown}", shown=shown),
        hint=t.later("Nothing was changed."),
    )


async def _plugins(place: SwitchContext, program: Path) -> tuple[tuple[str, ...], str]:
    """Returns the installed plugins, or why they could not be listed."""

    async def nothing(_: object) -> None:
        return None

    launch = CodexLaunch(
        program,
        ("app-server",),
        place.environment(),
        Path.home(),
        place.settings.codex.startup_timeout,
    )
    try:
        client = await Client.start(launch, CodexListener(nothing, nothing))
    except CodexFailed as error:
        return (), t.logged(
            "Its plugins could not be listed: {error}", error=error.message
        )
    try:
        listed = await _listed(client)
    except CodexFailed as error:
        return (), t.logged(
            "Its plugins could not be listed: {error}", error=error.message
        )
    finally:
        await client.close()
    return tuple(
        sorted(
            plugin.id
            for market in listed.marketplaces
            for plugin in market.plugins
            if plugin.installed
        )
    ), ""


async def _listed(client: Client) -> "_Installed":
    """Returns the plugins. Older versions list them only together with those that could be installed."""
    try:
        return await client.request("plugin/installed", {"cwds": []}, _Installed)
    except CodexRefused:
        return await client.request("plugin/list", {"cwds": []}, _Installed)


class _Plugin(msgspec.Struct, frozen=True):
    id: str = ""
    installed: bool = False


class _Market(msgspec.Struct, frozen=True):
    plugins: tuple[_Plugin, ...] = ()


class _Installed(msgspec.Struct, frozen=True):
    marketplaces: tuple[_Market, ...] = ()
