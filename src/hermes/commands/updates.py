"""`hermes update` and `hermes uninstall`."""

import shutil
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Annotated

import msgspec

from hermes.app.updates.copies import InstalledCopies
from hermes.app.updates.gateways import gateway_runs
from hermes.app.updates.new_version import NewVersion, find_version, version_key
from hermes.app.updates.updater import Updater
from hermes.commands.command import Arg, command
from hermes.commands.context import CommandContext
from hermes.commands.views import Block, Record, TextResult, line, lines_of, message
from hermes.errors import HermesError, Refused, UsageError, os_reason
from hermes.installation import checkout_folder, is_from_index
from hermes.settings import Home
from hermes.store.state_file import schema_version
from hermes.text.translation import translator

t = translator(__name__)


_MAX_SHOWN_CHANGES = 40  # lines


class UpdatePlan(msgspec.Struct, frozen=True, kw_only=True):
    """What an update would change."""

    current: str
    new: str
    source: str
    is_newer: bool
    changes: str
    plugins: tuple[str, ...]
    hooks: tuple[str, ...]
    homes: tuple[str, ...]
    migration: str = ""

    def view(self, _now: float) -> Iterable[Block]:
        yield Record(
            (
                (t("Installed"), self.current),
                (t("New"), f"{self.new} ({self.source})"),
                (t("Backup of"), ", ".join(self.homes)),
                (t("Sessions"), self.migration),
                (t("Plugins"), ", ".join(self.plugins)),
                (t("Hooks"), ", ".join(self.hooks)),
            )
        )
        if not self.is_newer:
            yield line(
                t(
                    "{new} is not newer than {current}.",
                    new=self.new,
                    current=self.current,
                ),
                "warn",
            )
        if self.plugins or self.hooks:
            yield line(t("Plugins and hooks will run with the new version."), "dim")
        if self.changes:
            shown = self.changes.splitlines()
            yield line("")
            yield from lines_of(shown[:_MAX_SHOWN_CHANGES])
            if len(shown) > _MAX_SHOWN_CHANGES:
                yield line(
                    t(
                        "… and {count} more lines",
                        count=len(shown) - _MAX_SHOWN_CHANGES,
                    ),
                    "dim",
                )


@command("update")
def update_hermes(  # noqa: PLR0913 - what is updated and how
    context: CommandContext,
    *,
    from_: Annotated[str, Arg("a wheel, a folder of wheels, or a folder with the source", metavar="PATH")] = "",
    version: Annotated[str, Arg("this version instead of the newest", metavar="VERSION")] = "",
    check: Annotated[bool, Arg("only say what would change", excludes="what")] = False,
    undo: Annotated[bool, Arg("go back to the version before the last update", excludes="what")] = False,
    restore_backup: Annotated[bool, "with --undo: also restore the backup, if the old version can't read the sessions"] = False,
    yes: Annotated[bool, "don't ask"] = False,
) -> UpdatePlan | TextResult:  # fmt: skip
    """Update Hermes: back up, install beside the old version, try it out on a copy, switch. It goes back if that fails."""
    copies = InstalledCopies(context.environment, Path.home())
    updater = _updater(context, copies)
    if undo:
        link = copies.link()
        record = updater.undo(link, restore_backup=restore_backup)
        return message(
            t(
                "Hermes is {previous_version} again.",
                previous_version=record.previous_version,
            )
        )
    with _Source(context, from_, version) as new:
        plan = _plan(context, new, updater)
        if check:
            return plan
        link = copies.link()
        context.surface.tell(*plan.view(context.app.clock.now()))
        if not yes:
            context.confirm(
                t("Update to {version}?", version=new.version),
                t("Nothing was changed."),
            )
        record = updater.update(new, link, _stamp(), context.app.clock.now())
    return message(
        t(
            "Hermes is {version}. Go back with: hermes update --undo",
            version=record.version,
        ),
        t(
            "Chats and dashboards that are open go on with the old version until you restart them."
        ),
    )


