"""A small process that outlives Hermes by a moment: when Hermes is gone, however it went, it ends the commands that
were still running. Only needed where the kernel does not do that by itself."""

import contextlib
import os
import weakref

_SCRIPT = """
trap '' HUP INT TERM QUIT
marks=' '
while read -r sign mark; do
  case $sign in
    +) marks="$marks$mark ";;
    -) marks="${marks%% $mark *} ${marks#* $mark }";;
  esac
done
set --
for mark in $marks; do set -- "$@" -e " $mark "; done
[ $# -gt 0 ] || exit 0
for round in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
  found=
  for file in $(grep -l -s -F "$@" /proc/[0-9]*/limits); do
    pid=${file#/proc/}
    kill -9 "${pid%/limits}" 2>/dev/null && found=1
  done
  [ -n "$found" ] || exit 0
done
"""


class Warden:
    """Started with the first command it has to watch; it notices by its input that Hermes has ended."""

    def __init__(self) -> None:
        self._input = -1
        self._end: weakref.finalize[[int, int], Warden] | None = None

    def watch(self, mark: int) -> None:
        """From now on, the command with this mark ends with Hermes."""
        if self._end is None or not self._tell(f"+ {mark}\n"):
            self.close()
            self._start()
            self._tell(f"+ {mark}\n")

    def forget(self, mark: int) -> None:
        """The command with this mark has ended."""
        self._tell(f"- {mark}\n")

    def close(self) -> None:
        """Ends it, and with it whatever it still watches."""
        if self._end is not None:
            self._end()
            self._end = None

    def _start(self) -> None:
        reading, self._input = os.pipe()
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        try:
            actions = [
                (os.POSIX_SPAWN_DUP2, reading, 0),
                *((os.POSIX_SPAWN_DUP2, nothing, to) for to in (1, 2)),
            ]
            pid = os.posix_spawn(
                "/bin/sh",
                ["sh", "-c", _SCRIPT],
                {"PATH": "/usr/bin:/bin"},
                file_actions=actions,
                setsid=True,
            )
        finally:
            os.close(reading)
            os.close(nothing)
        self._end = weakref.finalize(self, _end, pid, self._input)

    def _tell(self, line: str) -> bool:
        """Whether it could be told."""
        if self._end is None:
            return False
        try:
            os.write(self._input, line.encode())
        except OSError:  # somebody killed it
            return False
        return True


def _end(pid: int, handle: int) -> None:
    os.close(handle)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)
