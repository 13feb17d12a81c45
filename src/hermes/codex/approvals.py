"""Answers codex's requests: by Hermes' own policy first, then by the person. Anything but a clear yes is a no.

Codex asks when it wants to leave its sandbox. It is therefore not enough that the policy allows a command inside
Hermes' sandbox: it must allow access to the whole machine. Anything the policy forbids is declined without asking.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import msgspec

from hermes.codex import wire
from hermes.codex.approver import CodexApprover, CommandPolicy, request_for
from hermes.codex.elicitation import Elicitations, Elicited, InputAsked
from hermes.codex.failures import CodexRefused
from hermes.codex.items import (
    Item,
    PatchedFile,
    PatchItem,
    call_of,
    changes_in_words,
    changes_to_decide,
    relative_to,
    shown_command,
)
from hermes.core.ports import PolicyDecision
from hermes.schema.events import ApprovalRequested
from hermes.text.translation import translator

t = translator(__name__)

_DECISIONS = {
    "once": "accept",
    "session": "acceptForSession",
    "always": "acceptForSession",
}
_NOTHING: Mapping[str, object] = {}
_MAX_QUESTION_DIFF_CHARACTERS = 6_000  # characters of a patch in a question


class _FileSystem(msgspec.Struct, frozen=True):
    read: tuple[str, ...] | None = None
    write: tuple[str, ...] | None = None
    entries: tuple[Any, ...] | None = None


class _Permissions(msgspec.Struct, frozen=True, rename="camel"):
    network: Any = None
    file_system: _FileSystem | None = None

    def writable(self) -> tuple[Path, ...]:
        """Returns the paths that would become writable, as far as the request names them."""
        files = self.file_system or _FileSystem()
        named = [_written(entry) for entry in files.entries or ()]
        return tuple(Path(place) for place in (*(files.write or ()), *named) if place)


class _Host(msgspec.Struct, frozen=True):
    host: str = ""
    protocol: str = ""


class _CommandAsked(msgspec.Struct, frozen=True, rename="camel"):
    item_id: str = ""
    command: str | None = None
    cwd: str | None = None
    reason: str | None = None
    kind: str = "command"
    network_approval_context: _Host | None = None
    additional_permissions: msgspec.Raw = msgspec.Raw(b"null")


class _ChangeAsked(msgspec.Struct, frozen=True, rename="camel"):
    item_id: str = ""
    reason: str | None = None
    grant_root: str | None = None


class _PermissionsAsked(msgspec.Struct, frozen=True, rename="camel"):
    item_id: str = ""
    cwd: str | None = None
    reason: str | None = None
    permissions: msgspec.Raw = msgspec.Raw(b"null")


class CodexApprovals:
    """Answers codex's requests in one turn."""

    def __init__(
        self,
        approver: CodexApprover,
        judge: CommandPolicy,
        items: Mapping[str, Item],
        cwd: Path,
    ) -> None:
        self._approver = approver
        self._judge = judge
        self._items = items
        self._cwd = cwd
        self._elicitations = Elicitations(approver, judge, items, str(cwd))

    @property
    def waiting(self) -> int:
        """How many questions are waiting for a person now."""
        return self._approver.waiting

    async def answer(self, call: wire.CodexRequest) -> object:
        """Returns the answer to a request.

        Raises CodexRefused for an unknown request, so that codex always gets an answer, if only an error.
        """
        match call.method:
            case "item/commandExecution/requestApproval":
                return {
                    "decision": await self._command(call, _read(call, _CommandAsked))
                }
            case "item/fileChange/requestApproval":
                return {"decision": await self._change(call, _read(call, _ChangeAsked))}
            case "item/permissions/requestApproval":
                return await self._permissions(call, _read(call, _PermissionsAsked))
            case "mcpServer/elicitation/request":
                return await self._elicitations.answer(call, _read(call, Elicited))
            case "item/tool/requestUserInput":
                return await self._elicitations.input(_read(call, InputAsked))
            case _:
                raise CodexRefused(
                    t.later("Hermes does not answer {method}", method=call.method),
                    code=wire.UNKNOWN_METHOD,
                )

    async def _command(self, call: wire.CodexRequest, asked: _CommandAsked) -> str:
        if asked.network_approval_context is not None:
            return await self._host(call, asked, asked.network_approval_context)
        permissions = _decoded(asked.additional_permissions, _Permissions)
        command, cwd = shown_command(asked.command or ""), Path(asked.cwd or self._cwd)
        more = _in_words(asked.additional_permissions)
        runs = asked.kind == "command" and bool(command.strip())

        def judge() -> PolicyDecision:
            found = (
                self._judge.check(command, cwd, workspace=self._cwd)
                if command.strip()
                else PolicyDecision("ask")
            )
            if found.verdict != "forbid" and (places := permissions.writable()):
                files = self._judge.check_files((), self._cwd, below=places)
                return files if files.verdict == "forbid" else found
            return found

        arguments = {"command": command, "cwd": str(cwd)} | (
            {"permissions": more} if more else {}
        )
        if asked.kind != "command":
            arguments["kind"] = asked.kind
        summary = f"{_intention(asked.kind, command)}\nin {cwd}" + (
            f"\nwith these permissions: {more}" if more else ""  # not translated
        )
        request = request_for(
            _number(call, asked.item_id),
            "exec_command",
            arguments,
            summary,
            reason=asked.reason
            or t.logged("codex wants to run it outside its sandbox"),
        )
        raw = {"command": asked.command, "cwd": str(cwd)} | (
            {"permissions": more} if more else {}
        )
        shape = (
            f"codex exec_command {msgspec.json.encode(raw, order='sorted').decode()}"
        )
        request = msgspec.structs.replace(request, shape=shape, memorable=runs)
        is_plain = runs and not more
        answer = await self._approver.decide(
            request,
            judge,
            is_free=lambda one: is_plain and _is_free(one),
            plugin_call=("terminal", arguments),
        )
        return _DECISIONS.get(answer, "decline")

    async def _host(
        self, call: wire.CodexRequest, asked: _CommandAsked, wanted: _Host
    ) -> str:
        """Decides whether a command may reach a host that codex's sandbox blocks."""
        where = f"{wanted.protocol}://{wanted.host}" if wanted.protocol else wanted.host
        command = shown_command(asked.command or "")
        running = f"\nfor {command}" if command.strip() else ""
        request = request_for(
            _number(call, asked.item_id),
            "network_access",
            {"host": wanted.host, "protocol": wanted.protocol},
            f"reach {where or 'a host that codex does not name'}{running}\nin {asked.cwd or self._cwd}",  # not translated
            reason=asked.reason
            or t.logged("codex wants to reach it from inside its sandbox"),
            reach="network",
        )
        request = msgspec.structs.replace(request, memorable=bool(wanted.host))
        answer = await self._approver.decide(
            request,
            lambda: self._judge.check_host(wanted.host),
            is_free=lambda _: bool(wanted.host),
        )
        return _DECISIONS.get(answer, "decline")

    async def _change(self, call: wire.CodexRequest, asked: _ChangeAsked) -> str:
        item = self._items.get(asked.item_id)
        known = item if isinstance(item, PatchItem) else None
        below = (Path(asked.grant_root),) if asked.grant_root else ()
        paths = known.paths(self._cwd) if known else ()
        request = self._patch(call, asked, known)
        answer = await self._approver.decide(
            request,
            lambda: self._judge.check_files(paths, self._cwd, below=below),
            plugin_call=(
                "apply_patch",
                _patch_arguments(known, paths, below, str(self._cwd)),
            ),
        )
        return _DECISIONS.get(answer, "decline")

    def _patch(
        self, call: wire.CodexRequest, asked: _ChangeAsked, item: PatchItem | None
    ) -> ApprovalRequested:
        cwd = str(self._cwd)
        root = (
            f"\nand from then on anywhere below {asked.grant_root}"  # not translated
            if asked.grant_root
            else ""
        )
        reason = asked.reason or t.logged(
            "codex wants to change files outside its sandbox"
        )
        if item is None:
            what = f"a patch whose content codex did not announce\nin {cwd}{root}"  # not translated
            blind = request_for(
                _number(call, asked.item_id), "apply_patch", {}, what, reason=reason
            )
            return msgspec.structs.replace(blind, memorable=False)
        made = call_of(item, cwd)
        diff = _cut(item.changes, cwd)
        return ApprovalRequested(
            call_id=made.id,
            name=made.name,
            arguments=made.arguments,
            summary=f"{changes_in_words(item.changes, cwd)}\nin {cwd}{root}\n{diff}",
            reason=reason,
            reach="machine",
            shape=f"codex {made.name} {made.arguments}",
        )

    async def _permissions(
        self, call: wire.CodexRequest, asked: _PermissionsAsked
    ) -> object:
        """Grants permissions: exactly those that were shown, for the turn or the session."""
        wanted = _in_words(asked.permissions)
        places = _decoded(asked.permissions, _Permissions).writable()
        request = request_for(
            _number(call, asked.item_id),
            "request_permissions",
            {"permissions": wanted},
            f"give codex more permissions: {wanted or 'it does not say which'}\nin {asked.cwd or self._cwd}",  # not translated
            reason=asked.reason
            or t.logged("codex wants to do more than its sandbox allows"),
        )
        answer = (
            await self._approver.decide(
                request, lambda: self._judge.check_files((), self._cwd, below=places)
            )
            if wanted
            else "deny"
        )
        granted: object = asked.permissions if answer != "deny" else _NOTHING
        return {
            "permissions": granted,
            "scope": "session" if answer in ("session", "always") else "turn",
        }


