"""Programs that run another program: which words of theirs are that program, so that it is judged in its own right."""

import re
from functools import cache

from hermes.tools.policy.shell_parser import ShellCommand
from hermes.tools.policy.shell_words import Word

SHELLS = frozenset(
    (
        "sh",
        "bash",
        "dash",
        "zsh",
        "ksh",
        "ash",
        "fish",
        "mksh",
        "yash",
        "csh",
        "tcsh",
        "rbash",
    )
)
_WRAPPERS = """
sudo      : 0 -u -g -h -p -C -r -t -T -U -D --user --group --host --prompt --chdir
doas      : 0 -u -C
pkexec    : 0 --user
gosu      : 1
su-exec   : 1
runuser   : 0 -u -g -G --user
setpriv   : 0 --reuid --regid --groups
env       : 0 -u --unset -C --chdir
nohup     : 0
nice      : 0 -n --adjustment
ionice    : 0 -c -n -p --class --classdata
time      : 0 -f -o --format --output
timeout   : 1 -s -k --signal --kill-after
gtimeout  : 1 -s -k --signal --kill-after
stdbuf    : 0 -i -o -e --input --output --error
unbuffer  : 0
setsid    : 0
chrt      : 1 -p
taskset   : 1
command   : 0
builtin   : 0
exec      : 0 -a
coproc    : 0
caffeinate: 0 -t -w
xvfb-run  : 0 -s -n -e -f --server-args --server-num
dbus-run-session: 0
faketime  : 1
flock     : 1 -w -E --timeout
chroot    : 1 --userspec --groups
unshare   : 0 -S -G
nsenter   : 0 -t -S -G --target
strace    : 0 -e -o -p -s -u -E -a -O -S
ltrace    : 0 -e -o -p -s -u -n -a
watch     : 0 -n --interval
entr      : 0
ccache    : 0
sccache   : 0
distcc    : 0
valgrind  : 0
cross-env : 0
dotenv    : 0 -e -f
direnv exec: 1
busybox   : 0
toybox    : 0
npx       : 0 -p --package -w --workspace
bunx      : 0
pnpx      : 0
uvx       : 0 --from --with -p --python
pipx run  : 0 --spec
uv run    : 0 --with --python -p --group --extra --project --directory --package --env-file
poetry run: 0 -C --directory
pdm run   : 0 -p
pipenv run: 0
hatch run : 0
rye run   : 0
bundle exec: 0
pnpm exec : 0
pnpm dlx  : 0
npm exec  : 0
yarn dlx  : 0
yarn exec : 0
pyenv exec: 0
rbenv exec: 0
mise exec : 0
conda run : 0 -n -p --name --prefix
rustup run: 1
opam exec : 0
stack exec: 0
cabal exec: 0
nix-shell --run: 0
op run    : 0
coverage run: 0 --source --omit --include --rcfile --data-file
ltrace    : 0
script -c : 0
sem       : 0 -j
rlwrap    : 0
setarch   : 1
linux64   : 0
catchsegv : 0
proxychains: 0
torify    : 0
torsocks  : 0
start-stop-daemon: 0
systemd-run: 0 -p -u --unit --property
"""
FETCHING = frozenset(
    ("npx", "bunx", "pnpx", "uvx", "pipx run", "pnpm dlx", "yarn dlx", "npm exec")
)
"""They fetch the program when it is not there."""
TRANSPARENT = frozenset(
    (
        *(
            "env",
            "nohup",
            "nice",
            "ionice",
            "time",
            "timeout",
            "gtimeout",
            "stdbuf",
            "unbuffer",
            "setsid",
            "chrt",
        ),
        *(
            "taskset",
            "command",
            "builtin",
            "exec",
            "caffeinate",
            "busybox",
            "toybox",
            "setarch",
            "linux64",
            "watch",
        ),
    )
)
"""They add nothing to what they run. Others look into the project first, or write something down."""
_SPLITTING = frozenset(
    ("watch", "cross-env-shell", "sg", "nix-shell --run", "script -c")
)


