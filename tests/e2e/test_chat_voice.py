"""Voice in the terminal: replies read aloud by a player, and dictation through a recorder, both fakes on PATH."""

from pathlib import Path

from tests.fakes.audio_server import AudioServer
from tests.integration.gateway.harness import until

from hermes.children.process_tree import read_state
from hermes.testing.installed import InstalledHermes
from hermes.testing.model_server import ModelServer

ENTER, ALT_V = "\r", "\x1bv"
READY = "Ctrl-D quits ›"
PLAYER = """#!/bin/sh
echo played >> "$(dirname "$0")/played"
"""
RECORDER = """#!/bin/sh
for file; do :; done
printf recorded > "$file"
trap 'exit 0' INT
while :; do sleep 0.1; done
"""
DEAF_RECORDER = """#!/bin/sh
trap '' HUP
echo $$ > "$(dirname "$0")/pid"
while :; do sleep 0.1; done
"""


def programs(folder: Path, **scripts: str) -> str:
    """A PATH with these programs and the usual ones."""
    folder.mkdir()
    for name, script in scripts.items():
        program = folder / name
        program.write_text(script)
        program.chmod(0o755)
    return f"{folder}:/usr/bin:/bin"


async def test_replies_are_read_aloud_sentence_by_sentence(tmp_path: Path) -> None:
    reply = "The **first** sentence is here. `x = 1` is code. The last one ends now."
    with AudioServer() as speech:
        async with ModelServer(reply) as server:
            hermes = InstalledHermes(tmp_path, server.url)
            path = programs(tmp_path / "bin", aplay=PLAYER)
            options = {"PATH": path, "HERMES_MEDIA_SPEECH_URL": speech.url}
            async with hermes.terminal(**options) as terminal:
                await terminal.sees(READY)
                terminal.type("/voice on" + ENTER)
                await terminal.sees("Replies are read aloud.")
                terminal.type("speak" + ENTER)
                played = tmp_path / "bin" / "played"
                await until(lambda: played.exists() and len(speech.requests) == 2)
                terminal.type("/voice off" + ENTER)
                await terminal.sees("Replies are not read aloud.")
    assert [one.fields["input"] for one in speech.requests] == [
        "The first sentence is here.",
        "x = 1 is code. The last one ends now.",
    ]


async def test_what_is_dictated_lands_in_the_input(tmp_path: Path) -> None:
    with AudioServer() as speech:
        async with ModelServer("Noted.") as server:
            hermes = InstalledHermes(tmp_path, server.url)
            path = programs(tmp_path / "bin", arecord=RECORDER)
            options = {"PATH": path, "HERMES_MEDIA_TRANSCRIPTION_URL": speech.url}
            async with hermes.terminal(**options) as terminal:
                await terminal.sees(READY)
                terminal.type("/dictate" + ENTER)
                await terminal.sees("Recording.")
                terminal.type(ALT_V)
                await terminal.until(lambda shown: "› buy some milk" in shown)
                terminal.type(ENTER)
                await terminal.until(lambda shown: "Noted." in shown)
    assert speech.requests[0].file == b"recorded"


async def test_the_microphone_is_off_after_hermes_was_killed(tmp_path: Path) -> None:
    with AudioServer() as speech:
        async with ModelServer() as server:
            hermes = InstalledHermes(tmp_path, server.url)
            path = programs(tmp_path / "bin", arecord=DEAF_RECORDER)
            options = {"PATH": path, "HERMES_MEDIA_TRANSCRIPTION_URL": speech.url}
            async with hermes.terminal(**options) as terminal:
                await terminal.sees(READY)
                terminal.type("/dictate" + ENTER)
                await terminal.sees("Recording.")
                noted = tmp_path / "bin" / "pid"
                await until(lambda: noted.exists() and noted.read_text().strip())
                recorder = int(noted.read_text())
                assert read_state(recorder) is not None
                terminal.kill()
                await terminal.ends()
                await until(lambda: read_state(recorder) is None)


async def test_without_a_microphone_or_speakers_the_reason_is_said(
    tmp_path: Path,
) -> None:
    with AudioServer() as speech:
        async with ModelServer() as server:
            hermes = InstalledHermes(tmp_path, server.url)
            urls = {
                "HERMES_MEDIA_SPEECH_URL": speech.url,
                "HERMES_MEDIA_TRANSCRIPTION_URL": speech.url,
            }
            async with hermes.terminal(PATH="/nonexistent", **urls) as terminal:
                await terminal.sees(READY)
                terminal.type("/voice on" + ENTER)
                await terminal.sees("Nothing here plays sound.")
                terminal.type("/dictate" + ENTER)
                await terminal.sees("Nothing here records from a microphone.")
