"""Copies text to the clipboard: through the terminal (OSC 52), which works over ssh, and with a program of this machine."""

import asyncio
import base64
import re
from collections.abc import Mapping

from hermes.children.helper_programs import find_program

_PROGRAMS = (
    ("WAYLAND_DISPLAY", "wl-copy", ()),
    ("DISPLAY", "xclip", ("-selection", "clipboard")),
    ("DISPLAY", "xsel", ("--clipboard", "--input")),
    ("", "pbcopy", ()),
)
"""The variable that a program needs, its name and its options."""
_TIMEOUT_S = 5.0
MAX_OSC_BYTES = 74_994
"""Longer text is cut off or refused by many terminals."""
_CODE = re.compile(r"^(```+|~~~+)[^\n]*\n(.*?)^\1\s*$", re.MULTILINE | re.DOTALL)


def osc_52(text: str, environ: Mapping[str, str]) -> str:
    """The sequence that puts text on the clipboard of whoever looks at the terminal; empty for too long a text."""
    encoded = base64.b64encode(text.encode()).decode()
    if len(encoded) > MAX_OSC_BYTES:
        return ""
    sequence = f"\x1b]52;c;{encoded}\a"
    if "TMUX" in environ:  # for tmux itself, and marked for the terminal around it
        return f"{sequence}\x1bPtmux;\x1b{sequence}\x1b\\"
    return sequence


def code_of(answer: str) -> str:
    """The last block of code in an answer; empty if it has none."""
    blocks = _CODE.findall(answer)
    if blocks:
        return blocks[-1][1].rstrip("\n")
    return ""


async def copy_with_program(text: str, environ: Mapping[str, str]) -> str:
    """Copies with the first program that is there. Returns its name; empty if none could."""
    for variable, name, options in _PROGRAMS:
        if variable and not environ.get(variable):
            continue
        program = find_program(name, environ)
        if program is not None and await _run(program, options, text):
            return name
    return ""


async def _run(program: str, options: tuple[str, ...], text: str) -> bool:
    null = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        program, *options, stdin=asyncio.subprocess.PIPE, stdout=null, stderr=null
    )
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            await process.communicate(text.encode())
    except TimeoutError:
        process.kill()
        await process.wait()
    return process.returncode == 0
