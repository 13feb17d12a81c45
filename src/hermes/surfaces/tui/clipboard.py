"""A picture in the clipboard, where a program of the desktop can hand it over."""

import asyncio
import time
from pathlib import Path

from hermes.app.attachments import images_of
from hermes.children.helper_programs import find_program
from hermes.primitives.files import create_private, make_private_folder
from hermes.schema.messages import Image
from hermes.settings.load import environment

_PASTE_TIMEOUT_S = 3.0
_COMMANDS = (
    ("wl-paste", "--type", "image/png"),
    ("xclip", "-selection", "clipboard", "-t", "image/png", "-o"),
    ("pngpaste", "-"),
)


async def picture(folder: Path) -> Image | None:
    """The picture, kept in a file of this user's own; None when there is none, or no program that can tell."""
    for name, *arguments in _COMMANDS:
        program = find_program(name, environment())
        if program is None:
            continue
        data = await _output(program, *arguments)
        if data.startswith(b"\x89PNG"):
            return images_of([str(await asyncio.to_thread(_keep, data, folder))])[0]
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


def _keep(data: bytes, folder: Path) -> Path:
    path = make_private_folder(folder) / f"clipboard-{time.time_ns()}.png"
    with create_private(path) as file:
        file.write(data)
    return path
