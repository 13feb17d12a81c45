"""Pasted content: long text becomes a placeholder that is sent in full; the path of an image
attaches it.
"""

import asyncio
import re
import shlex
import time
from pathlib import Path
from urllib.parse import unquote, urlparse

from hermes.app.attachments import images_of
from hermes.children.helper_programs import find_program
from hermes.errors import UsageError
from hermes.primitives.files import create_private, make_private_folder
from hermes.schema.messages import Image
from hermes.settings.load import environment

_FOLD_LINES = 8
_FOLD_CHARS = 800
_PASTE_TIMEOUT_S = 3.0
_CLIPBOARD_COMMANDS = (
    ("wl-paste", "--type", "image/png"),
    ("xclip", "-selection", "clipboard", "-t", "image/png", "-o"),
    ("pngpaste", "-"),
)
_PICTURE = re.compile(r"\.(?:png|jpe?g|gif|webp)['\"]?\s*$", re.IGNORECASE)


class Pastes:
    """The pasted parts of one input, by placeholder."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._images: dict[str, Image] = {}

    @property
    def marks(self) -> list[str]:
        """All placeholders."""
        return [*self._texts, *self._images]

    def insert(self, text: str) -> str:
        """Returns what to insert into the input for a pasted text."""
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        if (
            _PICTURE.search(text)
            and text.count("\n") == text.rstrip("\n").count("\n") == 0
            and (found := _pictures(text))
        ):
            return " ".join(self.picture(image) for image in found)
        return self.fold(text)

    def fold(self, text: str) -> str:
        """Returns a placeholder for a long text, and a short text as it is."""
        lines = text.rstrip("\n").count("\n") + 1
        if lines <= _FOLD_LINES and len(text) <= _FOLD_CHARS:
            return text
        what = f"{lines} lines" if lines > 1 else f"{len(text):,} characters"
        mark = self._free(f"pasted {what}")
        self._texts[mark] = text
        return mark

    def picture(self, image: Image) -> str:
        """Returns a placeholder for an image."""
        mark = self._free(f"picture {Path(image.source).name}")
        self._images[mark] = image
        return mark

    def expand(self, text: str) -> str:
        """Replaces text placeholders by their text. Image placeholders stay."""
        for mark, pasted in self._texts.items():
            text = text.replace(mark, pasted)
        return text

    def pictures(self, text: str) -> tuple[Image, ...]:
        """Returns the images whose placeholders are still in the input."""
        return tuple(image for mark, image in self._images.items() if mark in text)

    def clear(self) -> None:
        """Forgets all pastes, after the input was sent or cleared."""
        self._texts.clear()
        self._images.clear()

    def _free(self, label: str) -> str:
        mark, number = f"[{label}]", 1
        while mark in self._texts or mark in self._images:
            number += 1
            mark = f"[{label} #{number}]"
        return mark


def _pictures(text: str) -> tuple[Image, ...]:
    """Returns the images a pasted line names, in the way terminals write dropped files; else nothing."""
    try:
        names = [_path(word) for word in shlex.split(text)]
        return (
            images_of(names)
            if all(Path(name).is_absolute() or name.startswith("~") for name in names)
            else ()
        )
    except (ValueError, UsageError, OSError):
        return ()


def _path(word: str) -> str:
    if word.startswith("file://"):
        return unquote(urlparse(word).path)
    return word


async def clipboard_image(folder: Path) -> Image | None:
    """Saves the clipboard's image to a private file and returns it.

    Returns None if the clipboard holds no image or no program can read it.
    """
    for name, *arguments in _CLIPBOARD_COMMANDS:
        program = find_program(name, environment())
        if program is None:
            continue
        data = await _output(program, *arguments)
        if data.startswith(b"\x89PNG"):
            return images_of([str(await asyncio.to_thread(_save, data, folder))])[0]
    return None


async def _output(*command: str) -> bytes:
    pipe, null = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        *command, stdin=null, stdout=pipe, stderr=null
    )
    try:
        data, _ = await asyncio.wait_for(process.communicate(), _PASTE_TIMEOUT_S)
    except TimeoutError:
        process.kill()
        await process.wait()
        return b""
    return data


def _save(data: bytes, folder: Path) -> Path:
    path = make_private_folder(folder) / f"clipboard-{time.time_ns()}.png"
    with create_private(path) as file:
        file.write(data)
    return path