def _patch_arguments(
    item: PatchItem | None, paths: Sequence[Path], below: Sequence[Path], cwd: str
) -> dict[str, Any]:
    """Returns a patch in the form that plugins receive. A patch that codex did not announce has no `paths`."""
    arguments: dict[str, Any] = {"below": [str(one) for one in below]} if below else {}
    if item is not None:
        arguments["patch"] = changes_to_decide(item.changes, cwd)
        arguments["paths"] = [str(path) for path in paths]
    return arguments


def would_run(
    name: str, arguments: Mapping[str, Any], judge: CommandPolicy, workspace: Path
) -> bool:
    """Returns whether the current policy would answer codex's open request without asking a person."""
    match name, arguments:
        case "exec_command", {"command": str(command), "cwd": str(folder), **more} if (
            command.strip() and not more
        ):
            return _is_free(judge.check(command, Path(folder), workspace=workspace))
        case "network_access", {"host": str(host)} if host:
            return judge.check_host(host).verdict == "allow"
        case _:
            return False  # files, permissions and MCP tools need approval in every mode


def _is_free(decision: PolicyDecision) -> bool:
    """Returns whether a command may leave codex's sandbox without approval."""
    return decision.verdict == "allow" and decision.reach == "machine"


def _intention(kind: str, command: str) -> str:
    """Returns what codex wants to do, on the first line of a question."""
    if kind == "writeStdin":
        return f"type into the running command {command}".rstrip()  # not translated
    return (
        command
        if command.strip()
        else "an action that codex describes without a command"  # not translated
    )


