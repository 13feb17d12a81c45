"""Recognizes the text in a picture, without a model or a network. Needs the extra `ocr`."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from hermes.core.rejected_images import NO_TEXT_FOUND
from hermes.errors import MediaError, MediaErrorKind, ToolFailed, os_reason
from hermes.text.translation import translator
from hermes.tools.documents.ocr import PageOcr
from hermes.tools.files.read_window import open_regular

t = translator(__name__)

OCR = "OCR"
OCR_PREFIX = "No model looked at this picture."  # not translated
"""How a description made by OCR begins."""
_SENSE = "vision"


def ocr_is_available() -> bool:
    """Returns whether the extra is installed."""
    return PageOcr().is_available


async def recognised_text(source: str, environment: Mapping[str, str]) -> str:
    """Returns the text in a picture file, recognized in a separate process with limits. Raises MediaError."""
    if not ocr_is_available():
        raise MediaError(
            MediaErrorKind.NOT_CONFIGURED,
            t.later("The text in pictures can't be read."),
            sense=_SENSE,
            hint=PageOcr().missing,
        )
    return await asyncio.to_thread(_recognise, Path(source), environment)


def ocr_description(text: str) -> str:
    """Returns the description for a model of a picture of which only the text is known."""
    if not text.strip():
        return f"{OCR_PREFIX} {NO_TEXT_FOUND}"
    return f"{OCR_PREFIX} The text in it, recognised by OCR, with possible mistakes:\n{text}"  # not translated


def _recognise(path: Path, environment: Mapping[str, str]) -> str:
    from hermes.tools.documents.reader import DocumentReader

    try:
        with open_regular(path) as file:
            document = DocumentReader(environment).read(path.name, file, "picture")
    except OSError as error:
        raise MediaError(
            MediaErrorKind.REFUSED,
            t.later(
                "{name} can't be read: {os_reason}.",
                name=path.name,
                os_reason=os_reason(error),
            ),
            sense=_SENSE,
        ) from error
    except ToolFailed as error:
        raise MediaError(
            MediaErrorKind.NOT_SUPPORTED,
            error.words,
            sense=_SENSE,
            hint=error.hint_words,
        ) from error
    return document.text()
