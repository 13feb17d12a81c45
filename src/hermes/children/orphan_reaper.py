"""A small process that kills marked children when Hermes ends, in any way.

It is needed only for children that the kernel does not end by itself: commands outside bubblewrap, and terminals.
"""

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
"""  # not translated


class OrphanReaper:
    """Starts its process with the first mark. When the pipe to that process closes, Hermes has ended."""

    def __init__(self) -> None:
        self._pipe = -1
        self._end: weakref.finalize[[int, int], OrphanReaper] | None = None

    def watch(self, mark: int) -> None:
        """From now on, makes the child with this mark end with Hermes."""
        if self._end is None or not self._send(f"+ {mark}\n"):
            self.close()
            self._start()
            self._send(f"+ {mark}\n")

    def forget(self, mark: int) -> None:
        """Stops watching a child that has ended."""
        self._send(f"- {mark}\n")

    def close(self) -> None:
        """Ends the process, which kills the children that it still watches."""
        if self._end is not None:
            self._end()
            self._end = None

    def _start(self) -> None:
        reading, self._pipe = os.pipe()
        null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        try:
            pid = os.posix_spawn(
                "/bin/sh",
                ["sh", "-c", _SCRIPT],
                {"PATH": "/usr/bin:/bin"},
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, reading, 0),
                    (os.POSIX_SPAWN_DUP2, null, 1),
                    (os.POSIX_SPAWN_DUP2, null, 2),
                ],
                setsid=True,
            )
        finally:
            os.close(reading)
            os.close(null)
        self._end = weakref.finalize(self, _end, pid, self._pipe)

    def _send(self, line: str) -> bool:
        """Writes a line to the process. Returns False if the process is gone."""
        if self._end is None:
            return False
        try:
            os.write(self._pipe, line.encode())
        except OSError:  # the process was killed
            return False
        return True


def _end(pid: int, pipe: int) -> None:
    os.close(pipe)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)
