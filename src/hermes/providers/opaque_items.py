"""What a provider wants back byte for byte (signatures, encrypted thinking), kept as JSON text in the message."""

import msgspec

from hermes.providers.quirks import Api
from hermes.schema.messages import AssistantMessage


class Opaque(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`items` is the reply in the format's own words, in order; `extras` belong to tool calls, by their ids.

    `calls` are the ids of the calls among the items: a message that has lost one must not bring it back.
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
    """As text for the message; nothing when there is nothing to keep."""
    return msgspec.json.encode(opaque).decode() if opaque.items or opaque.extras else ""


def unpack(
    message: AssistantMessage, api: Api, provider: str, model: str = ""
) -> Opaque | None:
    """What `message` carries for this format, if this provider (and model, where named) wrote it."""
    if (
        not message.opaque
        or message.provider != provider
        or (model and message.model != model)
    ):
        return None
    try:
        opaque = _decoder.decode(message.opaque)
    except msgspec.DecodeError:  # written by something else, such as an import: the plain message is sent instead
        return None
    same = opaque.api == api and (
        not opaque.calls or opaque.calls == [call.id for call in message.tool_calls]
    )
    return opaque if same else None


_object = msgspec.json.Decoder(dict[str, msgspec.Raw])


def arguments_object(arguments: str) -> str:
    """The arguments of an earlier call as the text of a JSON object, which most services insist on.

    A call with broken arguments was never run; the model is shown what it wrote.
    """
    try:
        _object.decode(arguments)
    except (msgspec.DecodeError, RecursionError):
        return msgspec.json.encode({"invalid_json": arguments}).decode()
    return arguments
