"""Chat platforms: which are connected, connecting one with its token, and disconnecting it."""

from collections.abc import Iterable
from typing import Annotated

import msgspec

from hermes.app.platform_connections import (
    PLATFORMS,
    ChatPlatform,
    find_platform,
    forget_platform,
    is_connected,
    save_platform,
    try_platform,
)
from hermes.commands.command import Arg, command
from hermes.commands.context import CommandContext
from hermes.commands.views import Block, TextResult, message, table
from hermes.errors import UsageError
from hermes.settings.load import load, load_secrets
from hermes.text.translation import shown_reason, to_translate, translator

t = translator(__name__)


PlatformName = Annotated[str, Arg("the platform", metavar="NAME")]
_RELOAD = to_translate("To apply this to a running gateway: hermes gateway reload")


class PlatformFieldRow(msgspec.Struct, frozen=True):
    """One thing that a platform needs."""

    name: str
    label: str
    help: str
    is_secret: bool
    is_optional: bool
    is_chosen: bool


class PlatformRow(msgspec.Struct, frozen=True):
    """A chat platform, what it needs, and whether all of that is set."""

    name: str
    label: str
    how: str
    is_connected: bool
    fields: tuple[PlatformFieldRow, ...]


class PlatformListing(msgspec.Struct, frozen=True, kw_only=True):
    """The chat platforms that can be connected."""

    platforms: tuple[PlatformRow, ...]

    def view(self, _now: float) -> Iterable[Block]:
        rows = [
            (
                one.name,
                "connected" if one.is_connected else "",
                ", ".join(field.name for field in one.fields if not field.is_optional),
            )
            for one in self.platforms
        ]
        yield table((t("PLATFORM"), t("STATE"), t("NEEDS")), rows, cut=False)


@command("gateway platforms", scope="observe")
def list_platforms(context: CommandContext) -> PlatformListing:
    """List the chat platforms, and what each needs to be connected."""
    environ, home = context.environment, context.home
    settings, secrets = load(environ, home=home), load_secrets(environ, home=home)
    rows = (
        PlatformRow(
            one.name, one.label, shown_reason(one.how), is_connected(one, settings, secrets), _fields(one)
        )
        for one in PLATFORMS
    )  # fmt: skip
    return PlatformListing(platforms=tuple(rows))


@command("gateway connect", scope="admin")
async def connect_platform(
    context: CommandContext,
    name: PlatformName,
    values: Annotated[
        tuple[str, ...],
        Arg(
            "what it needs; a secret that is left out is asked for",
            metavar="NAME=VALUE",
        ),
    ] = (),
) -> TextResult:
    """Connect a chat platform: try its token, then save it."""
    platform = find_platform(name)
    given = dict(_pair(one) for one in values)
    known = {one.name for one in platform.fields}
    if strange := sorted(given.keys() - known):
        raise UsageError(
            t("{label} has no {strange}.", label=platform.label, strange=strange[0]),
            hint=t("It needs: {known}.", known=", ".join(sorted(known))),
        )
    for one in platform.fields:
        if one.is_secret and one.name not in given:
            given[one.name] = context.surface.read_secret(one.name)
    settings = load(context.environment, home=context.home)
    who = await try_platform(platform, settings, given)
    save_platform(context.home, platform, given)
    as_whom = t(" as {who}", who=who) if who else ""
    return message(
        t(
            "{label} is connected{as_whom}. {reload}",
            label=platform.label,
            as_whom=as_whom,
            reload=t.marked(_RELOAD),
        )
    )


@command("gateway disconnect", scope="admin")
def disconnect_platform(context: CommandContext, name: PlatformName) -> TextResult:
    """Disconnect a chat platform by removing its tokens. Paired people stay paired."""
    platform = find_platform(name)
    forget_platform(context.home, platform)
    return message(
        t(
            "{label} is disconnected. {reload}",
            label=platform.label,
            reload=t.marked(_RELOAD),
        )
    )


def _fields(platform: ChatPlatform) -> tuple[PlatformFieldRow, ...]:
    return tuple(
        PlatformFieldRow(
            one.name,
            shown_reason(one.label),
            shown_reason(one.help),
            one.is_secret,
            one.is_optional,
            one.is_chosen,
        )
        for one in platform.fields
    )


def _pair(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign:
        raise UsageError(
            t("{name}: a value is missing.", name=name), hint=t("Write NAME=VALUE.")
        )
    return name, value
