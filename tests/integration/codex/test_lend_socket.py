"""The socket over which tools are lent: private from its first moment, and made without touching anything else."""

import asyncio
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.codex.tool_lending import Lender


@pytest.fixture
def usual_mask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def open_folder(tmp_path: Path) -> Path:
    tmp_path.chmod(0o755)
    return tmp_path


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


@pytest.mark.usefixtures("usual_mask")
async def test_what_others_make_meanwhile_keeps_its_mode(tmp_path: Path) -> None:
    lender = Lender(tmp_path / "run", ("x",))
    made = [tmp_path / str(number) for number in range(20)]

    async def make() -> None:
        for folder in made:
            folder.mkdir()
            await asyncio.sleep(0)

    await asyncio.gather(lender._listen(), make())
    await lender.close()
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in made} == {0o755}


@pytest.mark.usefixtures("usual_mask")
async def test_nobody_else_can_connect_even_in_an_open_folder(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mode is looked at when the socket begins to listen: nobody can connect before that."""
    modes: list[int] = []
    listen = socket.socket.listen

    def seen(self: socket.socket, *backlog: int) -> None:
        modes.append(stat.S_IMODE(Path(self.getsockname()).stat().st_mode))
        listen(self, *backlog)

    monkeypatch.setattr(socket.socket, "listen", seen)
    lender = Lender(open_folder, ("x",))
    await lender._listen()
    await lender.close()
    assert set(modes) == {0o600}
    assert names(open_folder) == []


async def test_a_socket_that_can_not_be_made_leaves_nothing(tmp_path: Path) -> None:
    lender = Lender(tmp_path, ("x",))
    lender._socket_path().touch()
    with pytest.raises(OSError, match="in use"):
        await lender._listen()
    await lender.close()
    assert names(tmp_path) == []
