"""People in chat apps: who has access, and how it is granted and revoked."""

from collections.abc import Iterable
from typing import Annotated, Any, Literal

import msgspec

from hermes.app import App
from hermes.app.people_access import CODE_LIFETIME_S, PeopleAccess
from hermes.commands.command import Arg, command
from hermes.commands.context import CommandContext
from hermes.commands.views import Block, TextResult, line, message, table
from hermes.errors import NotFound
from hermes.store.people import KnownPerson, PairingRequest
from hermes.text.formats import first_line, short_duration
from hermes.text.translation import translator

t = translator(__name__)


class PeopleListing(msgspec.Struct, frozen=True, kw_only=True):
    """Who has access, and who is waiting."""

    people: tuple[KnownPerson, ...]
    named: tuple[tuple[str, str], ...]
    """Entries of the settings, each with its role."""
    waiting: tuple[PairingRequest, ...]

    def document(self) -> Any:
        waiting = [
            {
                "platform": one.platform,
                "id": one.person,
                "name": one.name,
                "made": one.made,
            }
            for one in self.waiting
        ]
        named = [{"who": entry, "role": role} for entry, role in self.named]
        return {"people": self.people, "named": named, "waiting": waiting}

    def view(self, now: float) -> Iterable[Block]:
        rows = [
            (f"{one.platform}:{one.id}", first_line(one.name), one.role, "pairing")
            for one in self.people
        ]
        rows += [(entry, "", role, "config.yaml") for entry, role in self.named]
        if rows:
            yield table((t("WHO"), t("NAME"), t("ROLE"), t("BY")), rows, cut=False)
        else:
            yield line(t("Nobody has access yet."))
        for one in self.waiting:
            left = short_duration(one.made + CODE_LIFETIME_S - now)
            yield line(
                t(
                    "Waiting: {name} ({platform}:{person}); their code is valid for {left}.",
                    name=first_line(one.name),
                    platform=one.platform,
                    person=one.person,
                    left=left,
                )
            )


@command("gateway pair list", scope="admin")
def list_people(context: CommandContext) -> PeopleListing:
    """List who has access, and who is waiting."""
    app, settings = context.app, context.settings.gateway
    named = [(entry, "owner") for entry in settings.owners]
    named += [(entry, "user") for entry in settings.allow]
    return PeopleListing(
        people=tuple(app.store.people.every()),
        named=tuple(named),
        waiting=tuple(_access(app).waiting()),
    )


@command("gateway pair approve", scope="admin")
def approve_person(
    context: CommandContext,
    code: Annotated[str, "the code they see in their chat"],
    *,
    role: Annotated[
        Literal["owner", "user"] | None,
        "user by default; the first person becomes owner",
    ] = None,
) -> TextResult:
    """Approve the person who has a code."""
    known = _access(context.app).approve(code, role or "")
    who = first_line(known.name or known.id)
    return message(
        t(
            "{who} ({platform}:{id}) now has access as {role}.",
            who=who,
            platform=known.platform,
            id=known.id,
            role=known.role,
        )
    )


@command("gateway pair revoke", scope="admin")
def revoke_person(
    context: CommandContext,
    who: Annotated[str, Arg("as shown by `pair list`", metavar="PLATFORM:ID")],
) -> TextResult:
    """Remove a person who was paired."""
    platform, _, person = who.partition(":")
    if not _access(context.app).revoke(platform, person):
        raise NotFound(
            t("{who} is not paired.", who=who), hint=t("See: hermes gateway pair list")
        )
    return message(
        t(
            "{who} is removed. Entries for them under gateway.allow or gateway.owners in config.yaml still count.",
            who=who,
        )
    )


def _access(app: App) -> PeopleAccess:
    return PeopleAccess(app.settings.gateway, app.store.people, app.clock)
