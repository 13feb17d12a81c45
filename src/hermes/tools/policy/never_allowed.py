"""The floor no mode lifts: what wrecks a machine, a home, or Hermes' own policy."""

import re
from pathlib import Path

from hermes.tools.policy.effects import Effect, forbidden
from hermes.tools.policy.paths import PathContext, is_device
from hermes.tools.policy.shell_words import Word

_POWER = frozenset(("shutdown", "reboot", "halt", "poweroff", "telinit"))
_DISK_TOOLS = (
    r"mkfs(\..+)?|mke2fs|mkswap|mkdosfs|mkntfs|newfs.*|wipefs|blkdiscard|s?gdisk|c?s?fdisk|parted|shred|badblocks|scrub"
    r"|cryptsetup|zpool|pvcreate|pvremove|ddrescue|dd_rescue|nvme|hdparm|sg_format|dc3dd|dcfldd|srm|wipe"
)
_READS_DISK = frozenset(
    (
        "-l",
        "--list",
        "print",
        "-p",
        "list",
        "id-ctrl",
        "status",
        "isLuks",
        "luksDump",
        "-I",
        "-i",
    )
)
_REMOVES = frozenset(
    (
        "rm",
        "shred",
        "srm",
        "unlink",
        "rmdir",
        "wipe",
        "trash",
        "trash-put",
        "scrub",
        "truncate",
    )
)
_RIGHTS = frozenset(("chmod", "chown", "chgrp", "setfacl", "chattr", "chcon"))
_NARROWING = r"-i?(name|path|regex|wholename)$|-(size|[acm]time|[acm]min|newer.*|empty|user|perm)$"
_OPEN = frozenset(("cache",))
_POLICY = frozenset(("policy.yaml", ".policy.good.yaml"))


def floor(name: str, words: tuple[Word, ...], site: PathContext) -> Effect | None:
    """Why a program with these arguments must never run; None when that is not so."""
    arguments = words[1:]
    if _stops_machine(name, [word.text for word in arguments]):
        return forbidden("it stops the machine or everything on it")
    device = _device(name, arguments)
    if device:
        return forbidden(f"it overwrites the device {device}")
    root = _ruined(name, arguments, site)
    if root:
        return forbidden(f"it would destroy all of {root}")
    return _own(name, arguments, site)


def write_floor(target: Word, site: PathContext) -> Effect | None:
    """The same for a file that is written to."""
    if is_device(target.text):
        return forbidden(f"it writes to the device {target.text}")
    for path in site.paths(target):
        if path.name in _POLICY and path.parent in (
            site.guard.home,
            site.home / ".hermes",
        ):
            return forbidden("it changes Hermes' own policy; use `hermes policy`")
        if path.parts[:2] == ("/", "boot") or str(path) in (
            "/etc/passwd",
            "/etc/shadow",
            "/etc/fstab",
            "/etc/sudoers",
        ):
            return forbidden(
                f"it overwrites {path}, which the machine needs to start or to let people in"
            )
        if str(path).startswith("/proc/sysrq"):
            return forbidden("it stops the machine or everything on it")
    return None


def _stops_machine(name: str, arguments: list[str]) -> bool:
    if name in ("systemctl", "loginctl"):
        return any(
            text in ("poweroff", "reboot", "halt", "kexec", "emergency", "rescue")
            for text in arguments
        )
    if name == "init":
        return arguments[:1] in (["0"], ["6"], ["1"])
    if name in ("kill", "skill"):
        signals = [
            text for text in arguments if re.fullmatch(r"-\d+|-[A-Z]+|-s|--", text)
        ]
        return "-1" in arguments[1:] or (
            arguments[:1] == ["-1"] and len(arguments) == 1 and not signals[1:]
        )
    if name == "killall5":
        return True
    return name in _POWER and not any(
        text in ("--help", "--version", "-c") for text in arguments
    )


def _device(name: str, arguments: tuple[Word, ...]) -> str:
    texts = [word.text for word in arguments]
    if name in ("dd", "dcfldd", "dc3dd"):
        return next(
            (
                text[3:]
                for text in texts
                if text.startswith("of=") and is_device(text[3:])
            ),
            "",
        )
    devices = [text for text in texts if is_device(text)]
    if not devices:
        return ""
    if name in ("cp", "mv", "install") and texts[-1] in devices:
        return texts[-1]
    if name in ("tee", "truncate", "pv-to", "sponge", "rm"):
        return devices[0]
    overwrites = re.fullmatch(_DISK_TOOLS, name) and not any(
        text in _READS_DISK for text in texts
    )
    return devices[0] if overwrites else ""


def _ruined(name: str, arguments: tuple[Word, ...], site: PathContext) -> str:
    """The root that a command would wreck as a whole."""
    options = [
        word.text
        for word in arguments
        if word.text.startswith("-") and len(word.text) > 1
    ]
    operands = [word for word in arguments if not word.text.startswith("-")]
    roots = [word.text for word in operands if site.is_root(word)]
    if not roots:
        return ""
    recursive = any(re.match(r"-[a-zA-Z]*[rR]|--r", option) for option in options)
    if (name in _REMOVES or name in _RIGHTS) and (
        recursive or name in ("shred", "wipe", "srm")
    ):
        return roots[0]
    if name == "mv" and operands and operands[-1].text not in roots:
        return roots[0]
    if name == "find" and any(word.text == "-delete" for word in arguments):
        return (
            "" if any(re.match(_NARROWING, option) for option in options) else roots[0]
        )
    if (
        name == "rsync"
        and any(option.startswith("--del") for option in options)
        and operands[-1].text in roots
    ):
        return roots[0]
    return roots[0] if name in ("tar", "bsdtar") and "--remove-files" in options else ""


def _own(name: str, arguments: tuple[Word, ...], site: PathContext) -> Effect | None:
    """Removing what Hermes keeps, or writing its policy."""
    operands = [word for word in arguments if not word.text.startswith("-")]
    if name in _REMOVES or name == "mv":
        for word in operands if name != "mv" else operands[:-1]:
            if any(_is_ours(path, site) for path in site.paths(word)):
                return forbidden(
                    "it removes what Hermes itself keeps: its settings, policy or sessions"
                )
    written = (
        operands
        if name in ("tee", "truncate", "sponge")
        else operands[-1:]
        if name in ("cp", "mv", "ln")
        else []
    )
    found = [write_floor(word, site) for word in written]
    if name == "dd":
        found = [
            write_floor(Word(word.text[3:]), site)
            for word in arguments
            if word.text.startswith("of=")
        ]
    return next((one for one in found if one is not None), None)


def _is_ours(path: Path, site: PathContext) -> bool:
    for home in (site.guard.home, site.home / ".hermes"):
        if path == home or (
            home in path.parents and path.relative_to(home).parts[0] not in _OPEN
        ):
            return True
    return False
