"""What a provider wants back byte for byte (signatures, encrypted thinking), stored as JSON text in the message."""

import msgspec

from hermes.providers.provider_table import Api
from hermes.schema.messages import AssistantMessage


class Opaque(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`items` is the reply in the wire format, in order; `extras` belong to tool calls, by their ids.

    `calls` are the ids of the calls among the items: a call that the message has lost must not come back.
    """

    api: Api
    calls: list[str] = []
    items: list[msgspec.Raw] = []
    extras: dict[str, msgspec.Raw] = {}


_decoder = msgspec.json.Decoder(Opaque)

ABSENT = msgspec.Raw(b"")  # a field that was not there


def is_present(raw: msgspec.Raw) -> bool:
    """Whether there is a value, which `null` is not."""
    return raw is not ABSENT and bytes(raw) != b"null"


def pack(opaque: Opaque) -> str:
    """Encodes it for the message; empty if there is nothing to send back."""
    if opaque.items or opaque.extras:
        return msgspec.json.encode(opaque).decode()
    return ""


def unpack(
    message: AssistantMessage, api: Api, provider: str, model: str = ""
) -> Opaque | None:
    """Returns what `message` carries for this format, if this provider (and this model, if named) wrote it."""
    is_own = message.provider == provider and model in ("", message.model)
    if not message.opaque or not is_own:
        return None
    try:
        opaque = _decoder.decode(message.opaque)
    except msgspec.DecodeError:  # an import wrote it: the plain message is sent instead
        return None
    if opaque.api != api:
        return None
    is_complete = opaque.calls in ([], [call.id for call in message.tool_calls])
    return opaque if is_complete else None


_object = msgspec.json.Decoder(dict[str, msgspec.Raw])


def arguments_object(arguments: str) -> str:
    """Returns the arguments of an earlier call as a JSON object, which most services insist on.

    A call with broken arguments was never run; the model sees what it wrote.
    """
    try:
        _object.decode(arguments)
    except (msgspec.DecodeError, RecursionError):
        return msgspec.json.encode({"invalid_json": arguments}).decode()
    return arguments
