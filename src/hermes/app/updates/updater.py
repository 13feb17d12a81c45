"""One update from beginning to end: backup, new environment, trial, switch, first start. Rolls back if a step fails."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from hermes.app.backup import back_up
from hermes.app.updates.copies import InstalledCopies, UpdateRecord
from hermes.app.updates.environment import EnvironmentBuilder
from hermes.app.updates.gateways import (
    GatewayPause,
    gateway_runs,
    kept_restart_requests,
)
from hermes.app.updates.new_version import NewVersion
from hermes.app.updates.trial import VersionTrial, call_program
from hermes.errors import HermesError, Refused, os_reason
from hermes.settings import Home
from hermes.settings.profiles import (
    PROFILES_FOLDER,
    profile_names,
)
from hermes.store.state_file import schema_version
from hermes.text.translation import translator

t = translator(__name__)


_MAX_SHOWN_CHARS = 500
MIN_FREE_BYTES = 400 * 1024 * 1024  # for an environment with all extras


class Updater:
    """Replaces the running copy with another one. `tell` is called with each step."""

    def __init__(  # noqa: PLR0913 - what an update needs
        self,
        home: Home,
        copies: InstalledCopies,
        environment: Mapping[str, str],
        tell: Callable[[str], None],
        *,
        copy_log: Callable[[Path], None] | None = None,
        build: Callable[[NewVersion, Path], Path] | None = None,
        min_free_bytes: int = MIN_FREE_BYTES,
    ) -> None:
        self._min_free_bytes = min_free_bytes
        self._home = home.base
        self._build = build or EnvironmentBuilder(environment).build
        self._copies = copies
        self._environment = environment
        self._tell = tell
        self._copy_log = copy_log

    def homes(self) -> list[Home]:
        """Returns every existing home of this user: the default one, and those of profiles."""
        root = self._home.root
        names = profile_names(root)
        found = [self._home, *(Home(root / PROFILES_FOLDER / one) for one in names)]
        return [one for one in found if one.root.is_dir()]

    def update(self, new: NewVersion, link: Path, stamp: str, now: float) -> UpdateRecord:  # fmt: skip
        """Installs a version, tries it out and switches to it. After a HermesError, the old version runs as before."""
        copies = self._copies
        with copies.lock():
            try:
                self._require_space()
                self._tell(t("Backing up ..."))
                backups = self._back_up(copies.backup_folder(stamp))
                folder = copies.new_folder(new.version)
                self._tell(
                    t(
                        "Installing {version} in {folder} ...",
                        version=new.version,
                        folder=folder,
                    )
                )
                program = self._build(new, folder)
            except OSError as error:
                why = t.later(
                    "The update can't be prepared: {why}.", why=os_reason(error)
                )
                raise HermesError(why, hint=t.later("Nothing was changed.")) from error
            try:
                self._try_out(new, program, backups)
                record = UpdateRecord(
                    version=new.version,
                    program=str(program),
                    previous_version=copies.version,
                    previous_program=str(link.resolve()),
                    backups={str(home): str(file) for home, file in backups.items()},
                    schemas=self._schemas(),
                    at=now,
                )
                self._switch(link, record)
            except BaseException:
                shutil.rmtree(folder, ignore_errors=True)
                raise
            copies.clear_up(record)
            return record

    def undo(self, link: Path, *, restore_backup: bool) -> UpdateRecord:
        """Returns to the version before the last update. Refuses if it can't read what the new one has written."""
        copies = self._copies
        with copies.lock():
            record = copies.record()
            if record is None:
                raise Refused(t.later("There is no update to undo."))
            before = Path(record.previous_program)
            if not before.exists():
                raise HermesError(
                    t.later("The previous version is gone: {before}.", before=before)
                )
            migrated = self._migrated(record)
            if migrated and not restore_backup:
                raise Refused(
                    t.later(
                        "Hermes {previous_version} can't read the sessions that {version} has migrated.",
                        previous_version=record.previous_version,
                        version=record.version,
                    ),
                    hint=t.later(
                        "--restore-backup also restores the backup from before the update. Anything newer is kept aside."
                    ),
                )
            copies.switch(link, before)
            with self._paused_gateways(link) as gateways:
                if migrated:
                    self._restore(record)
            copies.write_record(None)
            self._tell_ended(gateways.ended())
            return record

    def _require_space(self) -> None:
        free = shutil.disk_usage(_existing(self._copies.root)).free
        if free < self._min_free_bytes:
            needed = self._min_free_bytes / 1e6
            raise Refused(
                t.later(
                    "There are {free:,.0f} MB free in {root}; an update needs {needed:,.0f} MB.",
                    free=free / 1000000.0,
                    root=self._copies.root,
                    needed=needed,
                ),
                hint=t.later(
                    "Nothing was changed. Free some space, or set XDG_DATA_HOME to another disk."
                ),
            )

    def _back_up(self, folder: Path) -> dict[Path, Path]:
        made: dict[Path, Path] = {}
        for home in self.homes():
            target = folder / f"{home.profile or 'default'}.tar.gz"
            copy_log = self._copy_log if home == self._home else None
            back_up(home, target, copy_log=copy_log)
            made[home.root] = target
        return made

    def _try_out(
        self, new: NewVersion, program: Path, backups: Mapping[Path, Path]
    ) -> None:
        trial = VersionTrial(program, self._copies.program, self._environment)
        try:
            writes = trial.run(new.version, backups.get(self._home.root), self._tell)
        except HermesError as error:
            raise HermesError(
                t.later(
                    "The new version did not pass its check. {message}",
                    message=error.message,
                ),
                hint=t.later("Nothing was changed; the old version runs as before."),
            ) from error
        has = schema_version(self._home.state)
        if has and writes > has:
            self._tell(
                t(
                    "The session log will be migrated from version {has} to {writes}.",
                    has=has,
                    writes=writes,
                )
            )

    def _switch(self, link: Path, record: UpdateRecord) -> None:
        """Switches, and switches back if the first start fails, or a gateway does not start again."""
        copies, before = self._copies, copies_record(self._copies)
        copies.write_record(record)
        copies.switch(link, Path(record.program))
        self._tell(
            t(
                "Switched {link} to {version}. Starting it for the first time ...",
                link=link,
                version=record.version,
            )
        )
        with self._paused_gateways(link) as gateways:
            try:
                self._first_start(link)
            except BaseException as error:
                self._go_back(link, record, before)
                if not isinstance(error, HermesError):
                    raise
                raise _first_start_failed(record, error) from error
        if ended := gateways.ended():
            with self._paused_gateways(link):
                self._go_back(link, record, before)
            self._tell_ended(ended)
            why = t.later("The gateway did not start again.")
            raise _first_start_failed(record, HermesError(why))

    def _go_back(
        self, link: Path, record: UpdateRecord, before: UpdateRecord | None
    ) -> None:
        """Puts the old version back, with its session log, while the gateways wait."""
        copies = self._copies
        copies.switch(link, Path(record.previous_program))
        self._restart_gateways(link)
        if self._migrated(record):
            self._restore(record)
        copies.write_record(before)  # last: until then, an undo can finish this

    def _first_start(self, link: Path) -> None:
        for home in self.homes():
            if not home.state.exists():
                continue
            environment = self._environment_of(home)
            done = call_program(link, environment, "store", "status")
            if done.code:
                raise HermesError(
                    t.later(
                        "It can't open {state}: {err}",
                        state=home.state,
                        err=done.err.strip()[-_MAX_SHOWN_CHARS:],
                    )
                )
        done = call_program(link, self._environment, "--version")
        if done.code:
            raise HermesError(
                t.later(
                    "It does not start: {err}", err=done.err.strip()[-_MAX_SHOWN_CHARS:]
                )
            )

    def _paused_gateways(self, link: Path) -> GatewayPause:
        """Returns the pause in which running gateways drain. After it, they go on as the copy that the link starts."""
        return GatewayPause(self.homes(), lambda: self._restart_gateways(link))

    def _restart_gateways(self, link: Path) -> None:
        for home in self.homes():
            runs = gateway_runs(home)
            environment = self._environment_of(home)
            done = call_program(link, environment, "gateway", "restart")
            if done.code:
                why = done.err.strip()[-_MAX_SHOWN_CHARS:]
                self._tell(
                    t(
                        "The gateway of {home} was not restarted: {why}",
                        home=home.root,
                        why=why,
                    )
                )
            elif runs:
                self._tell(done.out.strip())

    def _tell_ended(self, homes: Sequence[Home]) -> None:
        for home in homes:
            self._tell(
                t(
                    "The gateway of {home} has ended. Start it with: hermes gateway run",
                    home=home.root,
                )
            )

    def _environment_of(self, home: Home) -> dict[str, str]:
        """Returns the environment for a program that must use exactly this home, whatever profile is active."""
        return {**self._environment, **home.variables}

    def _schemas(self) -> dict[str, int]:
        return {str(one.root): schema_version(one.state) for one in self.homes()}

    def _migrated(self, record: UpdateRecord) -> bool:
        """Returns whether a session log has a newer version than before the update, which no older Hermes can read."""
        return any(
            record.schemas.get(home, now) < now for home, now in self._schemas().items()
        )

    def _restore(self, record: UpdateRecord) -> None:
        """Restores the backups with the previous version, because a newer one would migrate them at once."""
        previous = Path(record.previous_program)
        for home, file in record.backups.items():
            restored = Home(Path(home))
            with kept_restart_requests(restored):
                environment = self._environment_of(restored)
                done = call_program(previous, environment, "restore", file)
            if done.code:
                why = done.err.strip()[-_MAX_SHOWN_CHARS:]
                raise HermesError(
                    t.later(
                        "The backup of {home} was not restored: {why}",
                        home=home,
                        why=why,
                    ),
                    hint=t.later(
                        "Restore it yourself: hermes restore {file}", file=file
                    ),
                )
            self._tell(done.out.strip())


def _first_start_failed(record: UpdateRecord, error: HermesError) -> HermesError:
    return HermesError(
        t.later(
            "The first start failed, so the old version was put back. {message}",
            message=error.message,
        ),
        hint=t.later(
            "The backup is kept: {backups}",
            backups=", ".join(record.backups.values())
            or t("there was nothing to back up"),
        ),
    )


def copies_record(copies: InstalledCopies) -> UpdateRecord | None:
    """Returns the record before an update; None if it can't be read."""
    try:
        return copies.record()
    except (HermesError, msgspec.MsgspecError):
        return None


def _existing(path: Path) -> Path:
    while not path.exists():
        path = path.parent
    return path
