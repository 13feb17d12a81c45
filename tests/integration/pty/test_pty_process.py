"""`PtyBridge` with real children."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hermes.pty import PtyBridge, PtyStalled

_DEADLINE = 20.0


def _read_all(bridge: PtyBridge) -> bytes:
    found, end = b"", time.monotonic() + _DEADLINE
    while (piece := bridge.read(0.2)) is not None:
        found += piece
        assert time.monotonic() < end, found
    return found


def _read_until(bridge: PtyBridge, wanted: bytes) -> bytes:
    found, end = b"", time.monotonic() + _DEADLINE
    while wanted not in found:
        piece = bridge.read(0.2)
        assert piece is not None, found
        assert time.monotonic() < end, found
        found += piece
    return found


def _python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def _open_fds() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def _is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def test_a_child_sits_at_a_terminal_of_the_given_size() -> None:
    code = "import os; print(os.isatty(0), os.get_terminal_size(), os.getsid(0) == os.getpid(), os.open('/dev/tty', 2))"
    with PtyBridge.spawn(_python(code), cols=101, rows=33) as bridge:
        words = _read_all(bridge).decode()
    assert "True os.terminal_size(columns=101, lines=33) True" in words


def test_bytes_go_in_and_out_undecoded() -> None:
    code = "import sys, os, tty; tty.setraw(0); os.write(1, b'ready'); os.write(1, os.read(0, 4)[::-1])"
    with PtyBridge.spawn(_python(code)) as bridge:
        _read_until(bridge, b"ready")
        bridge.write(b"\xff\x00\xc3\n")
        assert _read_all(bridge) == b"\n\xc3\x00\xff"


def test_nothing_in_time_is_empty_and_the_end_is_none() -> None:
    with PtyBridge.spawn(["cat"]) as bridge:
        assert bridge.read(0) == b""
        before = time.monotonic()
        assert bridge.read(0.05) == b""
        assert time.monotonic() - before >= 0.05
        bridge.write(b"\x04")
        assert _read_all(bridge) == b""
        assert bridge.read() is None
        assert not bridge.is_alive()
        assert bridge.exit_code == 0


def test_all_output_of_a_child_that_is_gone_is_still_read() -> None:
    with PtyBridge.spawn(
        _python("import sys; sys.stdout.write('x' * 300_000 + 'end')")
    ) as bridge:
        assert _read_all(bridge) == b"x" * 300_000 + b"end"


def test_one_read_is_at_most_64_kib() -> None:
    with PtyBridge.spawn(["head", "-c", "1000000", "/dev/zero"]) as bridge:
        sizes: list[int] = []
        while (piece := bridge.read(0.2)) is not None:
            sizes.append(len(piece))
    assert max(sizes) <= 64 * 1024
    assert sum(sizes) == 1_000_000


def test_an_environment_replaces_and_none_inherits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HERMES_TEST_MARK", "inherited")
    with PtyBridge.spawn(["/usr/bin/env"], env={"ONLY": "this"}) as bridge:
        words = _read_all(bridge).split(b"\r\n")
        assert [
            word
            for word in words
            if word and not word.startswith(b"HERMES_TERMINAL_MARK=")
        ] == [b"ONLY=this"]
    with PtyBridge.spawn(["/usr/bin/env"]) as bridge:
        assert b"HERMES_TEST_MARK=inherited" in _read_all(bridge)


def test_a_child_starts_in_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "with 'quotes' and $blanks"
    folder.mkdir()
    with PtyBridge.spawn(["/bin/pwd"], cwd=folder, env={"A": "b"}) as bridge:
        assert _read_all(bridge).decode().strip() == str(folder)


def test_what_does_not_exist_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    before = _open_fds()
    with pytest.raises(FileNotFoundError):
        PtyBridge.spawn(["no-such-program-here"])
    with pytest.raises(NotADirectoryError):
        PtyBridge.spawn(["cat"], cwd=tmp_path / "nowhere")
    assert _open_fds() <= before


def test_a_resize_reaches_the_child_and_never_raises() -> None:
    code = (
        "import os, signal, time\n"
        "signal.signal(signal.SIGWINCH, lambda *_: print('now', *os.get_terminal_size(), flush=True))\n"
        "print('ready', flush=True)\n"
        "while True: signal.pause()\n"
    )
    with PtyBridge.spawn(_python(code)) as bridge:
        _read_until(bridge, b"ready")
        bridge.resize(132, 50)
        _read_until(bridge, b"now 132 50")
        bridge.resize(0, -3)
        _read_until(bridge, b"now 1 1")
        bridge.resize(10**9, 2)
        _read_until(bridge, b"now 65535 2")
    bridge.resize(80, 24)


def test_a_large_write_arrives_whole(tmp_path: Path) -> None:
    target = tmp_path / "got"
    code = (
        f"import os, tty; tty.setraw(0); os.write(1, b'ready'); out = open({str(target)!r}, 'wb')\n"
        "left = 1_000_000\n"
        "while left: piece = os.read(0, 4096); out.write(piece); left -= len(piece)\n"
    )
    data = bytes(range(256)) * 4000
    with PtyBridge.spawn(_python(code)) as bridge:
        _read_until(bridge, b"ready")
        bridge.write(data[:1_000_000])
        assert _read_all(bridge) == b""
    assert target.read_bytes() == data[:1_000_000]


def test_writing_to_a_vanished_child_is_no_error() -> None:
    with PtyBridge.spawn(["true"]) as bridge:
        _read_all(bridge)
        bridge.write(b"x" * 200_000)
    bridge.write(b"after close")
    assert bridge.read() is None


def test_writing_to_a_child_that_does_not_read_says_so() -> None:
    with PtyBridge.spawn(
        _python(
            "import os, tty, time; tty.setraw(0); os.write(1, b'ready'); time.sleep(99)"
        )
    ) as bridge:
        _read_until(bridge, b"ready")
        assert 0 <= bridge.send(b"x" * 1_000_000) < 1_000_000
        with pytest.raises(PtyStalled, match="were not written"):
            bridge.write(b"x" * 1_000_000, timeout_s=0.05)


def test_closing_ends_those_who_ignore_it_and_their_children_and_their_jobs() -> None:
    script = "trap '' HUP TERM; set -m; sleep 1000 & a=$!; sleep 1001 & echo pids $$ $a $!; wait"
    bridge = PtyBridge.spawn(["sh", "-c", script])
    line = _read_until(bridge, b"\n").decode()
    pids = [int(word) for word in line.split()[1:]]
    assert len(pids) == 3
    bridge.close()
    assert bridge.exit_code is not None  # killed, or at its end because its jobs were
    assert [pid for pid in pids if _is_running(pid)] == []
    bridge.close()


@pytest.mark.parametrize(
    "start",
    [
        "setsid sleep 1000 &",
        "setsid -f sleep 1000 </dev/null >/dev/null 2>&1",  # its parent is gone at once
        "env -i setsid sleep 1000 &",
        "(trap '' HUP TERM; exec setsid sleep 1000) &",
    ],
)
def test_closing_ends_what_began_a_session_of_its_own(start: str) -> None:
    script = f"{start}\necho began; wait; sleep 1000"
    with PtyBridge.spawn(["sh", "-c", script]) as bridge:
        _read_until(bridge, b"began")
        started = _sleepers(bridge.pid)
        assert started
    assert [pid for pid in started if _is_running(pid)] == []


def _sleepers(terminal: int) -> list[int]:
    """The processes that run for a terminal, by what its child handed on or by their parent."""
    environ = Path(f"/proc/{terminal}/environ").read_bytes().split(b"\0")
    mark = next(word for word in environ if word.startswith(b"HERMES_TERMINAL_MARK="))
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            marked = mark in (path / "environ").read_bytes()
        except OSError:
            continue
        if (
            int(path.name) != terminal
            and (marked or parent == terminal)
            and _is_running(int(path.name))
        ):
            found.append(int(path.name))
    return found


def test_closing_ends_a_child_that_is_stopped() -> None:
    bridge = PtyBridge.spawn(["cat"])
    os.kill(bridge.pid, signal.SIGSTOP)
    bridge.close()
    assert not bridge.is_alive()
    assert bridge.exit_code == -signal.SIGHUP


def test_signals_that_we_ignore_have_their_usual_meaning_in_a_child() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        bridge = PtyBridge.spawn(["sleep", "1000"])
    finally:
        signal.signal(signal.SIGHUP, before)
    bridge.close()
    assert bridge.exit_code == -signal.SIGHUP


def test_hundreds_of_terminals_leave_nothing_behind() -> None:
    PtyBridge.spawn(["cat"]).close()
    before = _open_fds()
    pids: list[int] = []
    for number in range(300):
        bridge = PtyBridge.spawn(["cat"])
        pids.append(bridge.pid)
        if number % 2:
            bridge.write(b"x\n")
            bridge.read(0)
        bridge.close()
    assert _open_fds() <= before
    assert [pid for pid in pids if Path(f"/proc/{pid}").exists()] == []


def test_there_are_terminals_here() -> None:
    before = _open_fds()
    assert PtyBridge.is_available()
    assert _open_fds() <= before


_WITHOUT = """
import sys
sys.modules["termios"] = None
from hermes.pty import PtyBridge, PtyUnavailableError
try:
    PtyBridge.spawn(["true"])
