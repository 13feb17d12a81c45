"""Files that commands write on request: they replace an existing file only if told to, and are written completely or
not at all."""

from collections.abc import Iterable
from pathlib import Path

from hermes.errors import HermesError, Refused, os_reason
from hermes.primitives.files import PRIVATE_FILE, replacing
from hermes.text.translation import translator

t = translator(__name__)


def check_output(target: Path, *, force: bool, other: str = "") -> Path:
    """The file to write. Raises HermesError if it is something else; Refused if it exists, unless `force`."""
    if target.exists() and not target.is_file():
        raise HermesError(
            t("{target} is not a file", target=target),
            hint=t("Nothing was written. Name a file with -o."),
        )
    if target.exists() and not force:
        other = other or t("Replace it with --force, or name another file.")
        raise Refused(
            t("{target} exists.", target=target),
            hint=t("Nothing was written. {other}", other=other),
        )
    return target


def write_lines(target: Path, lines: Iterable[str]) -> None:
    """Writes the whole file or nothing, readable only by this user."""
    try:
        with replacing(target, mode=PRIVATE_FILE, alone=False) as file:
            for text in lines:
                file.write(text.encode() + b"\n")
    except OSError as error:
        reason = os_reason(error)
        hint = t(
            "Nothing was written. Check the folder, its permissions and the free space."
        )
        raise HermesError(
            t("{target} can't be written ({reason})", target=target, reason=reason),
            hint=hint,
        ) from error
