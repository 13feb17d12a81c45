"""Looks up what a program does: by its name, by its subcommand, by its options. The kinds are those of `effects.KINDS`.

`OPTIONS` says what an option adds, whatever the rest.
"""

import re
from functools import cache

from hermes.tools.policy.catalogue_programs import PROGRAMS
from hermes.tools.policy.catalogue_subcommands import SUBCOMMANDS

OPTIONS = """
split: runs --filter
7z 7za 7zr: destroys -sdel
install: runs --strip-program
strace ltrace: spies -p --attach
make gmake: runs --eval -E
tar bsdtar: destroys --remove-files
tar bsdtar: runs --to-command --checkpoint-action --use-compress-program -I
tar bsdtar: runs --rsh-command --info-script --new-volume-script -F
tar bsdtar: system -P --absolute-names
rsync: destroys --delete --delete-before --delete-after --delete-during --delete-excluded --del --remove-source-files
rsync: runs -e --rsh --rsync-path
zip 7z: destroys -m --move
zip: runs -T -TT --unzip-command
unzip 7z: runs --to-command
rg: runs --pre --hostname-bin
fd fdfind: runs -x --exec -X --exec-batch
sort: runs --compress-program
bat batcat: runs --pager
less more man: runs -P --pager -H
ss lsof: processes -K --kill -k
fuser: processes -k --kill -K
journalctl: history --vacuum-size --vacuum-time --vacuum-files --rotate --flush --relinquish-var --sync --setup-keys
date: system -s --set
pip: packages --index-url -i --extra-index-url --trusted-host -f --find-links --target -t --prefix --user
npm pnpm yarn: network --registry
npm yarn pnpm: system -g --global
cargo: publishes --token
git: runs --upload-pack --receive-pack --exec-path --ext-diff --open-files-in-pager
gcc g++ cc clang clang++: runs -wrapper -fplugin
go: runs -exec -toolexec
java: runs -javaagent -agentpath -agentlib
mvn gradle gradlew: runs -I --init-script
pytest: runs
ps: spies
stty: session -F --file
nl: read -x
yq: work -i --inplace --in-place
dmesg: history -C -c --clear --read-clear
crontab: persistence -r -e -i
env: runs -S
jest: work -u
ffmpeg: spies x11grab avfoundation
chrome chromium google-chrome firefox: session *
gh: secrets auth token
"""

BUNDLING = frozenset(("zip", "fuser", "ss", "dmesg", "crontab", "date"))
"""Programs whose short options are often written together."""
PERSONAL = frozenset(
    (
        "deploy",
        "publish",
        "release",
        "install",
        "uninstall",
        "destroy",
        "teardown",
        "push",
        "upload",
    )
)
"""Names of targets and scripts that reach beyond the workspace, by what people call them."""
TASK_RUNNERS = frozenset(
    (
        "make",
        "gmake",
        "ninja",
        "just",
        "task",
        "rake",
        "mage",
        "invoke",
        "inv",
        "npm",
        "yarn",
        "pnpm",
    )
)


@cache
def programs() -> dict[str, str]:
    """What each program does."""
    found: dict[str, str] = {}
    for kind, names in _lines(PROGRAMS):
        for name in names.split():
            found.setdefault(name, kind)
    return found


@cache
def subcommands() -> dict[str, dict[tuple[str, ...], str]]:
    """What each subcommand of a program does."""
    found: dict[str, dict[tuple[str, ...], str]] = {}
    for name, rest in _lines(SUBCOMMANDS):
        kind, _, phrases = rest.partition(" ")
        table = found.setdefault(name, {})
        for phrase in phrases.split():
            table[tuple(part for part in phrase.split("+") if part)] = kind
    return found


@cache
def options() -> dict[str, dict[str, str]]:
    """What options add."""
    found: dict[str, dict[str, str]] = {}
    for names, rest in _lines(OPTIONS):
        kind, _, signs = rest.partition(" ")
        for name in names.split():
            found.setdefault(name, {}).update(dict.fromkeys(signs.split(), kind))
    return found


def _lines(table: str) -> list[tuple[str, str]]:
    return [
        (left.strip(), right.strip())
        for left, _, right in (
            re.split("(:) ", line, maxsplit=1) for line in _rows(table)
        )
    ]


def _rows(table: str) -> list[str]:
    return [
        re.sub(r"^([\w. -]*?)\s*:\s", r"\1: ", line)
        for line in table.strip().splitlines()
    ]