@cache
def _table() -> dict[str, tuple[int, frozenset[str]]]:
    found: dict[str, tuple[int, frozenset[str]]] = {}
    for line in _WRAPPERS.strip().splitlines():
        name, _, rest = line.partition(":")
        skipped, *values = rest.split()
        found[name.strip()] = (int(skipped), frozenset(values))
    return found


def program_name(word: Word) -> str:
    """The program a word names: without its folder, if that is one where programs are."""
    text = word.text
    folder, _, name = text.rpartition("/")
    return (
        name
        if re.fullmatch(
            r"(/usr|/usr/local|/opt/homebrew|/run/current-system/sw)?/s?bin|/snap/bin",
            folder,
        )
        else text
    )


def wrapper_of(words: tuple[Word, ...]) -> str:
    """The name under which these words are a wrapper; empty if they are none."""
    if not words:
        return ""
    name = program_name(words[0])
    two = f"{name} {words[1].text}" if len(words) > 1 else ""
    return two if two in _table() else name if name in _table() else ""


def inner_words(words: tuple[Word, ...], wrapper: str) -> tuple[Word, ...]:
    """What a wrapper runs."""
    skipped, values = _table()[wrapper]
    rest = list(words[2 if " " in wrapper else 1 :])
    while rest:
        text = rest[0].text
        if text == "--":
            rest = rest[1:]
            break
        if text in values:
            rest = rest[2:]
        elif (text.startswith("-") and len(text) > 1) or re.match(
            r"[A-Za-z_]\w*=", text
        ):
            rest = rest[1:]
        else:
            break
    return tuple(rest[skipped:])


def runs_text(command: ShellCommand, wrapper: str) -> Word | None:
    """The shell text that a wrapper or shell is given to run, when it is given as one word."""
    words = command.words
    if wrapper in _SPLITTING:
        inner = inner_words(words, wrapper)
        return (
            Word(
                " ".join(word.text for word in inner), all(word.known for word in inner)
            )
            if inner
            else None
        )
    for place, word in enumerate(words[1:], 1):
        text = word.text
        if wrapper == "env" and text.startswith(("-S", "--split-string")):
            rest = (
                text.removeprefix("--split-string=")
                .removeprefix("--split-string")
                .removeprefix("-S")
            )
            following = [Word(rest)] if rest else []
            following += words[place + 1 :]
            return Word(
                " ".join(one.text for one in following),
                all(one.known for one in following),
            )
    return None


def shell_text(words: tuple[Word, ...]) -> Word | None:
    """What `sh -c` is told to run; None if there is no `-c`."""
    for place, word in enumerate(words[1:], 1):
        if (
            re.fullmatch(r"[-+][a-zA-Z]*c[a-zA-Z]*", word.text)
            or word.text == "--command"
        ):
            rest = [
                one
                for one in words[place + 1 :]
                if not re.fullmatch(r"[-+][a-zA-Z]+", one.text)
            ]
            return rest[0] if rest else Word("", known=False)
        if not word.text.startswith(("-", "+")):
            return None
    return None


def xargs_mark(words: tuple[Word, ...]) -> str:
    """The text that `xargs -I` or `parallel` puts each argument in the place of."""
    for place, word in enumerate(words[1:-1], 1):
        if word.text in ("-I", "-J", "--replace"):
            return words[place + 1].text
        if word.text.startswith("-I"):
            return word.text[2:]
        if not word.text.startswith("-"):
            break
    return "{}"


def xargs_words(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """What `xargs` or `parallel` runs, before the arguments it adds."""
    rest = list(words[1:])
    values = {
        "-I",
        "-n",
        "-P",
        "-L",
        "-d",
        "-a",
        "-E",
        "-s",
        "-j",
        "--max-args",
        "--max-procs",
        "--delimiter",
        "-J",
        "-S",
    }
    while rest and rest[0].text.startswith("-"):
        rest = rest[2:] if rest[0].text in values else rest[1:]
    return tuple(word for word in rest if word.text not in (":::", "::::"))
