"""Profiles: whole homes with settings, keys, memory, skills and sessions of their own."""

import tarfile
import zlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import msgspec

from hermes.app.profiles import Profile, ProfileContents, Profiles, contents_of
from hermes.commands.command import Arg, command
from hermes.commands.context import CommandContext
from hermes.commands.formats import count, first_line
from hermes.commands.views import Block, Line, Record, TextResult, line, message, table
from hermes.errors import HermesError, NotFound
from hermes.settings.load import find_base, find_home, load_secrets
from hermes.settings.profiles import DEFAULT_PROFILE
from hermes.tools.escapes import shown

if TYPE_CHECKING:
    from hermes.app.profile_archive import ArchivedProfile

ProfileName = Annotated[str, Arg("a profile, as the list shows it", metavar="NAME")]
NewName = Annotated[str, Arg("lower-case letters, digits, - and _", metavar="NAME")]
_SECRETS = "with the keys in .env and in the settings"
_HOW = "Use it: hermes --profile {name}, or from now on: hermes profile use {name}"


class ListedProfile(msgspec.Struct, frozen=True, kw_only=True):
    """A profile as it is listed."""

    name: str
    active: bool
    model: str
    description: str
    path: str
    problem: str


class ProfileList(msgspec.Struct, frozen=True, kw_only=True):
    """All profiles, and the one that this command ran in."""

    current: str
    profiles: tuple[ListedProfile, ...]

    def view(self, _now: float) -> Iterable[Block]:
        rows = (
            ("*" if one.name == self.current else "", one.name, shown(one.model), shown(one.description))
            for one in self.profiles
        )  # fmt: skip
        yield table(("", "NAME", "MODEL", "DESCRIPTION"), rows)
        for one in self.profiles:
            if one.problem:
                yield line(f"{one.name}: {first_line(one.problem)}", "warn", fit="wrap")
        if len(self.profiles) == 1:
            yield line("Make another: hermes profile create NAME", "dim", fit="wrap")


class ShownProfile(msgspec.Struct, frozen=True, kw_only=True):
    """All about one profile."""

    name: str
    path: str
    description: str
    active: bool
    model: str
    keys: tuple[str, ...]
    """The names of its secrets."""
    files: int
    bytes: int
    sessions: int | None
    problem: str

    def view(self, _now: float) -> Iterable[Block]:
        facts = (
            ("name", self.name),
            ("folder", self.path),
            ("description", self.description),
            ("used", "by default" if self.active else f"with --profile {self.name}"),
            ("model", self.model),
            ("keys", ", ".join(self.keys) or "none"),
            ("holds", _holds(self.sessions, self.files, self.bytes)),
            ("problem", self.problem),
        )  # fmt: skip
        yield Record(tuple((key, shown(value)) for key, value in facts))


@command("profile list")
def list_profiles(context: CommandContext) -> ProfileList:
    """List the profiles; the one in use has a star."""
    found = _profiles(context).all()
    return ProfileList(current=_current(context), profiles=tuple(map(_listed, found)))


@command("profile show")
def show_profile(context: CommandContext, name: ProfileName = "") -> ShownProfile:
    """Show what a profile holds; without a name, the one in use."""
    found = _profiles(context).find(name or _current(context))
    holds = contents_of(found.home)
    secrets = load_secrets({}, home=found.home)
    return ShownProfile(
        name=found.name,
        path=str(found.path),
        description=found.description,
        active=found.is_active,
        model=found.model,
        keys=tuple(sorted(secrets)),
        files=holds.files,
        bytes=holds.bytes,
        sessions=holds.sessions,
        problem=found.problem,
    )


@command("profile create")
def create_profile(
    context: CommandContext,
    name: NewName,
    *,
    description: Annotated[str, "what it is for"] = "",
) -> TextResult:
    """Make an empty profile."""
    made = _profiles(context).create(name, description)
    return message(f"Made {made.path}", _HOW.format(name=name))


@command("profile clone")
def clone_profile(
    context: CommandContext,
    source: ProfileName,
    name: NewName,
    *,
    description: Annotated[str, "what it is for"] = "",
    with_secrets: Annotated[bool, _SECRETS] = False,
) -> TextResult:
    """Copy settings, identity, agents, skills and memory into a new profile; no sessions."""
    done = _profiles(context).clone(
        source, name, description=description, secrets=with_secrets
    )
    copied = ", ".join(done.copied) or "nothing: it was empty"
    notes = [f"Copied from {source}: {copied}."]
    if done.masked:
        notes.append(f"Masked what looks like a secret in: {', '.join(done.masked)}")
    if not with_secrets:
        notes.append(f"It has no keys. Store them: hermes --profile {name} config set NAME")  # fmt: skip
    return message(f"Made {done.profile.path}", *notes, *done.notes, _HOW.format(name=name))  # fmt: skip


@command("profile rename")
def rename_profile(
    context: CommandContext, name: ProfileName, new_name: NewName
) -> TextResult:
    """Give a profile another name."""
    done = _profiles(context).rename(name, new_name)
    return message(f"{name} is now {new_name}: {done.path}")


@command("profile use")
def use_profile(context: CommandContext, name: ProfileName) -> TextResult:
    """Use a profile from now on, without --profile; `default` goes back."""
    done = _profiles(context).use(name)
    return message(f"From now on, hermes uses the profile {done.name}: {done.path}")


