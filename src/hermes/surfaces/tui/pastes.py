"""What was pasted: long text is folded to a short mark in the input and sent whole, a path of a picture becomes it."""

import re
import shlex
from pathlib import Path
from urllib.parse import unquote, urlparse

from hermes.app.attachments import images_of
from hermes.errors import UsageError
from hermes.schema.messages import Image

_FOLD_LINES = 8
_FOLD_CHARS = 800
_PICTURE = re.compile(r"\.(?:png|jpe?g|gif|webp)['\"]?\s*$", re.IGNORECASE)


class Pastes:
    """The folded parts of one input."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._images: dict[str, Image] = {}

    @property
    def marks(self) -> list[str]:
        """The marks that stand for something."""
        return [*self._texts, *self._images]

    def take(self, text: str) -> str:
        """What to put into the input for a pasted text."""
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        if (
            _PICTURE.search(text)
            and text.count("\n") == text.rstrip("\n").count("\n") == 0
            and (found := _pictures(text))
        ):
            return " ".join(self.picture(image) for image in found)
        return self.fold(text)

    def fold(self, text: str) -> str:
        """A mark for a long text; a short one as it is."""
        lines = text.rstrip("\n").count("\n") + 1
        if lines <= _FOLD_LINES and len(text) <= _FOLD_CHARS:
            return text
        what = f"{lines} lines" if lines > 1 else f"{len(text):,} characters"
        mark = self._free(f"pasted {what}")
        self._texts[mark] = text
        return mark

    def picture(self, image: Image) -> str:
        """A mark for a picture."""
        mark = self._free(f"picture {Path(image.source).name}")
        self._images[mark] = image
        return mark

    def whole(self, text: str) -> str:
        """The input with everything unfolded; pictures keep their marks."""
        for mark, pasted in self._texts.items():
            text = text.replace(mark, pasted)
        return text

    def pictures(self, text: str) -> tuple[Image, ...]:
        """The pictures whose marks are still in the input."""
        return tuple(image for mark, image in self._images.items() if mark in text)

    def clear(self) -> None:
        """The input was sent or thrown away."""
        self._texts.clear()
        self._images.clear()

    def _free(self, label: str) -> str:
        mark, number = f"[{label}]", 1
        while mark in self._texts or mark in self._images:
            number += 1
            mark = f"[{label} #{number}]"
        return mark


def _pictures(text: str) -> tuple[Image, ...]:
    """The pictures that a pasted line names, as terminals write dropped files; none if it is anything else."""
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
    return unquote(urlparse(word).path) if word.startswith("file://") else word