except PtyUnavailableError as error:
    print(error.message, error.hint)
"""


def test_a_system_without_terminals_says_what_to_do_also_on_windows() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", _WITHOUT],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    assert ran.stdout.startswith(
        "This system has no pseudo-terminals. On Windows, run Hermes inside WSL."
    )


def test_a_stream_that_flows_is_read_in_large_pieces() -> None:
    with PtyBridge.spawn(["/bin/sh", "-c", "stty raw; exec cat /dev/zero"]) as bridge:
        end = time.monotonic() + 30
        largest = 0
        while largest < 192 * 1024 and time.monotonic() < end:
            piece = bridge.read(1, most=192 * 1024, linger=0.01)
            largest = max(largest, len(piece or b""))
        assert largest == 192 * 1024


_HERMES = """
import sys
from hermes.pty import PtyBridge
bridge = PtyBridge.spawn(["sh", "-c", "trap '' HUP TERM; (exec env -i setsid sleep 1002) & echo pids $$ $!; wait"])
found = b""
while b"\\n" not in found:
    found += bridge.read(1) or b""
print(found.decode().strip(), flush=True)
sys.stdin.read()
"""


def test_what_runs_at_a_terminal_ends_when_hermes_is_killed() -> None:
    with subprocess.Popen(
        _python(_HERMES), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as hermes:
        assert hermes.stdout is not None
        pids = [int(word) for word in hermes.stdout.readline().split()[1:]]
        assert len(pids) == 2
        assert all(_is_running(pid) for pid in pids)
        hermes.kill()
    end = time.monotonic() + _DEADLINE
    while any(_is_running(pid) for pid in pids):
        assert time.monotonic() < end, pids