@command("profile remove")
def remove_profile(
    context: CommandContext,
    name: ProfileName,
    *,
    yes: Annotated[bool, "don't ask"] = False,
) -> TextResult:
    """Delete a profile with everything in it, after showing what that is."""
    profiles = _profiles(context)
    found = profiles.find(name)
    if name != DEFAULT_PROFILE:
        what = _summary(found)
        context.surface.tell(line(f"{found.path}: {what}.", fit="wrap"))
        if not yes:
            context.confirm(f"Delete the profile {name}?", "Nothing was deleted.")
    profiles.remove(name)
    return message(f"Deleted the profile {name}.")


@command("profile export")
def export(
    context: CommandContext,
    name: ProfileName,
    file: Annotated[
        str, Arg("the file to write (default: NAME.tar.gz)", metavar="FILE")
    ] = "",
    *,
    with_secrets: Annotated[bool, _SECRETS] = False,
    without_history: Annotated[
        bool, "leave out sessions, logs and who talked to it"
    ] = False,
) -> TextResult:
    """Write a profile to one file, without its keys."""
    from hermes.app.profile_archive import export_profile

    found = _profiles(context).find(name)
    target = context.path(file or f"{name}.tar.gz")
    done = export_profile(
        found, target, secrets=with_secrets, history=not without_history
    )
    holds = [part if files == 1 else f"{part} ({files} files)" for part, files in done.holds]  # fmt: skip
    notes = {
        "It contains": ", ".join(holds),
        "Left out, because they contain secrets": ", ".join(done.withheld),
        "Masked what looks like a secret in": ", ".join(done.masked_files),
        "Left out, because they lead outside the profile": ", ".join(done.left_out),
    }
    lines = [f"{what}: {first_line(names)}" for what, names in notes.items() if names]
    if done.masked:
        rows = count(done.masked, "row")
        lines.append(f"Your keys were masked in {rows} of the session log.")
    if not without_history:
        lines.append("It contains your conversations. To share it, use --without-history.")  # fmt: skip
    if with_secrets:
        lines.append("It contains your keys: keep it private.")
    size = f"{count(done.files, 'file')}, {done.size / 1e6:.1f} MB"
    return message(f"{done.file}: {size}. Import it with: hermes profile import {done.file.name}", *lines)  # fmt: skip


@command("profile import")
def import_profile(
    context: CommandContext,
    file: Annotated[
        str, "a file that `hermes profile export` or `hermes backup` wrote"
    ],
    name: Annotated[
        str, Arg("its name here (default: that of the file)", metavar="NAME")
    ] = "",
    *,
    yes: Annotated[bool, "don't ask"] = False,
) -> TextResult:
    """Make a profile from a file, after checking its paths and what it would run."""
    from hermes.app.profile_archive import (
        ArchivedProfile,
        describe_draft,
        finish_import,
    )

    source = context.path(file)
    name = name or source.name.partition(".")[0].lower()
    profiles = _profiles(context)
    if not source.is_file():
        raise NotFound(f"There is no file {source}.", hint="Nothing was changed.")
    try:
        with profiles.drafted(name) as draft:
            archive = ArchivedProfile(source, draft)
            describe_draft(archive)
            told = _told_before_import(archive)
            if told:
                context.surface.tell(*told)
                if not yes:
                    context.confirm("Import it?", "Nothing was imported.")
    except (tarfile.TarError, EOFError, zlib.error, ValueError) as error:
        raise HermesError(
            f"{source} can't be imported: {error}", hint="Nothing was changed."
        ) from error
    done = finish_import(profiles, archive, name)
    notes = ["Its hooks and plugins are off until you enable them."]
    if done.left_out:
        notes.append(f"Left out, because it could run or allow something: {', '.join(done.left_out)}")  # fmt: skip
    return message(
        f"Imported {count(done.files, 'file')} as {name}: {done.profile.path}",
        *notes,
        _HOW.format(name=name),
    )


def _told_before_import(archive: "ArchivedProfile") -> list[Line]:
    """What a person should know before they use somebody else's profile."""
    told: list[Line] = []
    for title, found in (
        ("Its settings name programs:", archive.programs),
        (
            "Its settings send something elsewhere, or let somebody in:",
            archive.settings,
        ),
        ("It holds keys and logins of the sender:", archive.logins),
    ):
        if found:
            told.append(line(title))
            told += (line(f"  {shown(one)}", fit="wrap") for one in found)
    return told


def _profiles(context: CommandContext) -> Profiles:
    """The profiles; also if the one in use is gone."""
    home = context.home.base if context.is_shared else find_base(context.environment)
    return Profiles(home)


def _current(context: CommandContext) -> str:
    try:
        home = context.home if context.is_shared else find_home(context.environment)
    except HermesError:
        return ""
    return home.profile or DEFAULT_PROFILE


def _listed(profile: Profile) -> ListedProfile:
    return ListedProfile(
        name=profile.name,
        active=profile.is_active,
        model=profile.model,
        description=profile.description,
        path=str(profile.path),
        problem=profile.problem,
    )


def _summary(profile: Profile) -> str:
    holds: ProfileContents = contents_of(profile.home)
    what = _holds(holds.sessions, holds.files, holds.bytes)
    names = tuple(load_secrets({}, home=profile.home))
    keys = f", keys: {', '.join(sorted(names))}" if names else ""
    return f"{what}{keys}"


def _holds(sessions: int | None, files: int, size: int) -> str:
    kept = "sessions in a database elsewhere" if sessions is None else count(sessions, "session")  # fmt: skip
    return f"{kept}, {count(files, 'file')}, {size / 1e6:.1f} MB"
