"""The floor no mode lifts: commands that wreck a machine or a home. And whether a command can be understood at all."""

import re
from pathlib import Path

import msgspec

from hermes.tools.shell import Unreadable, Word, programs
from hermes.tools.tool import spellings

_ROOTS = frozenset(
    (
        *("/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib32", "/lib64", "/opt", "/proc", "/root", "/sbin"),
        *("/srv", "/sys", "/usr", "/var", "/Users", "/System", "/Library", "~", "~root", "$HOME", "${HOME}"),
    )
)
_DEVICE = re.compile(r"/dev/(sd|hd|vd|xvd|nvme|mmcblk|disk|rdisk|dm-|md\d|loop|mapper/|mem$|kmem$|port$)")
_DISK_TOOLS = re.compile(
    r"mkfs(\..+)?|mke2fs|mkswap|wipefs|blkdiscard|sgdisk|sfdisk|fdisk|parted|shred|hdparm|badblocks"
)
_POWER = frozenset(("shutdown", "reboot", "halt", "poweroff"))
_FORK_BOMB = re.compile(r"([\w:.]+)\(\)\{.*?\1(\||&).*\}")


class Reading(msgspec.Struct, frozen=True):
    """What a command is: `forbidden` and `unclear` hold the reason when they apply."""

    forbidden: str = ""
    unclear: str = ""


def read_command(command: str, folder: Path, home: Path) -> Reading:
    """Whether a command must never run, or can't be understood."""
    if _FORK_BOMB.search(re.sub(r"\s", "", command)):
        return Reading(forbidden="it starts copies of itself without end")
    try:
        found = list(programs(command))
    except Unreadable:
        return Reading(unclear="the command can't be understood")
    unclear = ""
    for words in found:
        reason = _forbidden(words, folder, home)
        if reason:
            return Reading(forbidden=reason)
        first = next((word for word in words if not word.redirect), None)
        if first is not None and not first.known and first.text not in ("[", "[["):
            unclear = "which program it runs is only known when it runs"
    return Reading(unclear=unclear)


def _forbidden(words: list[Word], folder: Path, home: Path) -> str:
    """Why a program with its arguments must never run; empty when it may."""
    target = next((word.text for word in words if word.redirect.startswith(">") and _DEVICE.match(word.text)), "")
    if target:
        return f"it writes to the device {target}"
    texts = [word.text for word in words if not word.redirect]
    if not texts:
        return ""
    name, arguments = texts[0].rpartition("/")[2].lower(), texts[1:]
    if _stops_machine(name, arguments):
        return "it stops the machine or everything on it"
    return _overwrites_device(name, arguments) or _destroys(name, arguments, folder, home)


def _stops_machine(name: str, arguments: list[str]) -> bool:
    if name == "systemctl":
        return any(text in ("poweroff", "reboot", "halt", "kexec", "emergency") for text in arguments)
    if name in ("init", "telinit"):
        return arguments[:1] in (["0"], ["6"])
    return name in _POWER or (name == "kill" and len(arguments) > 1 and arguments[-1] == "-1")


def _overwrites_device(name: str, arguments: list[str]) -> str:
    devices = [text.removeprefix("of=") for text in arguments if _DEVICE.match(text.removeprefix("of="))]
    if not devices:
        return ""
    overwrites = _DISK_TOOLS.fullmatch(name) or name == "tee"
    overwrites = overwrites or (name in ("cp", "mv") and arguments[-1] == devices[-1])
    overwrites = overwrites or (
        name == "dd" and any(text == f"of={device}" for text in arguments for device in devices)
    )
    return f"it overwrites the device {devices[0]}" if overwrites else ""


def _destroys(name: str, arguments: list[str], folder: Path, home: Path) -> str:
    """Why a command would wreck the system or the home as a whole."""
    options = [text for text in arguments if text.startswith("-")]
    roots = [text for text in arguments if not text.startswith("-") and _is_root(text, folder, home)]
    if not roots:
        return ""
    recursive = any(re.match(r"-[a-zA-Z]*[rR]|--r", option) for option in options)
    if name in ("rm", "chmod", "chown", "chgrp", "shred", "srm") and recursive:
        return f"it would destroy all of {roots[0]}"
    if name == "mv" and arguments[-1] not in roots:
        return f"it would move all of {roots[0]} away"
    if name == "find" and ("-delete" in arguments or {"rm", "shred"} & {Path(text).name for text in arguments}):
        narrowing = any(
            re.match(r"-i?(name|path|regex|wholename)|-(size|mtime|newer|empty|user)", text) for text in options
        )
        return "" if narrowing else f"it would destroy all of {roots[0]}"
    if name == "rsync" and any(option.startswith("--del") for option in options) and arguments[-1] in roots:
        return f"it would destroy all of {roots[0]}"
    return ""


def _is_root(text: str, folder: Path, home: Path) -> bool:
    """Whether an argument means the whole system, a part of it, or a whole home."""
    bare = re.sub(r"(/|/\*|/\.|/\.\*|/\{.*\})+$", "", re.sub(r"/{2,}", "/", text)) or (
        "/" if text.startswith("/") else text
    )
    if bare in _ROOTS:
        return True
    if bare in (".", "*", "..", "./*") or not bare.startswith(("$", "~")):
        place = Path(spellings("." if bare in ("*", "./*") else bare, folder)[0])
        return str(place) in _ROOTS or place == home
    return False
