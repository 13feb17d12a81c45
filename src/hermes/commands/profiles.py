"""Profiles: whole homes with settings, keys, memory, skills and sessions of their own."""

import tarfile
import zlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import msgspec

from hermes.app.profiles import Profile, ProfileContents, Profiles, contents_of
from hermes.commands.command import Arg, command
from hermes.commands.context import CommandContext
from hermes.commands.views import Block, Line, Record, TextResult, line, message, table
from hermes.errors import HermesError, NotFound
from hermes.settings.load import find_base, find_home, load_secrets
from hermes.settings.profiles import DEFAULT_PROFILE
from hermes.text.formats import first_line
from hermes.text.translation import shown_reason, to_translate, translator
from hermes.tools.escapes import shown

if TYPE_CHECKING:
    from hermes.app.profile_archive import ArchivedProfile

t = translator(__name__)


ProfileName = Annotated[str, Arg("a profile, as the list shows it", metavar="NAME")]
NewName = Annotated[str, Arg("lower-case letters, digits, - and _", metavar="NAME")]
_SECRETS = Arg("with the keys in .env and in the settings")
_HOW = to_translate(
    "Use it: hermes --profile {name}, or from now on: hermes profile use {name}"
)


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
        yield table(("", t("NAME"), t("MODEL"), t("DESCRIPTION")), rows)
        for one in self.profiles:
            if one.problem:
                yield line(f"{one.name}: {first_line(one.problem)}", "warn", fit="wrap")
        if len(self.profiles) == 1:
            yield line(t("Make another: hermes profile create NAME"), "dim", fit="wrap")


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
            (t("name"), self.name),
            (t("folder"), self.path),
            (t("description"), self.description),
            (t("used"), "by default" if self.active else f"with --profile {self.name}"),
            (t("model"), self.model),
            (t("keys"), ", ".join(self.keys) or "none"),
            (t("holds"), _holds(self.sessions, self.files, self.bytes)),
            (t("problem"), self.problem),
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
    return message(t("Made {path}", path=made.path), t.marked(_HOW, name=name))


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
    copied = ", ".join(done.copied) or t("nothing: it was empty")
    notes = [t("Copied from {source}: {copied}.", source=source, copied=copied)]
    if done.masked:
        notes.append(
            t(
                "Masked what looks like a secret in: {masked}",
                masked=", ".join(done.masked),
            )
        )
    if not with_secrets:
        notes.append(t("It has no keys. Store them: hermes --profile {name} config set NAME", name=name))  # fmt: skip
    return message(t("Made {path}", path=done.profile.path), *notes, *done.notes, t.marked(_HOW, name=name))  # fmt: skip


@command("profile rename")
def rename_profile(
    context: CommandContext, name: ProfileName, new_name: NewName
) -> TextResult:
    """Give a profile another name."""
    done = _profiles(context).rename(name, new_name)
    return message(
        t(
            "{name} is now {new_name}: {path}",
            name=name,
            new_name=new_name,
            path=done.path,
        )
    )


@command("profile use")
def use_profile(context: CommandContext, name: ProfileName) -> TextResult:
    """Use a profile from now on, without --profile; `default` goes back."""
    done = _profiles(context).use(name)
    return message(
        t(
            "From now on, hermes uses the profile {name}: {path}",
            name=done.name,
            path=done.path,
        )
    )


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
            context.confirm(
                t("Delete the profile {name}?", name=name), t("Nothing was deleted.")
            )
    profiles.remove(name)
    return message(t("Deleted the profile {name}.", name=name))


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
    holds = [
        part if files == 1 else t("{part} ({files} files)", part=part, files=files)
        for part, files in done.holds
    ]
    notes = {
        t("It contains"): ", ".join(holds),
        t("Left out, because they contain secrets"): ", ".join(done.withheld),
        t("Masked what looks like a secret in"): ", ".join(done.masked_files),
        t("Left out, because they lead outside the profile"): ", ".join(done.left_out),
    }
    lines = [f"{what}: {first_line(names)}" for what, names in notes.items() if names]
    if done.masked:
        rows = t("{count:,} row", "{count:,} rows", count=done.masked)
        lines.append(
            t("Your keys were masked in {rows} of the session log.", rows=rows)
        )
    if not without_history:
        lines.append(t("It contains your conversations. To share it, use --without-history."))  # fmt: skip
    if with_secrets:
        lines.append(t("It contains your keys: keep it private."))
    size = t(
        "{count:,} file, {size:.1f} MB",
        "{count:,} files, {size:.1f} MB",
        count=done.files,
        size=done.size / 1e6,
    )
    return message(
        t(
            "{file}: {size}. Import it with: hermes profile import {name}",
            file=done.file,
            size=size,
            name=done.file.name,
        ),
        *lines,
    )


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
        raise NotFound(
            t("There is no file {source}.", source=source),
            hint=t("Nothing was changed."),
        )
    try:
        with profiles.drafted(name) as draft:
            archive = ArchivedProfile(source, draft)
            describe_draft(archive)
            warnings = _import_warnings(archive)
            if warnings:
                context.surface.tell(*warnings)
                if not yes:
                    context.confirm(t("Import it?"), t("Nothing was imported."))
    except (tarfile.TarError, EOFError, zlib.error, ValueError) as error:
        raise HermesError(
            t("{source} can't be imported: {error}", source=source, error=error),
            hint=t("Nothing was changed."),
        ) from error
    done = finish_import(profiles, archive, name)
    notes = [t("Its hooks and plugins are off until you enable them.")]
    if done.left_out:
        notes.append(
            t(
                "Left out, because it could run or allow something: {left_out}",
                left_out=", ".join(done.left_out),
            )
        )
    return message(
        t(
            "Imported {count:,} file as {name}: {path}",
            "Imported {count:,} files as {name}: {path}",
            count=done.files,
            name=name,
            path=done.profile.path,
        ),
        *notes,
        t.marked(_HOW, name=name),
    )


def _import_warnings(archive: "ArchivedProfile") -> list[Line]:
    """What a person should know before they use somebody else's profile."""
    warnings: list[Line] = []
    for title, found in (
        (t("Its settings name programs:"), archive.programs),
        (
            t("Its settings send something elsewhere, or let somebody in:"),
            archive.settings,
        ),
        (t("It holds keys and logins of the sender:"), archive.logins),
    ):
        if found:
            warnings.append(line(title))
            warnings += (
                line(f"  {shown(shown_reason(one))}", fit="wrap") for one in found
            )
    return warnings


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
    kept = (
        t("sessions in a database elsewhere")
        if sessions is None
        else t("{count:,} session", "{count:,} sessions", count=sessions)
    )
    return t(
        "{kept}, {count:,} file, {size:.1f} MB",
        "{kept}, {count:,} files, {size:.1f} MB",
        count=files,
        kept=kept,
        size=size / 1e6,
    )
