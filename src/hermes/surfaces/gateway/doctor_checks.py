"""The checks of `hermes doctor` for the gateway: tokens, extras, people, and whether it runs."""

import importlib.util
import time
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from hermes.errors import HermesError
from hermes.settings import Home, Secrets, Settings
from hermes.settings.gateway import missing_setting
from hermes.settings.load import load, load_secrets
from hermes.surfaces.gateway.registry import PLATFORMS, Platform, configured_platforms
from hermes.surfaces.gateway.status import read_status
from hermes.surfaces.gateway.systemd_unit import is_installed, unit_name
from hermes.surfaces.terminal.style import FAIL, OK, WARN
from hermes.text.install_words import install_hint
from hermes.text.translation import shown_reason, translator

t = translator(__name__)


_EXTRA_MODULES = {
    "discord": "discord",
    "slack": "slack_sdk",
    "matrix": "nio",
    "web": "uvicorn",
}
"""A module of each extra."""


class GatewayFinding(NamedTuple):
    """One line of the report."""

    mark: str
    text: str
    to_do: str = ""


def findings(home: Home, environ: Mapping[str, str]) -> list[GatewayFinding]:
    """The findings; none where no platform is configured, or the settings can't be read."""
    try:
        settings, secrets = load(environ, home=home), load_secrets(environ, home=home)
        names = configured_platforms(settings, secrets, home)
    except HermesError:
        return []
    found = [*_incomplete(settings, secrets, names), *_platforms(secrets, names)]
    if names:
        return [*found, *_people(settings), *_service(home)]
    return found


def _incomplete(
    settings: Settings, secrets: Secrets, names: list[str]
) -> Iterator[GatewayFinding]:
    """Platforms that lack a part of what they need: they don't run, and nothing else says so."""
    for one in PLATFORMS:
        missing = [name for name in one.secrets if not secrets.get(name)]
        if len(missing) < len(one.secrets):
            missing += filter(None, [missing_setting(settings.gateway, one.name)])
            if missing and one.name not in names:
                yield GatewayFinding(
                    WARN,
                    t(
                        "{name} does not run: {missing} is not set",
                        name=one.name,
                        missing=missing[0],
                    ),
                    f"hermes config set {missing[0]}",
                )


def _platforms(secrets: Secrets, names: list[str]) -> Iterator[GatewayFinding]:
    known = {one.name: one for one in PLATFORMS}
    for name in names:
        platform = known.get(name, Platform(name, "", ()))
        missing = (
            [secret for secret in platform.secrets if not secrets.get(secret)]
            if name != "api"
            else []
        )
        if missing:
            yield GatewayFinding(
                FAIL,
                t(
                    "{name} can't connect: {missing} is not set",
                    name=name,
                    missing=missing[0],
                ),
                f"hermes config set {missing[0]}",
            )
        elif (
            platform.extra
            and importlib.util.find_spec(_EXTRA_MODULES[platform.extra]) is None
        ):
            yield GatewayFinding(
                FAIL,
                t("{name} needs a package that is not installed", name=name),
                install_hint(platform.extra).shown(),
            )
        else:
            yield GatewayFinding(OK, f"{name} is configured")


def _people(settings: Settings) -> Iterator[GatewayFinding]:
    gateway = settings.gateway
    for entry in (one for one in gateway.allow if one.endswith(":*")):
        to_do = t(
            "If that is not what you want, name people by their id in gateway.allow."
        )
        yield GatewayFinding(
            WARN,
            t("everybody on {entry} has access", entry=entry.removesuffix(":*")),
            to_do,
        )
    codes = (
        t("strangers who write get a code that you can approve")
        if gateway.pairing
        else t("strangers are not answered")
    )
    yield GatewayFinding(OK, t("{codes}; see: hermes gateway pair list", codes=codes))


def _service(home: Home) -> Iterator[GatewayFinding]:
    found = read_status(home, time.time())
    if found is None or found[0] == "ended":
        died = found is not None
        text = (
            t("the last gateway crashed") if died else t("the gateway is not running")
        )
        start = (
            f"systemctl --user start {unit_name(home.profile)}"
            if is_installed(home.profile)
            else "hermes gateway run"
        )
        yield GatewayFinding(WARN, text, t("Start it with: {start}", start=start))
        return
    health, status = found
    if health == "stuck":
        yield GatewayFinding(
            FAIL,
            t("the gateway is stuck (process {pid})", pid=status.pid),
            t("Stop it with: hermes gateway stop"),
        )
        return
    by = (
        t("systemd runs it")
        if is_installed(home.profile)
        else t("it ends with your session; hermes gateway install keeps it running")
    )
    yield GatewayFinding(
        OK,
        t(
            "the gateway is {state} (process {pid}); {by}",
            state=status.state,
            pid=status.pid,
            by=by,
        ),
    )
    for part in status.parts:
        if part.state in {"failed", "retrying"}:
            yield GatewayFinding(
                WARN,
                t(
                    "{name} is not connected: {error}",
                    name=part.name,
                    error=shown_reason(part.error),
                ),
                t("See: hermes gateway status"),
            )
