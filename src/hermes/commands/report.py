"""`hermes report`: one file to attach to a bug report, shown before it is written. Nothing is sent anywhere.

It holds versions, the settings that were changed, what doctor finds, the last failures of a session and the shape of
its last request. Secrets are masked. Messages are left out, unless the user asks for them.
"""

import platform
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import msgspec

from hermes import __version__
from hermes.commands.command import Arg, command
from hermes.commands.context import CommandContext
from hermes.commands.doctor_checks import CHECKS, Site
from hermes.commands.views import Block, line
from hermes.errors import HermesError, SessionNotFound, UsageError, os_reason
from hermes.primitives.files import create_private
from hermes.primitives.untyped import object_of
from hermes.schema.events import LoginExpired, ModelRetried, ReplyRejected, TurnEnded
from hermes.schema.messages import AssistantMessage, ToolFinished, UserMessage
from hermes.settings import Home
from hermes.settings.redaction import mask, mask_personal
from hermes.text.translation import in_language, translator

t = translator(__name__)


_MAX_FAILURES = 20
_MAX_LOG_LINES = 40
_MAX_TEXT_CHARACTERS = 400
_HIDDEN = "********"


class ReportFile(msgspec.Struct, frozen=True, kw_only=True):
    """The report, and where it was written; `file` is empty if it was only shown."""

    file: str
    text: str

    def view(self, _now: float) -> Iterable[Block]:
        yield line(
            t("Wrote {file}. Only you can read it; nothing was sent.", file=self.file)
            if self.file
            else self.text
        )


@command("report")
def write_report(
    context: CommandContext,
    file: Annotated[str, Arg("the file to write (default: hermes-report-DATE.md here)", metavar="FILE")] = "",
    *,
    session: Annotated[str, Arg("the session to report on (default: the newest)", metavar="ID")] = "last",
    with_text: Annotated[bool, "include what was said, shortened and masked"] = False,
    show: Annotated[bool, "show it without writing it"] = False,
    yes: Annotated[bool, "write it without asking"] = False,
) -> ReportFile:  # fmt: skip
    """Write a redacted report about a problem, after showing it to you."""
    with in_language(None):  # whoever helps reads it
        parts = _parts(context, session, with_text=with_text)
        text = Redactor(context.home).redacted("\n".join(parts))
    if show:
        return ReportFile(file="", text=text)
    target = context.path(file or f"hermes-report-{time.strftime('%Y%m%d-%H%M%S')}.md")
    if not yes:
        context.surface.tell(line(text))
        context.confirm(
            t("Write this to {target}?", target=target), t("Nothing was written.")
        )
    try:
        with create_private(target) as written:
            _write_whole(target, written, text.encode())
    except FileExistsError as error:
        raise UsageError(t("{target} already exists.", target=target), hint=t("Give another name.")) from error  # fmt: skip
    except OSError as error:
        raise HermesError(
            t(
                "{target} can't be written: {error}",
                target=target,
                error=os_reason(error),
            )
        ) from error
    return ReportFile(file=str(target), text=text)


def _write_whole(target: Path, file: BinaryIO, content: bytes) -> None:
    """Writes the content, or removes the file again if it does not fit on the disk."""
    try:
        file.write(content)
        file.flush()
    except OSError:
        target.unlink(missing_ok=True)
        raise


class Redactor:
    """Masks what looks like a secret, every secret of a home, and the user's name in paths."""

    def __init__(self, home: Home) -> None:
        from hermes.app.backup import secret_values

        self._secrets = secret_values(home)

    def redacted(self, text: str) -> str:
        """The text with all of that masked."""
        for secret in self._secrets:
            text = text.replace(secret, _HIDDEN)
        home = str(Path.home())
        return mask_personal(mask(text.replace(home, "~") if len(home) > 1 else text))


