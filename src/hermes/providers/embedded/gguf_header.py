"""Reads the header of a GGUF file, which describes the model. Never reads the weights after it.

The format: magic, version, the number of tensors and of key-value pairs; then the pairs; then name, shape and type of
each tensor. https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

import math
import struct
from pathlib import Path
from typing import BinaryIO

import msgspec

from hermes.primitives.untyped import number_of, text_in
from hermes.text.translation import translator

t = translator(__name__)


MAGIC = b"GGUF"
_MAX_HEADER_BYTES = 64_000_000
_MAX_TENSORS = 20_000
_MAX_PAIRS = 2_000
_MAX_DIMENSIONS = 8
_MAX_VALUE_BYTES = 200_000  # longer text is skipped
_CHUNK_BYTES = 1 << 20
_NUMBERS = {
    0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f",
    7: "<?", 10: "<Q", 11: "<q", 12: "<d",
}  # fmt: skip
_STRING, _ARRAY = 8, 9
_VERSIONS = frozenset((2, 3))


class NotGguf(ValueError):
    """The file has no readable header."""


class GgufFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The facts in a header. An unknown number is 0, an unknown text is empty."""

    name: str
    architecture: str
    parameters: int
    context_tokens: int
    has_template: bool
    has_tools: bool


def read_facts(path: Path) -> GgufFacts:
    """Reads the header. Raises NotGguf or OSError."""
    with path.open("rb") as file:
        reader = _Reader(file)
        if reader.take(4) != MAGIC:
            raise NotGguf(t.logged("it does not begin as a GGUF file"))
        if reader.number("<I") not in _VERSIONS:
            raise NotGguf(t.logged("its version is unknown"))
        tensors, pairs = int(reader.number("<Q")), int(reader.number("<Q"))
        if tensors > _MAX_TENSORS or pairs > _MAX_PAIRS:
            raise NotGguf(t.logged("its header is too long"))
        values = dict(_read_pair(reader) for _ in range(pairs))
        parameters = sum(_read_tensor(reader) for _ in range(tensors))
    architecture = text_in(values, "general.architecture")
    template = text_in(values, "tokenizer.chat_template")
    context = values.get(f"{architecture}.context_length", 0)
    return GgufFacts(
        name=text_in(values, "general.name"),
        architecture=architecture,
        parameters=parameters,
        context_tokens=number_of(context),
        has_template=bool(template),
        has_tools="tools" in template,
    )


def _read_pair(reader: "_Reader") -> tuple[str, object]:
    key = reader.text()
    return key, _read_value(reader, int(reader.number("<I")))


def _read_value(reader: "_Reader", kind: int) -> object:
    """Reads a number or a text; skips an array, because its values are not needed."""
    if kind == _STRING:
        return reader.text()
    if kind == _ARRAY:
        _skip_array(reader)
        return None
    if kind not in _NUMBERS:
        raise NotGguf(t.logged("a value has an unknown type"))
    return reader.number(_NUMBERS[kind])


def _skip_array(reader: "_Reader") -> None:
    kind, count = int(reader.number("<I")), int(reader.number("<Q"))
    if kind in _NUMBERS:
        reader.skip(count * struct.calcsize(_NUMBERS[kind]))
    elif kind == _STRING:
        reader.skip_texts(count)
    else:
        raise NotGguf(t.logged("an array has an unknown type"))


def _read_tensor(reader: "_Reader") -> int:
    """Returns how many values a tensor has."""
    reader.text()
    dimensions = int(reader.number("<I"))
    if dimensions > _MAX_DIMENSIONS:
        raise NotGguf(t.logged("a tensor has too many dimensions"))
    shape = [int(reader.number("<Q")) for _ in range(dimensions)]
    reader.skip(struct.calcsize("<IQ"))
    return math.prod(shape)


class _Reader:
    """Reads a file in chunks from its beginning, up to the maximum length of a header."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._buffer = b""
        self._at = 0
        self._total = 0

    def take(self, size: int) -> bytes:
        """Returns the next bytes."""
        self._fill(size)
        self._at += size
        return self._buffer[self._at - size : self._at]

    def number(self, form: str) -> int | float:
        """Returns the next number."""
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def text(self) -> str:
        """Returns the next text; empty if it is too long to be useful."""
        size = int(self.number("<Q"))
        if size > _MAX_VALUE_BYTES:
            self.skip(size)
            return ""
        return self.take(size).decode("utf-8", "replace")

    def skip(self, size: int) -> None:
        """Skips bytes."""
        if size > _MAX_HEADER_BYTES:
            raise NotGguf(t.logged("its header is too long"))
        while size:
            step = min(size, _CHUNK_BYTES)
            self._fill(step)
            self._at += step
            size -= step

    def skip_texts(self, count: int) -> None:
        """Skips texts: a vocabulary has hundreds of thousands."""
        unpack = struct.Struct("<Q").unpack_from
        for _ in range(count):
            if len(self._buffer) - self._at < 8:
                self._fill(8)
            size = unpack(self._buffer, self._at)[0]
            self._at += 8
            if size <= len(self._buffer) - self._at:
                self._at += size
            else:
                self.skip(size)

    def _fill(self, size: int) -> None:
        """Makes sure that the buffer holds the next bytes."""
        missing = size - (len(self._buffer) - self._at)
        if missing <= 0:
            return
        data = self._file.read(max(missing, _CHUNK_BYTES))
        self._total += len(data)
        if len(data) < missing or self._total > _MAX_HEADER_BYTES:
            raise NotGguf(t.logged("its header is cut off or too long"))
        self._buffer = self._buffer[self._at :] + data
        self._at = 0