@command("uninstall")
def uninstall_hermes(
    context: CommandContext,
    *,
    with_home: Annotated[bool, "also delete your sessions, memory, settings and keys"] = False,
    yes: Annotated[bool, "don't ask"] = False,
) -> TextResult:  # fmt: skip
    """Remove the link and the versions that updates installed. Your data stays unless you add --with-home."""
    copies = InstalledCopies(context.environment, Path.home())
    link = copies.link()
    homes = [home.root for home in _updater(context, copies).homes()][:1]
    folders = [copies.root, *homes] if with_home else [copies.versions]
    folders = [one for one in folders if one.is_dir()]
    gone = [str(link), *map(str, folders)]
    if not yes:
        context.confirm(
            t("Remove {gone}?", gone=", ".join(gone)), t("Nothing was removed.")
        )
    _require_no_gateway(context)
    try:
        link.unlink()
        for one in folders:
            shutil.rmtree(one)
        if not with_home:
            copies.write_record(None)
    except OSError as error:
        raise HermesError(
            t(
                "Not everything was removed: {filename} ({error}).",
                filename=error.filename,
                error=os_reason(error),
            )
        ) from error
    kept = (
        []
        if with_home
        else [
            t("Your data is still in {home}.", home=one)
            for one in (*homes, copies.backups)
            if one.is_dir()
        ]
    )
    folder = checkout_folder()
    if folder is not None:
        kept.append(t("The source is still in {folder}.", folder=folder))
    return message(t("Removed {gone}.", gone=", ".join(gone)), *kept)


def _require_no_gateway(context: CommandContext) -> None:
    """Refused while the gateway runs, or systemd would start it again."""
    named = context.environment.get("XDG_CONFIG_HOME")
    config = Path(named) if named else Path.home() / ".config"
    if list(config.glob("systemd/user/hermes-gateway*.service")):
        raise Refused(
            t("The gateway is installed as a service."),
            hint=t("Nothing was removed. Remove it first: hermes gateway uninstall"),
        )
    if gateway_runs(context.home):
        raise Refused(
            t("The gateway is running."),
            hint=t("Nothing was removed. Stop it first: hermes gateway stop"),
        )


def _updater(context: CommandContext, copies: InstalledCopies) -> Updater:
    def tell(text: str) -> None:
        context.surface.tell(line(text, "dim"))

    copy_log = context.app.store.copy if context.settings.store.url else None
    return Updater(context.home, copies, context.environment, tell, copy_log=copy_log)


def _plan(context: CommandContext, new: NewVersion, updater: Updater) -> UpdatePlan:
    from hermes import __version__

    home = context.home
    return UpdatePlan(
        current=__version__,
        new=new.version,
        source=str(new.source),
        is_newer=version_key(new.version) > version_key(__version__),
        changes=new.changes_since(__version__),
        plugins=_names(home.plugins),
        hooks=_names(home.hooks),
        homes=tuple(str(one.root) for one in updater.homes()),
        migration=_migration(home, new),
    )


def _migration(home: Home, new: NewVersion) -> str:
    has = schema_version(home.state)
    if not has or new.schema <= has:
        return ""
    return t(
        "the log is migrated from version {has} to {schema}; older versions can't read it then",
        has=has,
        schema=new.schema,
    )


def _names(folder: Path) -> tuple[str, ...]:
    found = folder.iterdir() if folder.is_dir() else ()
    return tuple(sorted(one.name for one in found if not one.name.startswith(".")))


class _Source:
    """Where the new version comes from: a path, or the index that this copy came from. A download is removed again."""

    def __init__(self, context: CommandContext, path: str, version: str) -> None:
        self._context = context
        self._path = path
        self._version = version
        self._download: Path | None = None

    def __enter__(self) -> NewVersion:
        if self._path:
            return find_version(self._context.path(self._path).resolve(), self._version)
        if not is_from_index():
            hint = t("Name a wheel or a folder: hermes update --from PATH")
            if (folder := checkout_folder()) is not None:
                hint = t(
                    "It runs from {folder}. Pull there, then: hermes update --from {folder}",
                    folder=folder,
                )
            raise UsageError(
                t("This copy of Hermes did not come from a package index."), hint=hint
            )
        from hermes.app.updates.new_version import download

        self._download = download(self._context.environment, self._version)
        return find_version(self._download, self._version)

    def __exit__(self, *_: object) -> None:
        if self._download is not None:
            shutil.rmtree(self._download, ignore_errors=True)


def _stamp() -> str:
    return f"{datetime.now().astimezone():%Y-%m-%d-%H%M%S}"
