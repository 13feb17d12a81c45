"""The settings of boards as they are now: limits count before each start, and in the reasons that people read."""

import logging
from weakref import WeakKeyDictionary

from hermes.app.app import App
from hermes.errors import SettingsError
from hermes.settings.boards import BoardSettings
from hermes.settings.load import load

log = logging.getLogger("hermes.boards")


class CurrentSettings:
    """The settings of boards as they are now: the file is read again when it has changed."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._stamp = self._look()
        self._changed: BoardSettings | None = None

    def read(self) -> BoardSettings:
        """The settings. A file that can't be used changes nothing, and the log says so."""
        stamp = self._look()
        if stamp != self._stamp:
            self._stamp = stamp
            try:
                self._changed = load(home=self._app.home).boards
            except SettingsError as error:
                log.warning("the changed settings of boards are not used: %s", error)
        return self._changed or self._app.settings.boards

    def _look(self) -> tuple[int, int]:
        try:
            found = self._app.home.config.stat()
        except OSError:
            return (0, 0)
        return (found.st_mtime_ns, found.st_size)


_known: WeakKeyDictionary[App, CurrentSettings] = WeakKeyDictionary()


def current_settings(app: App) -> CurrentSettings:
    """The same for all that ask in a process, from the first time on."""
    return _known.setdefault(app, CurrentSettings(app))
