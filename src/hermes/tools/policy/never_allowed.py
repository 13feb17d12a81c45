"""What no mode and no rule allows: destroying the machine or a home folder, or changing Hermes' own policy."""

import re
from collections.abc import Sequence
from pathlib import Path

from hermes.settings.profiles import PROFILES_FOLDER
from hermes.text.translation import translator
from hermes.tools.policy.effects import Effect, forbidden
from hermes.tools.policy.paths import PathContext, is_device
from hermes.tools.policy.shell_words import Word

t = translator(__name__)

_STOPS_MACHINE = forbidden("it stops this machine or everything running on it")
_POWER = r"shutdown|reboot|halt|poweroff|telinit"
_POWER_COMMANDS = frozenset(
    ("poweroff", "reboot", "halt", "kexec", "emergency", "rescue")
)
_REMOVES = r"rm|shred|srm|unlink|rmdir|wipe|trash|trash-put|scrub|truncate"
_CHANGES_RIGHTS = r"chmod|chown|chgrp|setfacl|chattr|chcon"
_DISK_TOOLS = (
    r"mkfs(\..+)?|mke2fs|mkswap|mkdosfs|mkntfs|newfs.*|wipefs|blkdiscard|s?gdisk|c?s?fdisk|parted|shred|badblocks|scrub"
    r"|cryptsetup|zpool|pvcreate|pvremove|ddrescue|dd_rescue|nvme|hdparm|sg_format|dc3dd|dcfldd|srm|wipe"
)
_READS_DISK = r"-l|--list|print|-p|list|id-ctrl|status|isLuks|luksDump|-I|-i"
_NARROWS_FIND = (
    r"-i?(name|path|regex|wholename)|-(size|[acm]time|[acm]min|newer.*|empty|user|perm)"
)
_POLICY_FILES = ("policy.yaml", ".policy.good.yaml")
_SYSTEM_FILES = r"/boot(/.*)?|/etc/(passwd|shadow|fstab|sudoers)"


def never_allowed(
    name: str, words: Sequence[Word], context: PathContext
) -> Effect | None:
    """The refusal if a program must never run with these arguments; None if it may."""
    arguments = words[1:]
    if _stops_machine(name, [word.text for word in arguments]):
        return _STOPS_MACHINE
    device = _overwritten_device(name, [word.text for word in arguments])
    if device:
        return forbidden(t.logged("it overwrites the device {device}", device=device))
    roots = [
        word.text
        for word in arguments
        if not word.text.startswith("-") and context.is_root(word)
    ]
    if roots and _destroys_root(name, [word.text for word in arguments], roots):
        return forbidden(
            t.logged("it would destroy everything in {folder}", folder=roots[0])
        )
    return _harms_hermes(name, arguments, context)


def write_never_allowed(target: Word, context: PathContext) -> Effect | None:
    """The refusal if a file must never be written; None if it may."""
    if is_device(target.text):
        return forbidden(
            t.logged("it writes to the device {device}", device=target.text)
        )
    for path in context.paths(target):
        if path.name in _POLICY_FILES and _is_home(path.parent, context):
            return forbidden("it changes Hermes' own policy; use `hermes policy`")
        if re.fullmatch(_SYSTEM_FILES, str(path), re.DOTALL):
            return forbidden(
                t.logged(
                    "it overwrites {path}, which this machine needs to start or to log people in",
                    path=path,
                )
            )
        if str(path).startswith("/proc/sysrq"):
            return _STOPS_MACHINE
    return None


def _is_home(folder: Path, context: PathContext) -> bool:
    """Whether a folder is a Hermes home, or the home of one of its profiles."""
    bases = (context.guard.base, context.home / ".hermes")
    if folder in (context.guard.home, *bases):
        return True
    return any(folder.parent == base / PROFILES_FOLDER for base in bases)


def _stops_machine(name: str, arguments: list[str]) -> bool:
    if name in ("systemctl", "loginctl"):
        return not _POWER_COMMANDS.isdisjoint(arguments)
    if name == "init":
        return arguments[:1] in (["0"], ["6"], ["1"])
    if name in ("kill", "skill"):  # PID -1 is every process, a first -1 a signal
        return "-1" in arguments[1:] or arguments == ["-1"]
    if name == "killall5":
        return True
    only_tells = {"--help", "--version", "-c"} & set(arguments)
    return bool(re.fullmatch(_POWER, name)) and not only_tells


def _overwritten_device(name: str, arguments: list[str]) -> str:
    """The device that a program overwrites; empty if there is none."""
    if name in ("dd", "dcfldd", "dc3dd"):
        outputs = [text[3:] for text in arguments if text.startswith("of=")]
        return next(filter(is_device, outputs), "")
    devices = list(filter(is_device, arguments))
    if not devices:
        return ""
    if name in ("cp", "mv", "install"):
        return arguments[-1] if arguments[-1] in devices else ""
    writes = name in ("tee", "truncate", "pv-to", "sponge", "rm")
    reads = any(re.fullmatch(_READS_DISK, text) for text in arguments)
    overwrites = bool(re.fullmatch(_DISK_TOOLS, name)) and not reads
    return devices[0] if writes or overwrites else ""


def _destroys_root(name: str, arguments: list[str], roots: list[str]) -> bool:
    """Whether a program destroys the whole of one of the roots among its arguments."""
    options = [text for text in arguments if text.startswith("-") and len(text) > 1]
    operands = [text for text in arguments if not text.startswith("-")]
    if re.fullmatch(f"{_REMOVES}|{_CHANGES_RIGHTS}", name):
        always = name in ("shred", "wipe", "srm")
        return always or _has_option(options, r"-[a-zA-Z]*[rR].*|--r.*")
    if name == "mv":
        is_source = not set(roots).isdisjoint(operands[:-1])
        return is_source or _has_option(options, r"-t.*|--t.*")
    if name in ("find", "gfind"):
        return "-delete" in options and not _has_option(options, _NARROWS_FIND)
    if name == "rsync":
        return operands[-1] in roots and _has_option(options, r"--del.*")
    return name in ("tar", "bsdtar") and "--remove-files" in options


def _has_option(options: list[str], pattern: str) -> bool:
    return any(re.fullmatch(pattern, option) for option in options)


def _harms_hermes(
    name: str, arguments: Sequence[Word], context: PathContext
) -> Effect | None:
    """The refusal if a program removes Hermes' files or writes its policy; None if it does neither."""
    operands = [word for word in arguments if not word.text.startswith("-")]
    gone = operands if re.fullmatch(_REMOVES, name) else []
    if name == "mv":
        gone = operands[:-1]
    for word in gone:
        if any(_is_of_hermes(path, context) for path in context.paths(word)):
            return forbidden(
                "it removes Hermes' own data: its settings, policy or sessions"
            )
    for word in _written(name, arguments, operands):
        effect = write_never_allowed(word, context)
        if effect is not None:
            return effect
    return None


def _written(name: str, arguments: Sequence[Word], operands: list[Word]) -> list[Word]:
    """The files that a program writes."""
    if name in ("cp", "mv", "ln"):
        return operands[-1:]
    if name in ("tee", "truncate", "sponge"):
        return operands
    if name == "dd":
        return [Word(word.text[3:]) for word in arguments if word.text[:3] == "of="]
    return []


def _is_of_hermes(path: Path, context: PathContext) -> bool:
    """Whether a path is Hermes' home, or inside it but outside the cache."""
    for home in (context.guard.home, context.guard.base, context.home / ".hermes"):
        if path == home:
            return True
        if home in path.parents:
            return path.relative_to(home).parts[0] != "cache"
    return False