def _number(call: wire.CodexRequest, item: str) -> str:
    return item or f"codex-{call.id}"


def _in_words(permissions: msgspec.Raw) -> str:
    """Returns the permissions exactly as codex asks for them, without empty fields; empty if there are none."""
    found = _decoded(permissions, dict[str, Any])
    asked = {key: _without_nothing(value) for key, value in found.items()}
    kept = {key: value for key, value in asked.items() if value not in (None, {}, [])}
    if kept:
        return msgspec.json.encode(kept, order="sorted").decode()
    return ""


def _without_nothing(value: object) -> object:
    if isinstance(value, Mapping):
        return {
            key: inner for key, inner in value.items() if inner not in (None, {}, [])
        }
    return value


def _written(entry: object) -> str:
    """Returns the path of an entry that grants write access; empty for any other entry."""
    if not isinstance(entry, Mapping) or entry.get("access") != "write":
        return ""
    place = entry.get("path")
    if not isinstance(place, Mapping):
        return ""
    if place.get("type") == "special":
        value = place.get("value")
        if isinstance(value, Mapping) and value.get("kind") == "root":
            return "/"
        return ""
    return str(place.get("path") or place.get("pattern") or "")


def _cut(changes: Sequence[PatchedFile], cwd: str) -> str:
    """Returns the patch, cut to the available space. Names the files that are not shown at all."""
    diff = changes_to_decide(changes, cwd)
    left = len(diff) - _MAX_QUESTION_DIFF_CHARACTERS
    if left <= 0:
        return diff
    sizes = accumulate(
        len(changes_to_decide([change], cwd)) + 1 for change in changes[:-1]
    )
    hidden = [
        change
        for change, start in zip(changes[1:], sizes, strict=True)
        if start >= _MAX_QUESTION_DIFF_CHARACTERS
    ]
    files = (
        f", of {', '.join(relative_to(change.path, cwd) for change in hidden)}"
        if hidden
        else ""
    )
    note = f"[... {left:,} more characters of the patch not shown here{files} ...]"  # not translated
    return f"{diff[:_MAX_QUESTION_DIFF_CHARACTERS]}\n{note}"


def _decoded(raw: msgspec.Raw, kind: type[Any]) -> Any:
    """Returns a part of a request; empty if codex omitted it. Raises CodexRefused if it can't be read."""
    if bytes(raw).strip() == b"null":
        return kind()
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.DecodeError as error:
        raise CodexRefused(
            t.later(
                "Hermes does not understand these permissions: {error}", error=error
            ),
            code=-32602,
        ) from error


def _read(call: wire.CodexRequest, kind: type[Any]) -> Any:
    """Returns the request's fields. Raises CodexRefused if they can't be read, because then nobody can judge them."""
    try:
        return msgspec.json.decode(call.params, type=kind)
    except msgspec.DecodeError as error:
        raise CodexRefused(
            t.later(
                "Hermes does not understand this {method}: {error}",
                method=call.method,
                error=error,
            ),
            code=-32602,
        ) from error
