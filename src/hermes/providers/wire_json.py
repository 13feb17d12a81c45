"""Reads a server's JSON, and repairs it where only the transport is at fault.

Some servers cut a reply between the two halves of a surrogate pair, or between the bytes of one character. The first
half is held back until the frame with the second one comes. An invalid byte becomes U+FFFD in prose. In a
tool call's arguments it becomes NUL, which JSON does not allow: such a call is never run, and the model is told. Names,
ids and types are never repaired, as a guess could turn one call into another.
"""

import re
from typing import TypeVar

import msgspec

from hermes.core.arguments import DAMAGED
from hermes.primitives.lazy_pattern import lazy_pattern
from hermes.text.translation import translator

t = translator(__name__)


T = TypeVar("T")

_PROSE = b"content|text|delta|reasoning_content|reasoning|refusal|thinking|summary"
_ARGUMENTS = b"arguments|partial_json"
_FIELD = lazy_pattern(
    rb'("(?:'
    + _PROSE
    + b"|("
    + _ARGUMENTS
    + rb'))"\s*:\s*)"([^"\\]*+(?:\\.[^"\\]*+)*+)"',
    re.DOTALL,
)
_CUT_CHARACTER = lazy_pattern(
    rb"(?:[\xc2-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf4][\x80-\xbf]{0,2})\Z"
)
_REST_OF_CHARACTER = lazy_pattern(rb"[\x80-\xbf]{1,3}")
_SURROGATE = lazy_pattern("[\ud800-\udfff]")


class WireJson:
    """Decodes the frames of one reply, in order. `lossy`: the last frame had an invalid byte or character."""

    def __init__(self) -> None:
        self.lossy = False
        self._held_bytes = b""  # the beginning of a character whose other bytes come with a later frame
        self._held_half = (
            ""  # the first half of a surrogate pair whose second half does
        )
        self._held_stand_in = ""

    def complete(self, text: list[str], arguments: list[str] | None) -> None:
        """At the end of the reply: a character that was never completed leaves a placeholder.

        `arguments` are those of the last call, if there is one.
        """
        if self._held_bytes or self._held_half:
            in_call = self._held_stand_in == DAMAGED
            (arguments if in_call and arguments is not None else text).append(
                self._held_stand_in
            )

    def decode(self, decoder: msgspec.json.Decoder[T], data: bytes) -> T:
        """Decodes `data`. Raises only msgspec.DecodeError."""
        self.lossy = False
        try:
            if not data.isascii():
                data.decode()  # parts that are passed on undecoded must be text too
            return decoder.decode(data)
        except RecursionError as error:
            raise msgspec.DecodeError(t.logged("it is nested too deeply")) from error
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            repaired = _FIELD.sub(self._repair, data)
            if repaired == data:
                raise msgspec.DecodeError(str(error)) from error
        try:
            repaired.decode()
            return decoder.decode(repaired)
        except (UnicodeDecodeError, RecursionError) as error:
            raise msgspec.DecodeError(str(error)) from error

    def _repair(self, found: re.Match[bytes]) -> bytes:
        """One field of the frame, with a valid string."""
        import json  # only here: it reads half of a surrogate pair, which msgspec does not

        stand_in = DAMAGED if found[2] else "\ufffd"
        inside = self._with_whole_bytes(found[3], stand_in)
        lossy = False
        try:
            text = inside.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            text = inside.decode("utf-8", "replace")
            lossy = True
        try:
            text = str(json.loads(f'"{text}"'))
        except ValueError:
            return found[0]
        if lossy:
            self.lossy = True
            text = text.replace("\ufffd", stand_in)
        return found[1] + msgspec.json.encode(self._with_whole_pairs(text, stand_in))

    def _with_whole_bytes(self, inside: bytes, stand_in: str) -> bytes:
        rest = _REST_OF_CHARACTER.match(inside)
        if self._held_bytes and rest:
            inside = self._held_bytes + inside
            self._held_bytes = b""
        cut = _CUT_CHARACTER.search(inside)
        if cut:
            self._held_bytes, self._held_stand_in = cut[0], stand_in
            return inside[: cut.start()]
        return inside

    def _with_whole_pairs(self, text: str, stand_in: str) -> str:
        if self._held_half and "\udc00" <= text[:1] <= "\udfff":
            text = self._held_half + text
            self._held_half = ""
        text = text.encode("utf-16-le", "surrogatepass").decode(
            "utf-16-le", "surrogatepass"
        )
        if "\ud800" <= text[-1:] <= "\udbff":
            text, self._held_half, self._held_stand_in = text[:-1], text[-1], stand_in
        if _SURROGATE.search(text):
            self.lossy = True
            text = _SURROGATE.sub(stand_in, text)
        return text
