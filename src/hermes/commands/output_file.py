"""Files that commands write on request: never over an existing one unless told to, whole or not at all."""

from collections.abc import Iterable
from pathlib import Path

from hermes.errors import HermesError, Refused, os_reason
from hermes.primitives.files import PRIVATE_FILE, replacing

OTHER_FILE = "Replace it with --force, or name another file."


def check_output(target: Path, *, force: bool, other: str = OTHER_FILE) -> Path:
    """The file to write. Raises HermesError if it is something else; Refused if it exists, unless `force`."""
    if target.exists() and not target.is_file():
        raise HermesError(
            f"{target} is not a file", hint="Nothing was written. Name a file with -o."
        )
    if target.exists() and not force:
        raise Refused(f"{target} exists.", hint=f"Nothing was written. {other}")
    return target


def write_lines(target: Path, lines: Iterable[str]) -> None:
    """Writes the whole file or nothing, readable only by this user."""
    try:
        with replacing(target, mode=PRIVATE_FILE, alone=False) as file:
            for text in lines:
                file.write(text.encode() + b"\n")
    except OSError as error:
        reason = os_reason(error)
        hint = (
            "Nothing was written. Check the folder, its permissions and the free space."
        )
        raise HermesError(f"{target} can't be written ({reason})", hint=hint) from error
