"""Recognises the text in a picture, without a model and without a network, if the extra `ocr` is installed."""

from collections.abc import Sequence
from functools import cached_property
from importlib.util import find_spec
from typing import IO, Any

from hermes.text.install_words import install_hint
from hermes.tools.documents.document import Document, DocumentPart

_MAX_SIDE_PIXELS = 4_000  # larger ones are reduced first
_MIN_SIDE_PIXELS = 8  # no letter is lower, and loading the engine takes seconds


class PageOcr:
    """RapidOCR, loaded for the first picture."""

    @property
    def is_available(self) -> bool:
        """Whether the extra is installed."""
        return find_spec("rapidocr") is not None

    @property
    def missing(self) -> str:
        """Why there is no OCR, and how to get it."""
        return f"OCR is not installed. {install_hint('ocr')}"

    def read(self, picture: Any) -> str:
        """The text in a Pillow image, line by line."""
        import numpy as np

        found = self._engine(np.asarray(picture.convert("RGB")))
        if not found.txts:
            return ""
        return _in_lines(found.txts, found.boxes)

    @cached_property
    def _engine(self) -> Any:
        import logging

        from rapidocr import RapidOCR

        logging.getLogger("RapidOCR").setLevel(logging.ERROR)
        return RapidOCR(params={"Global.log_level": "error"})


def _in_lines(texts: Sequence[str], boxes: Any) -> str:
    """Joins pieces of text that are next to each other. A box has four corners, clockwise from the top left."""
    pieces = [
        (float(box[:, 1].mean()), float(box[:, 0].min()), float(box[:, 1].max()), text)
        for box, text in zip(boxes, texts, strict=True)
    ]
    lines: list[list[tuple[float, str]]] = []
    bottom = float("-inf")
    for middle, left, below, text in sorted(pieces):
        if middle > bottom:
            lines.append([])
            bottom = below
        lines[-1].append((left, text))
    return "\n".join(" ".join(text for _, text in sorted(line)) for line in lines)


def read_picture(file: IO[bytes]) -> Document:
    """The text in a picture file. Raises Pillow's errors for a broken one."""
    from PIL import Image

    with Image.open(file) as picture:
        picture.thumbnail((_MAX_SIDE_PIXELS, _MAX_SIDE_PIXELS))
        may_hold_text = min(picture.size) >= _MIN_SIDE_PIXELS
        text = PageOcr().read(picture) if may_hold_text else ""
    return Document("picture", (DocumentPart("picture", text),))
