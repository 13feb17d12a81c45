"""The events that hooks receive. They are derived from the events of the sessions that this process runs, and published
as `gateway.*` in every process, whether or not it has hooks.

Hooks also receive such events when other code publishes them, as the gateway does for its commands.
"""

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from hermes.errors import HermesError, SessionNotFound
from hermes.events.envelope import is_foreign
from hermes.schema.catalogue import CATALOGUE
from hermes.schema.event_base import complete

if TYPE_CHECKING:
    from hermes.app.app import App
    from hermes.plugins.hook_runner import HookRunner, HookStats

log = logging.getLogger("hermes.hooks")

_MAX_TRACKED_SESSIONS = 4_096
_PREFIX = "gateway."


class _Session(msgspec.Struct):
    """What hooks are told about a session of this process."""

    platform: str
    user: str
    message: str = ""
    response: str = ""
    iteration: int = 0


class HookEvents:
    """Publishes the events for hooks, and runs the hooks, until `close`."""

    def __init__(self, app: "App") -> None:
        self._app = app
        self._began = app.clock.now()
        self._sessions: dict[str, _Session] = {}
        self._runner = _runner(app)
        pairs: list[tuple[str, Callable[[Mapping[str, Any]], None]]] = [
            ("session.created", self._created),
            ("agent.message.user", self._on_user_message),
            ("agent.turn.started", self._started),
            ("agent.message.assistant", self._replied),
            ("agent.turn.ended", self._ended),
            ("schedule.ended", self._job_over),
            ("gateway.**", self._fire),
        ]
        self._handles = [
            app.bus.subscribe(topic, _local(callback)) for topic, callback in pairs
        ]

    def stats(self) -> "list[HookStats]":
        if self._runner is not None:
            return self._runner.stats()
        return []

    def reload(self) -> None:
        """Reads the hooks again. The old ones finish the events that they received."""
        before, self._runner = self._runner, _runner(self._app)
        if before is not None:
            before.close()

    def close(self) -> None:
        """Publishes the end of each session, and waits a while for the hooks."""
        for session in list(self._sessions):
            self._publish("session.end", session)
        for handle in self._handles:
            self._app.bus.unsubscribe(handle)
        if self._runner is not None:
            self._runner.close()

    def _created(self, event: Mapping[str, Any]) -> None:
        session = event["session_id"]
        person = (
            self._app.person(session)
            if event.get("kind") == "child"
            else event.get("person", "")
        )
        self._remember(session, _Session(event.get("surface", ""), person))
        self._publish("session.start", session, resumed=False)

    def _on_user_message(self, event: Mapping[str, Any]) -> None:
        self._known(event["session_id"]).message = event["text"]

    def _started(self, event: Mapping[str, Any]) -> None:
        known = self._known(event["session_id"])
        known.response, known.iteration = "", 0
        self._publish(
            "agent.start", event["session_id"], event["turn_id"], message=known.message
        )

    def _replied(self, event: Mapping[str, Any]) -> None:
        known = self._known(event["session_id"])
        known.iteration += 1
        known.response = event.get("text") or known.response
        names = [call["name"] for call in event.get("tool_calls", ())]
        session, turn = event["session_id"], event["turn_id"]
        self._publish(
            "agent.step", session, turn, iteration=known.iteration, tool_names=names
        )

    def _ended(self, event: Mapping[str, Any]) -> None:
        known = self._known(event["session_id"])
        said = {"message": known.message, "response": known.response}
        known.message = known.response = ""
        self._publish(
            "agent.end",
            event["session_id"],
            event["turn_id"],
            reason=event["reason"],
            **said,
        )

    def _job_over(self, event: Mapping[str, Any]) -> None:
        """A job's session ends with its run, while a gateway runs for long."""
        if event.get("session") in self._sessions:
            self._publish("session.end", event["session"])

    def _fire(self, event: Mapping[str, Any]) -> None:
        topic = event["type"]
        if topic in {"gateway.session.end", "gateway.session.reset"}:
            self._sessions.pop(str(event.get("session_id")), None)
        if self._runner is None:
            return
        kind = (
            "gateway:startup"
            if topic == "gateway.startup"
            else topic.removeprefix(_PREFIX).replace(".", ":", 1)
        )
        self._runner.fire(kind, _plain(event))

    def _publish(self, kind: str, session: str, turn: str = "", **more: Any) -> None:
        known = self._known(session)
        about = {"platform": known.platform, "user": known.user, "session_id": session}
        topic = _PREFIX + kind
        fields = complete(CATALOGUE[topic], about | more)
        self._app.bus.publish(topic, fields | ({"turn_id": turn} if turn else {}))

    def _known(self, session: str) -> _Session:
        known = self._sessions.get(session)
        if known is not None:
            return known
        resumed = True
        try:
            info = self._app.store.sessions.origin(session)
            known, resumed = (
                _Session(info.surface, self._app.person(session)),
                info.created < self._began,
            )
        except SessionNotFound:
            known = _Session("", "")
        self._remember(session, known)
        self._publish("session.start", session, resumed=resumed)
        return known

    def _remember(self, session: str, known: _Session) -> None:
        self._sessions[session] = known
        if len(self._sessions) > _MAX_TRACKED_SESSIONS:  # the oldest counts as ended
            self._publish("session.end", next(iter(self._sessions)))


def _runner(app: "App") -> "HookRunner | None":
    """The runner of the home's hooks; None when there are no hooks."""
    if not app.home.hooks.is_dir():
        return None
    from hermes.plugins.hook_runner import HookRunner

    return HookRunner(_trusted(app))


def _trusted(app: "App") -> list[Any]:
    """The hooks of the home. Those that are not trusted are named in the log."""
    from hermes.plugins.hooks import Hooks

    try:
        found = Hooks(app.home).every()
    except HermesError as error:
        log.warning("no hooks run: %s", error)
        return []
    for hook in found:
        if hook.state == "broken":
            log.warning("the hook %s can't be used: %s", hook.name, hook.problem)
        elif hook.state != "trusted":
            why = "has changed" if hook.state == "changed" else "is new"
            log.warning(
                "the hook %s %s and does not run; allow it with: hermes hooks trust %s",
                hook.name,
                why,
                hook.name,
            )
    return found


def _local(
    callback: Callable[[Mapping[str, Any]], None],
) -> Callable[[Mapping[str, Any]], None]:
    """Ignores events of other processes, which run the hooks themselves."""

    def hear(event: Mapping[str, Any]) -> None:
        if not is_foreign(event):
            callback(event)

    return hear


def _plain(event: Mapping[str, Any]) -> dict[str, Any]:
    from hermes.events import thaw

    return thaw(event)
