"""Asks the user what a server wants to know during a call: a form, field by field, or an address to open.

If nobody is there, three answers are invalid, or the user says no, the server is told that the user declined.
"""

from collections.abc import Mapping
from typing import Any

from hermes.core.ports import AskUser
from hermes.errors import ToolFailed
from hermes.mcp.safe_text import one_line, plain
from hermes.primitives.untyped import object_of, objects_of
from hermes.text.translation import translator

t = translator(__name__)


DECLINE = "Decline"
_DONE = "Done"
_MAX_FIELD_ATTEMPTS = 3
_MAX_FIELDS = 20
_MAX_QUESTION_CHARACTERS = 2_000
_YES = frozenset(("yes", "y", "true", "1", "on"))
_NO = frozenset(("no", "n", "false", "0", "off"))


class Declined(Exception):
    """The user does not answer the question."""


async def answer(
    server: str, params: Mapping[str, Any], ask: AskUser
) -> dict[str, Any]:
    """Returns the user's answer to a question, in the form of the protocol."""
    message = plain(str(params.get("message", "")))[:_MAX_QUESTION_CHARACTERS]
    try:
        if params.get("mode") == "url":
            await _visit(server, message, str(params.get("url", "")), ask)
            return {"action": "accept"}
        content = await _form(server, message, params.get("requestedSchema", {}), ask)
    except (Declined, ToolFailed):
        return {"action": "decline"}
    return {"action": "accept", "content": content}


async def _visit(server: str, message: str, url: str, ask: AskUser) -> None:
    if (
        not url.startswith(("https://", "http://"))
        or not url.isprintable()
        or " " in url
    ):
        raise Declined
    head = t.logged(
        "The MCP server {server} asks you to open an address: {message}",
        server=server,
        message=message,
    )
    text = f"{head}\n{url}\n{t.logged('Open it only if you expect this.')}"
    if (await ask(text, (_DONE, DECLINE))).strip().lower() != _DONE.lower():
        raise Declined


async def _form(
    server: str, message: str, schema: Mapping[str, Any], ask: AskUser
) -> dict[str, Any]:
    head = t.logged(
        "The MCP server {server} asks: {message}", server=server, message=message
    )
    fields = schema.get("properties", {})
    if not isinstance(fields, dict) or len(fields) > _MAX_FIELDS:
        raise Declined
    if not fields:
        if (await ask(head, ("Yes", DECLINE))).strip().lower() not in _YES:
            raise Declined
        return {}
    required = schema.get("required") or ()
    content: dict[str, Any] = {}
    for number, (name, field) in enumerate(fields.items()):
        also = t.logged("The MCP server {server} also asks:", server=server)
        intro = also if number else head
        value = await _field(intro, name, field, ask, is_required=name in required)
        if value is not None:
            content[name] = value
    return content


async def _field(
    intro: str, name: str, field: Mapping[str, Any], ask: AskUser, *, is_required: bool
) -> Any:
    """Asks for one value; None for an optional one that was left empty."""
    label = one_line(str(field.get("title") or name), 100)
    about = one_line(str(field.get("description") or ""), 300)
    choices = _choices(field)
    wanted = f"{label}: {about}" if about else label
    if not is_required:
        wanted = t.logged("{wanted} (may be left empty)", wanted=wanted)
    text = f"{intro}\n{wanted}"
    options = (*choices, DECLINE)
    for _ in range(_MAX_FIELD_ATTEMPTS):
        given = (await ask(text, options)).strip()
        if given.lower() == DECLINE.lower() and DECLINE not in choices:
            raise Declined
        if not given and not is_required:
            return None
        try:
            return _value(given, field, choices)
        except ValueError as problem:
            text = f"{wanted}\n{problem}"
    raise Declined


def _choices(field: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the choices, if the field has any."""
    if field.get("type") == "boolean":
        return ("Yes", "No")
    items = field.get("items") if field.get("type") == "array" else field
    choices = object_of(items)
    titled = choices.get("oneOf") or choices.get("anyOf")
    found = choices.get("enum") or [one.get("const") for one in objects_of(titled)]
    return tuple(one_line(str(value), 100) for value in found if isinstance(value, str))


def _value(given: str, field: Mapping[str, Any], choices: tuple[str, ...]) -> Any:
    """Converts an answer to the field's type. ValueError says what is expected."""
    match field.get("type"):
        case "boolean":
            if given.lower() not in _YES | _NO:
                raise ValueError(
                    t.logged(
                        "It has to be {yes} or {no}. Please try again.",
                        yes="yes",
                        no="no",
                    )
                )
            return given.lower() in _YES
        case "integer" | "number" as kind:
            return _number(given, field, whole=kind == "integer")
        case "array":
            return [
                _chosen(part.strip(), choices)
                for part in given.split(",")
                if part.strip()
            ]
        case _:
            return _chosen(given, choices) if choices else _text(given, field)


def _number(given: str, field: Mapping[str, Any], *, whole: bool) -> float:
    try:
        number = int(given) if whole else float(given)
    except ValueError:
        raise ValueError(
            t.logged("It has to be a whole number. Please try again.")
            if whole
            else t.logged("It has to be a number. Please try again.")
        ) from None
    low, high = field.get("minimum"), field.get("maximum")
    if (isinstance(low, (int, float)) and number < low) or (
        isinstance(high, (int, float)) and number > high
    ):
        raise ValueError(
            t.logged(
                "It has to be in this range: {low} to {high}. Please try again.",
                low=_limit(low),
                high=_limit(high),
            )
        )
    return number


def _chosen(given: str, choices: tuple[str, ...]) -> str:
    for choice in choices:
        if choice.lower() == given.lower():
            return choice
    names = ", ".join(choices)
    raise ValueError(
        t.logged("It has to be one of {names}. Please try again.", names=names)
    )


def _text(given: str, field: Mapping[str, Any]) -> str:
    low, high = field.get("minLength"), field.get("maxLength")
    if (isinstance(low, int) and len(given) < low) or (
        isinstance(high, int) and len(given) > high
    ):
        raise ValueError(
            t.logged(
                "It has to have {low} to {high} characters. Please try again.",
                low=_limit(low),
                high=_limit(high),
            )
        )
    return given


def _limit(value: object) -> str:
    return "…" if value is None else str(value)
