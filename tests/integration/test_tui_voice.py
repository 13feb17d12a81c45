"""Reading replies aloud and dictation, with a fake player and a fake recorder: silence, failures, and the longest recording."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.fakes.audio_server import AudioServer
from tests.integration.gateway.harness import until

from hermes.media.sound_programs import SoundProgram
from hermes.media.speech_deps import SpeechDeps
from hermes.settings import Home, Secrets
from hermes.settings.media import MediaSettings, SpeechSettings, TranscriptionSettings
from hermes.surfaces.tui.voice import Dictation, ReplyReader

PLAYER = """#!/bin/sh
for file; do :; done
echo "$file" >> "$(dirname "$0")/played"
exec sleep 60
"""
RECORDER = """#!/bin/sh
for file; do :; done
trap 'printf recorded > "$file"; exit 0' INT
while :; do sleep 0.02; done
"""


@pytest.fixture
def speech() -> Iterator[AudioServer]:
    with AudioServer() as server:
        yield server


@pytest.fixture
def deps(tmp_path: Path, speech: AudioServer) -> SpeechDeps:
    for name, script in {"aplay": PLAYER, "arecord": RECORDER}.items():
        (tmp_path / name).write_text(script)
        (tmp_path / name).chmod(0o755)
    media = MediaSettings(
        speech=SpeechSettings(url=speech.url),
        transcription=TranscriptionSettings(url=speech.url),
    )
    path = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    return SpeechDeps(media, Secrets({}, {}), Home(tmp_path / "home"), path)


@asynccontextmanager
async def reading(
    deps: SpeechDeps, said: list[str], player: SoundProgram | None = None
) -> AsyncIterator[ReplyReader]:
    reader = ReplyReader(deps, lambda: "s", said.append, player)
    reader.start()
    try:
        yield reader
    finally:
        await reader.close()


def reply(reader: ReplyReader, *sentences: str) -> None:
    for text in sentences:
        shared = {"session_id": "s", "text": text}
        reader.on_event({"type": "agent.message.assistant", **shared})


def played(folder: Path) -> list[Path]:
    """The files that the player was given."""
    file = folder / "played"
    return [Path(line) for line in file.read_text().split()] if file.exists() else []


async def test_a_sentence_that_waited_behind_a_full_queue_is_not_spoken_after_a_hush(
    tmp_path: Path, deps: SpeechDeps
) -> None:
    said: list[str] = []
    async with reading(deps, said) as reader:
        reply(reader, *(f"This is old sentence number {n}." for n in range(4)))
        await until(lambda: played(tmp_path))
        folder = played(tmp_path)[0].parent
        # one plays, two wait, and the fourth finds no room
        await until(lambda: [*folder.glob("4.*")])
        reader.hush()
        reply(reader, "This is the new sentence.")
        await until(lambda: len(played(tmp_path)) == 2)
        assert [path.stem for path in played(tmp_path)] == ["1", "5"]
        assert [path.stem for path in folder.iterdir()] == ["5"]
    assert said == []


class SlowPlayer(SoundProgram):
    """Begins to start, and goes on when it is told to."""

    def __init__(self, deps: SpeechDeps, program: Path) -> None:
        super().__init__((str(program), "{file}"), "speech out", deps.environment)
        self.began = asyncio.Event()
        self.go = asyncio.Event()

    # pyrefly: ignore[missing-override-decorator]
    async def start(self, file: Path) -> None:
        self.began.set()
        await self.go.wait()
        await super().start(file)


async def test_a_hush_while_the_player_starts_is_not_lost(
    tmp_path: Path, deps: SpeechDeps
) -> None:
    said: list[str] = []
    player = SlowPlayer(deps, tmp_path / "aplay")
    async with reading(deps, said, player) as reader:
        reply(reader, "This sentence is silenced.")
        await asyncio.wait_for(player.began.wait(), 20)
        reader.hush()
        player.go.set()
        reply(reader, "This is the new sentence.")
        await until(lambda: "2" in [path.stem for path in played(tmp_path)])
    assert said == []


async def test_a_failure_is_told_and_the_next_reply_is_spoken(
    tmp_path: Path, deps: SpeechDeps
) -> None:
    said: list[str] = []
    async with reading(deps, said) as reader:
        reply(reader, "This is the first sentence.")
        await until(lambda: played(tmp_path))
        folder = played(tmp_path)[0].parent
        shutil.rmtree(folder)
        reader.hush()
        reply(reader, "This one has nowhere to go.")
        await until(lambda: said)
        assert said[0].startswith("This reply is not spoken. ")
        assert "No such file or directory" in said[0]
        folder.mkdir()
        reply(reader, "This is the third sentence.")
        await until(lambda: len(played(tmp_path)) == 2)


async def test_a_player_that_is_gone_is_told(tmp_path: Path, deps: SpeechDeps) -> None:
    said: list[str] = []
    async with reading(deps, said) as reader:
        (tmp_path / "aplay").unlink()
        reply(reader, "Nobody hears this sentence.")
        await until(lambda: said)
    assert "aplay failed: " in said[0]


async def test_a_forgotten_dictation_ends_by_itself(
    tmp_path: Path, deps: SpeechDeps
) -> None:
    full = asyncio.Event()
    file = tmp_path / "said" / "dictation.wav"
    dictation = Dictation(deps, file, full.set, max_s=0.2)
    await dictation.start()
    await asyncio.wait_for(full.wait(), 20)
    assert await dictation.finish() == "buy some milk"
    assert file.read_bytes() == b"recorded"
