"""Back up all of a user's data to one file, and restore it."""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated

import msgspec

from hermes.commands.command import Arg, command
from hermes.commands.context import CommandContext
from hermes.commands.views import Block, line
from hermes.settings.profiles import profile_names
from hermes.text.formats import first_line
from hermes.text.translation import translator

t = translator(__name__)


class WrittenBackup(msgspec.Struct, frozen=True, kw_only=True):
    """A backup that was written."""

    file: str
    files: int
    bytes: int
    contents: tuple[tuple[str, int], ...]
    notes: tuple[str, ...]

    def view(self, _now: float) -> Iterable[Block]:
        name = first_line(self.file)
        size = t(
            "{count:,} file, {bytes:.1f} MB",
            "{count:,} files, {bytes:.1f} MB",
            count=self.files,
            bytes=self.bytes / 1e6,
        )
        yield line(
            t(
                "{name}: {size}. Restore it with: hermes restore {name}",
                name=name,
                size=size,
            )
        )
        parts = [
            part
            if files == 1
            else t("{part} ({count:,} files)", part=part, count=files)
            for part, files in self.contents
        ]
        yield line(t("It contains: {parts}.", parts=", ".join(parts)))
        yield from map(line, self.notes)


class RestoredBackup(msgspec.Struct, frozen=True, kw_only=True):
    """A backup that was restored."""

    home: str
    files: int
    left_out: tuple[str, ...]
    previous: str

    def view(self, _now: float) -> Iterable[Block]:
        yield line(
            t(
                "{count:,} file restored in {home}.",
                "{count:,} files restored in {home}.",
                count=self.files,
                home=first_line(self.home),
            )
        )
        if self.left_out:
            names = first_line(", ".join(self.left_out))
            yield line(
                t(
                    "Left out, because git would run programs from them: {names}",
                    names=names,
                )
            )
        if self.previous:
            yield line(
                t(
                    "What was there before is kept: {previous}",
                    previous=first_line(self.previous),
                )
            )


@command("backup")
def back_up_home(
    context: CommandContext,
    file: Annotated[
        str,
        Arg(
            "the file to write (default: hermes-DATE.tar.gz in this folder)",
            metavar="FILE",
        ),
    ] = "",
    *,
    without_secrets: Annotated[
        bool, "leave out or mask your keys and anything that looks like one"
    ] = False,
) -> WrittenBackup:
    """Write all your data to one file."""
    from hermes.app.backup import back_up

    target = context.path(file or f"hermes-{_stamp()}.tar.gz")
    copy_log = context.app.store.copy if context.settings.store.url else None
    done = back_up(context.home, target, secrets=not without_secrets, copy_log=copy_log)
    notes = {
        t("Left out, because they contain secrets"): ", ".join(done.withheld),
        t("Masked what looks like a secret in"): ", ".join(done.masked_files),
        t("Left out, because they lead outside the Hermes home"): ", ".join(
            done.left_out
        ),
    }
    lines = [f"{what}: {first_line(names)}" for what, names in notes.items() if names]
    if done.masked:
        rows = t("{count:,} row", "{count:,} rows", count=done.masked)
        lines.append(
            t("Your keys were masked in {rows} of the session log.", rows=rows)
        )
    others = profile_names(context.home.root)
    if others:
        lines.append(
            t(
                "Profiles are homes of their own, and not in it: {others}. Back one up: hermes --profile NAME backup",
                others=", ".join(others),
            )
        )
    if done.has_keys and not without_secrets:
        lines.append(t("It contains your keys: keep it private, or make one with --without-secrets."))  # fmt: skip
    return WrittenBackup(
        file=str(done.file),
        files=done.files,
        bytes=done.size,
        contents=tuple(done.holds),
        notes=tuple(lines),
    )


@command("restore")
def restore_home(
    context: CommandContext,
    file: Annotated[str, "a file that `hermes backup` wrote"],
) -> RestoredBackup:
    """Restore a backup."""
    from hermes.app.backup import restore

    done = restore(context.home, context.path(file), stamp=_stamp())
    return RestoredBackup(
        home=str(context.home.root),
        files=done.files,
        left_out=tuple(done.left_out),
        previous=str(done.aside) if done.aside is not None else "",
    )


def _stamp() -> str:
    return f"{datetime.now().astimezone():%Y-%m-%d-%H%M%S}"
