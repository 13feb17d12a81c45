"""Terminals over WebSockets: reattached without a byte lost, paced, several at once, and harmless to everybody else."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.integration.dashboard.harness import PATIENCE, Harness, opened
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from hermes.errors import UsageError
from hermes.settings import Settings
from hermes.settings.sections import DashboardSettings
from hermes.surfaces.dashboard.terminals import (
    ENDED_TIMEOUT_S,
    MAX_TERMINALS,
    UNWATCHED_TIMEOUT_S,
    TerminalLaunch,
    Terminals,
)


class Screen:
    """What a page has of a terminal."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.ready: dict[str, Any] = {}
        self.ended: dict[str, Any] = {}
        self.notes: dict[str, Any] = {}
        self.data = b""

    @property
    def position(self) -> int:
        return int(self.ready["position"]) + len(self.data)

    async def read(self, until: bytes = b"", *, size: int = 0) -> bytes:
        """Reads until those bytes are there, or so many."""
        async with asyncio.timeout(PATIENCE):
            while not (until and until in self.data) and not (
                size and len(self.data) >= size
            ):
                await self.step()
        return self.data

    async def step(self) -> None:
        message = await self.socket.recv()
        if isinstance(message, bytes):
            self.data += message
            return
        note = msgspec.json.decode(message)
        self.notes[note["type"]] = note
        if note["type"] == "pty.ready":
            self.ready = note
        elif note["type"] == "pty.ended":
            self.ended = note

    async def read_note(self, kind: str) -> None:
        async with asyncio.timeout(PATIENCE):
            while kind not in self.notes:
                await self.step()


async def _open(socket: ClientConnection) -> Screen:
    screen = Screen(socket)
    async with asyncio.timeout(PATIENCE):
        await screen.step()
    assert screen.ready
    return screen


@pytest.fixture
async def shells(tmp_path: Path) -> Any:
    """A dashboard whose shell says nothing by itself."""
    shell = tmp_path / "shell"
    shell.write_text("#!/bin/sh\nstty -echo\nexec /bin/sh -i\n")
    shell.chmod(0o755)
    settings = Settings(dashboard=DashboardSettings(shell=str(shell)))
    async with opened(tmp_path, settings) as harness:
        yield harness


async def test_a_shell_answers_and_says_when_it_ends(shells: Harness) -> None:
    async with shells.socket(
        "/api/pty?command=shell&cols=100&rows=40", scope="terminal"
    ) as socket:
        screen = await _open(socket)
        await socket.send(b"echo size $(stty size); printf 'gr\\303\\274n\\n'\n")
        assert b"size 40 100" in await screen.read("grün".encode())
        await socket.send('{"op": "resize", "cols": 61, "rows": 17}')
        await socket.send(b"echo now $(stty size)\n")
        await screen.read(b"now 17 61")
        await socket.send('{"op": "unheard of"}')
        await socket.send("no json")
        await socket.send(b"exit 3\n")
        with pytest.raises(ConnectionClosed) as closed:
            await screen.read(b"never")
        assert screen.ended == {"type": "pty.ended", "exit_code": 3}
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1000


async def test_a_terminal_survives_a_lost_line_without_losing_a_byte(
    shells: Harness,
) -> None:
    path = "/api/pty?command=shell"
    received = b""
    async with shells.socket(path, scope="terminal") as socket:
        screen = await _open(socket)
        name = screen.ready["id"]
        await socket.send(b"echo; seq 1 60000; echo d''one\n")
        await screen.read(size=2000)
        received += screen.data
        socket.transport.abort()
    while b"done" not in received:
        where = f"/api/pty?id={name}&after={len(received)}"
        async with shells.socket(where, scope="terminal") as socket:
            screen = await _open(socket)
            assert not screen.ready["fresh"]
            assert screen.ready["position"] == len(received)
            await screen.read(b"done", size=50_000)
            received += screen.data
            socket.transport.abort()
    numbers = [
        line
        for line in received.replace(b"\r\n", b"\n").split(b"\n")
        if line.strip().isdigit()
    ]
    assert numbers == [b"%d" % number for number in range(1, 60_001)]