def _parts(
    context: CommandContext, session: str, *, with_text: bool
) -> Iterator[str]:  # not translated
    yield "# Hermes report\n"
    yield f"- Hermes {__version__}, Python {platform.python_version()}"
    yield f"- {platform.system()} {platform.release()} {platform.machine()}"
    yield from _section("Settings that were changed", _changed(context))
    yield from _section("Doctor", _findings(context))
    yield from _section("Session", _session(context, session, with_text=with_text))
    yield from _section("End of the log", _log(context))


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    yield f"\n## {title}\n"
    found = [f"- {one}" for one in lines]
    yield "\n".join(found) if found else "(none)"


def _changed(context: CommandContext) -> Iterator[str]:
    """The keys that differ from their defaults. Values are shown only where they can't be private."""
    defaults = msgspec.to_builtins(type(context.settings)())
    yield from _differences("", msgspec.to_builtins(context.settings), defaults)


def _differences(path: str, value: Any, default: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            known = object_of(default).get(key)
            yield from _differences(f"{path}.{key}".lstrip("."), inner, known)
    elif value != default and value not in ("", None, [], ()):
        is_plain = isinstance(value, bool | int | float) or path.startswith("model.")
        yield f"{path}: {value if is_plain else 'set'}"


def _findings(context: CommandContext) -> Iterator[str]:  # not translated
    site = Site(context.home, context.environment)
    for check in CHECKS:
        try:
            for one in check(site):
                yield f"{one.mark} {one.check}: {one.text}"
        except OSError as error:
            yield f"{check.__name__} can't look: {os_reason(error)}"


def _session(
    context: CommandContext, name: str, *, with_text: bool
) -> Iterator[str]:  # not translated
    """The last failures of a session, and the shape of its last request."""
    if not context.app.has_log:
        return
    from hermes.app.session_journal import read_history

    store = context.app.store
    try:
        found = store.sessions.find(name)
    except SessionNotFound:
        if name == "last":
            return
        raise
    yield f"{found.id}"
    failed = [one for row in store.log.every_event(found.id) if (one := _failure(row.event))]  # fmt: skip
    yield from failed[-_MAX_FAILURES:]
    history = read_history(store, found.id)
    if history.prompt is not None:
        sizes = ", ".join(f"{len(part):,}" for part in history.prompt.system)
        yield f"request: system prompt in parts of {sizes} characters"
        yield f"request: tools {', '.join(one.name for one in history.prompt.tools)}"
    for message in history.messages:
        yield f"request: {_message(message, with_text=with_text)}"


def _failure(event: Any) -> str:  # not translated
    match event:
        case ModelRetried():
            number = f" [request {event.request_id}]" if event.request_id else ""
            timing = f" ({event.timing})" if event.timing else ""
            return f"retried: {event.reason}{number}{timing}: {event.detail}"
        case ReplyRejected():
            return f"reply not usable: {event.reason}: {event.detail}"
        case LoginExpired():
            return f"login expired: {event.provider}"
        case TurnEnded() if event.reason != "done":
            return f"turn ended: {event.reason}: {event.detail}"
    return ""


def _message(message: Any, *, with_text: bool) -> str:  # not translated
    match message:
        case UserMessage(text=text, images=images):
            shape = f"user, {len(text):,} characters, {len(images)} pictures"
        case AssistantMessage(text=text, tool_calls=calls, finish=finish):
            names = ", ".join(call.name for call in calls)
            shape = f"assistant, {len(text):,} characters, finish {finish}, calls: {names or 'none'}"
        case ToolFinished(text=text, name=name, ok=ok):
            shape = f"result of {name}, {len(text):,} characters, {'ok' if ok else 'failed'}"
        case _:
            return type(message).__name__
    if not with_text:
        return shape
    said = " ".join(mask_personal(mask(text)).split())[:_MAX_TEXT_CHARACTERS]
    return f"{shape}: {said}"


def _log(context: CommandContext) -> Iterator[str]:
    try:
        content = (context.home.logs / "hermes.log").read_text(errors="replace")
    except OSError:
        return
    yield from content.splitlines()[-_MAX_LOG_LINES:]
