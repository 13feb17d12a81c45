"""Decompresses the bodies of HTTP responses: gzip, and deflate with or without its header."""

import zlib
from collections.abc import Iterator

_PIECE_BYTES = 64 * 1024


class CompressionError(Exception):
    """The body is damaged, or its compression is not supported; the message says which."""


class Decompressor:
    """Decompresses in small steps, so that a small body can't fill the memory before the reader sees it."""

    def __init__(self, encoding: str) -> None:
        """Takes the Content-Encoding header as `encoding`. Raises CompressionError for an unsupported one."""
        self._encoding = encoding.strip().lower()
        self._stream: zlib._Decompress | None = None
        if self._encoding not in {"", "identity", "gzip", "x-gzip", "deflate"}:
            raise CompressionError(
                f"it is compressed as {encoding[:40]!r}, which Hermes did not ask for and can't read"
            )

    @property
    def is_plain(self) -> bool:
        """Whether nothing is compressed."""
        return self._encoding in {"", "identity"}

    @property
    def is_whole(self) -> bool:
        """Whether the compressed data is complete."""
        return self._stream is None or self._stream.eof

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yields the decompressed data of `data`. Raises CompressionError."""
        while data:
            if self.is_plain:
                yield data
                return
            if (
                self._stream is None or self._stream.eof
            ):  # gzip may consist of several parts
                self._stream = zlib.decompressobj(self._window(data))
            try:
                if piece := self._stream.decompress(data, _PIECE_BYTES):
                    yield piece
            except zlib.error as error:
                raise CompressionError(
                    "it is marked as compressed, but can't be decompressed"
                ) from error
            data = (
                self._stream.unused_data
                if self._stream.eof
                else self._stream.unconsumed_tail
            )

    def _window(self, start: bytes) -> int:
        """Returns zlib's parameter for gzip, zlib, or the bare deflate that some servers send."""
        if self._encoding != "deflate":
            return zlib.MAX_WBITS | 16
        if start[0] & 0x0F == 8:
            return zlib.MAX_WBITS
        return -zlib.MAX_WBITS