async def test_somebody_who_was_away_too_long_begins_afresh_on_a_whole_line(
    shells: Harness,
) -> None:
    async with shells.socket("/api/pty?command=shell", scope="terminal") as socket:
        screen = await _open(socket)
        name = screen.ready["id"]
        await socket.send(b"seq 1 300000; echo d''one\n")
        await screen.read(b"done")
    async with shells.socket(
        f"/api/pty?id={name}&after=10", scope="terminal"
    ) as socket:
        screen = await _open(socket)
        assert screen.ready["fresh"]
        lines = (await screen.read(b"done")).split(b"\r\n")
        first = int(lines[0])
        assert lines[1] == b"%d" % (first + 1)


async def test_terminals_are_listed_and_ended(shells: Harness) -> None:
    opened_one = await shells.call(
        "POST",
        "/api/terminals",
        {"command": "shell", "cols": 50, "rows": 5},
        scope="terminal",
    )
    overview = await shells.call("GET", "/api/terminals", scope="terminal")
    assert overview["available"]
    assert [one["id"] for one in overview["terminals"]] == [opened_one["id"]]
    assert (await shells.ask("GET", "/api/terminals", scope="chat")).status_code == 403
    async with shells.socket(
        f"/api/pty?id={opened_one['id']}", scope="terminal"
    ) as socket:
        screen = await _open(socket)
        assert (screen.ready["cols"], screen.ready["rows"]) == (50, 5)
        await shells.call(
            "DELETE", f"/api/terminals/{opened_one['id']}", scope="terminal"
        )
        with pytest.raises(ConnectionClosed):
            await screen.read(b"never")
    assert (
        await shells.ask(
            "DELETE", f"/api/terminals/{opened_one['id']}", scope="terminal"
        )
    ).status_code == 404
    async with shells.socket(
        f"/api/pty?id={opened_one['id']}", scope="terminal"
    ) as socket:
        with pytest.raises(ConnectionClosed) as closed:
            await socket.recv()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 4004


async def test_what_can_t_be_started_is_said(tmp_path: Path) -> None:
    settings = Settings(dashboard=DashboardSettings(shell=str(tmp_path / "no-shell")))
    async with opened(tmp_path, settings) as harness:
        async with harness.socket("/api/pty?command=shell", scope="terminal") as socket:
            note = msgspec.json.decode(await socket.recv())
        assert note["type"] == "pty.failed"
        assert "no-shell" in note["error"]
        assert (
            await harness.ask(
                "POST", "/api/terminals", {"command": "shell"}, scope="terminal"
            )
        ).status_code == 400


async def test_endless_output_fills_no_memory_and_holds_up_nobody(
    shells: Harness,
) -> None:
    async with shells.socket(
        "/api/pty?command=shell&window=65536", scope="terminal"
    ) as socket:
        screen = await _open(socket)
        await socket.send(b"yes\n")
        await screen.read(size=65536)
        one = shells.served.board.terminals.find(screen.ready["id"])
        assert one is not None
        async with asyncio.timeout(PATIENCE):
            while not one.terminal.paused:  # noqa: ASYNC110 - the server's own pace is what is waited for
                await asyncio.sleep(0.01)
        kept = one.terminal.scrollback
        assert kept.end - kept.start <= 1024 * 1024
        end = kept.end
        await shells.call("GET", "/api/auth")
        assert kept.end == end
        await socket.send(msgspec.json.encode({"op": "ack", "bytes": 65536}).decode())
        await screen.read(size=2 * 65536)
        await socket.send(b"\x03")
        await socket.send(msgspec.json.encode({"op": "ack", "bytes": 10**9}).decode())
        await socket.send(b"\necho st''opped\n")
        async with asyncio.timeout(PATIENCE):
            while b"stopped" not in screen.data[-100:]:
                await screen.step()
                await socket.send(
                    msgspec.json.encode({"op": "ack", "bytes": 10**9}).decode()
                )


async def test_a_flood_of_input_into_a_child_that_does_not_read_delays_nobody(
    shells: Harness,
) -> None:
    async with shells.socket("/api/pty?command=shell", scope="terminal") as socket:
        screen = await _open(socket)
        await socket.send(b"stty raw; echo re''ady; sleep 100\n")
        await screen.read(b"ready")
        await socket.send(b"x" * 1024 * 1024)
        one = shells.served.board.terminals.find(screen.ready["id"])
        assert one is not None
        async with asyncio.timeout(PATIENCE):
            while not one.terminal.waiting:  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.01)
            assert (await shells.ask("GET", "/api/auth")).status_code == 200
            async with shells.socket("/api/feed") as feed:
                await feed.recv()


