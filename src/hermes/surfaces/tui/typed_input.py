"""What a person typed, on its way to the session: words, pictures, and whether it goes into the running turn."""

import msgspec

from hermes.schema.messages import Image


class TypedInput(msgspec.Struct, frozen=True):
    """One message or command, whole."""

    text: str
    images: tuple[Image, ...] = ()
    steers: bool = False
    at: float | None = None
    """When it was sent, in the loop's time; None where lines come from a pipe."""