async def test_two_pages_see_the_same_terminal(shells: Harness) -> None:
    async with shells.socket("/api/pty?command=shell", scope="terminal") as first:
        one = await _open(first)
        async with shells.socket(
            f"/api/pty?id={one.ready['id']}", scope="terminal"
        ) as second:
            two = await _open(second)
            await first.send(b"echo from f''irst\n")
            await two.read(b"from first")
            await second.send(b"echo from s''econd\n")
            await one.read(b"from second")


async def test_whoever_changes_the_size_tells_the_others(shells: Harness) -> None:
    async with shells.socket("/api/pty?command=shell", scope="terminal") as first:
        one = await _open(first)
        async with shells.socket(
            f"/api/pty?id={one.ready['id']}&cols=70&rows=20", scope="terminal"
        ) as second:
            two = await _open(second)
            await first.send('{"op": "resize", "cols": 50, "rows": 10}')
            await two.read_note("pty.resized")
            assert two.notes["pty.resized"] == {
                "type": "pty.resized",
                "cols": 50,
                "rows": 10,
            }
            await first.send(b"echo in s''izes $(stty size)\n")
            await one.read(b"in sizes 10 50")
            assert one.notes["pty.resized"] == {
                "type": "pty.resized",
                "cols": 70,
                "rows": 20,
            }


async def test_hermes_itself_runs_in_a_terminal(tmp_path: Path) -> None:
    async with (
        opened(tmp_path) as harness,
        harness.socket(f"/api/pty?cwd={tmp_path}", scope="terminal") as socket,
    ):
        screen = await _open(socket)
        assert screen.ready["command"] == "hermes"
        await screen.read(size=1)


async def test_a_terminal_lives_on_for_half_an_hour_after_its_last_viewer(
    tmp_path: Path,
) -> None:
    now = [1000.0]
    terminals = Terminals(DashboardSettings(shell="/bin/sh"), lambda: now[0])  # noqa: S604 - a setting
    one = await terminals.open(TerminalLaunch(command="shell", cwd=str(tmp_path)))
    viewer = one.terminal.watch(0)
    now[0] += 2 * UNWATCHED_TIMEOUT_S
    await terminals.sweep()
    assert terminals.find(one.id) is one
    viewer.close()
    now[0] += UNWATCHED_TIMEOUT_S
    await terminals.sweep()
    assert terminals.find(one.id) is one
    now[0] += 1
    await terminals.sweep()
    assert terminals.find(one.id) is None
    assert one.terminal.ended
    await terminals.close()


async def test_last_words_are_kept_for_a_while(tmp_path: Path) -> None:
    now = [1000.0]
    terminals = Terminals(DashboardSettings(shell="/bin/true"), lambda: now[0])  # noqa: S604 - a setting
    one = await terminals.open(TerminalLaunch(command="shell", cwd=str(tmp_path)))
    async with asyncio.timeout(PATIENCE):
        await one.terminal.finished()
    now[0] += ENDED_TIMEOUT_S
    await terminals.sweep()
    assert terminals.find(one.id) is one
    now[0] += 1
    await terminals.sweep()
    assert terminals.find(one.id) is None
    await terminals.close()


async def test_a_flood_comes_in_large_frames_and_every_byte_is_right(
    shells: Harness,
) -> None:
    async with shells.socket("/api/pty?command=shell", scope="terminal") as socket:
        screen = await _open(socket)
        await socket.send(b"stty raw; yes 0123456 | head -n 1000000; echo en''d\n")
        sizes: list[int] = []
        await screen.read(b"0123456")
        async with asyncio.timeout(PATIENCE):
            while b"end" not in screen.data[-100:]:
                before = len(screen.data)
                await screen.step()
                sizes.append(len(screen.data) - before)
        assert b"0123456\n" * 1_000_000 + b"end\n" in screen.data
        assert max(sizes) > 0xFFFF


async def test_there_is_an_end_to_terminals_however_fast_they_are_asked_for() -> None:
    terminals = Terminals(DashboardSettings(shell="/bin/cat"))  # noqa: S604 - a setting
    wanted = (
        terminals.open(TerminalLaunch(command="shell"))
        for _ in range(MAX_TERMINALS + 6)
    )
    try:
        answers = await asyncio.gather(*wanted, return_exceptions=True)
        assert sum(isinstance(answer, UsageError) for answer in answers) == 6
        assert len(terminals.overview()) == MAX_TERMINALS
    finally:
        await terminals.close()
