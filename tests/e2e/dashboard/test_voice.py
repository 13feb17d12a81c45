"""Voice on the page: a browser whose microphone hears a hum, and a speech service that understands it."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, async_playwright, expect
from tests.e2e.dashboard.chatting import box
from tests.e2e.dashboard.conftest import (
    CHROMIUM_ARGUMENTS,
    PATIENCE,
    Board,
    Complaints,
    again,
    running,
    visiting,
)
from tests.fakes.audio_server import AudioServer, tone

from hermes.media.audio import samples_of, wav_of
from hermes.settings.load import environment
from hermes.tools.browser.executable import browser_environment, needs_no_sandbox

_CONFIG = """
media:
  transcription: {{url: "{url}"}}
  speech: {{url: "{url}"}}
"""
_IS_LOUD = """() => {
    const shown = document.querySelector(".voice-level");
    return shown !== null && Number(getComputedStyle(shown).getPropertyValue("--level")) > 0;
}"""
_CUTTER = """async () => {
    const { SentenceCutter } = await import("/static/views/chat/spoken_reply.js");
    const cutter = new SentenceCutter();
    const text = "# Done\\nIt works. And so on:\\n```sh\\nrm x. y\\n```\\nThat was all of it";
    const pieces = [...text].flatMap((sign) => cutter.add(sign));
    return [...pieces, ...cutter.finish()];
}"""

_DETECTOR = """async () => {
    const { SpeechDetector } = await import("/static/views/chat/microphone.js");
    const detector = new SpeechDetector();
    let now = 0;
    const hears = (level, factor, ms) => {
        const found = [];
        for (const end = now + ms; now < end; now += 20) found.push(detector.feed(level, now, factor));
        return found.filter(Boolean).join();
    };
    const room = hears(0.002, 1, 1000);
    const echo = hears(0.02, 2.5, 1000); // of the voice of Hermes
    const person = hears(0.2, 2.5, 400);
    return [room, echo, person, hears(0.002, 1, 1200)];
}"""


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def listening(
    chromium: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Browser]:
    """A browser whose microphone hears a second of a hum, then silence, again and again: a page that is slow to listen
    misses the first."""
    hum, _ = samples_of(tone(1.2))
    heard = tmp_path_factory.mktemp("microphone") / "heard.wav"
    await asyncio.to_thread(heard.write_bytes, wav_of(hum + hum[:1] * 96_000))
    expect.set_options(timeout=PATIENCE * 1000)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=chromium,
            env=dict[str, str | float | bool](browser_environment(environment())),
            chromium_sandbox=not needs_no_sandbox(),
            args=[
                *CHROMIUM_ARGUMENTS,
                "--use-fake-device-for-media-stream",
                f"--use-file-for-fake-audio-capture={heard}",
                "--autoplay-policy=no-user-gesture-required",
            ],
        )
        yield browser
        await browser.close()


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def speech_and_board(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[tuple[AudioServer, Board]]:
    with AudioServer() as server:
        settings = _CONFIG.format(url=server.url)
        async with running(tmp_path_factory.mktemp("voice"), settings) as board:
            yield server, board


@pytest.fixture
def speech(speech_and_board: tuple[AudioServer, Board]) -> AudioServer:
    server, _ = speech_and_board
    server.requests.clear()
    server.failure = 0
    return server


@pytest.fixture
def board(speech_and_board: tuple[AudioServer, Board]) -> Board:
    return speech_and_board[1]


@pytest_asyncio.fixture(loop_scope="session")
async def talking(
    listening: Browser, board: Board, complaints: Complaints
) -> AsyncIterator[Page]:
    """A page that may use the microphone."""
    async with again(listening, board, complaints, permissions=["microphone"]) as page:
        yield page


def _spoken(speech: AudioServer) -> list[str]:
    return [one.fields["input"] for one in speech.requests if "input" in one.fields]


async def _record(page: Page) -> None:
    """Records until something was heard. The Enter key, because a slow click counts as holding the button down."""
    await page.get_by_role("button", name="Talk", exact=True).press("Enter")
    await expect(page.get_by_text("Recording", exact=True)).to_be_visible()
    await page.wait_for_function(_IS_LOUD, timeout=PATIENCE * 1000)
    await page.get_by_role("button", name="Finish recording").click()


async def test_what_is_said_lands_in_the_composer(
    talking: Page, speech: AudioServer
) -> None:
    await _record(talking)
    await expect(box(talking)).to_have_value("buy some milk")
    samples, rate = samples_of(speech.requests[0].file)
    assert rate == 16_000
    assert len(samples) > 160
    await expect(talking.get_by_role("button", name="Talk", exact=True)).to_be_enabled()


async def test_a_dictated_message_keeps_its_recording_and_plays_it(
    talking: Page, board: Board, speech: AudioServer
) -> None:
    board.says("noted")
    await _record(talking)
    await expect(box(talking)).to_have_value("buy some milk")
    chip = talking.locator(".attached-files li")
    await expect(chip).to_have_text([re.compile("Recording")])
    await talking.reload()
    await expect(box(talking)).to_have_value("buy some milk")
    await expect(chip).to_have_count(1)
    await box(talking).press("Enter")
    await expect(talking.get_by_text("noted", exact=True)).to_be_visible()
    await expect(chip).to_have_count(0)
    await talking.get_by_role("button", name="Play the recording").click()
    await talking.wait_for_function(
        "() => document.querySelector('.message.user audio')?.duration > 0",
        timeout=PATIENCE * 1000,
    )
    duration = await talking.evaluate("document.querySelector('audio').duration")
    samples, rate = samples_of(speech.requests[0].file)
    assert abs(duration - len(samples) / rate) < 0.01
    assert board.asked()[-1]["content"] == "buy some milk"


async def test_a_recording_can_be_left_out_of_the_message(
    talking: Page, board: Board
) -> None:
    board.says("noted again")
    await _record(talking)
    await expect(box(talking)).to_have_value("buy some milk")
    await talking.get_by_role("button", name="Remove Recording").click()
    await box(talking).press("Enter")
    await expect(talking.get_by_text("noted again", exact=True)).to_be_visible()
    await expect(
        talking.get_by_role("button", name="Play the recording")
    ).to_have_count(0)


async def test_a_recording_that_is_attached_becomes_its_words(talking: Page) -> None:
    sound = {"name": "note.wav", "mimeType": "audio/wav", "buffer": tone()}
    await talking.set_input_files("input[type=file]", sound)
    await expect(box(talking)).to_have_value("buy some milk")


async def test_a_conversation_needs_no_hands(
    talking: Page, board: Board, speech: AudioServer
) -> None:
    reply = "It is **bought**. Anything else?\n\n```sh\nbuy milk\n```\n"
    board.says(reply, reply, reply)  # a slow page may hear the hum again
    await talking.get_by_role("button", name="Talk hands-free").click()
    await expect(talking.get_by_text("It is bought.").first).to_be_visible()
    async with asyncio.timeout(PATIENCE):
        while not _spoken(speech):  # noqa: ASYNC110 - the server is in a thread
            await asyncio.sleep(0.05)
    await talking.get_by_role("button", name="End the conversation").click()
    await expect(talking.locator(".voice-status")).to_have_count(0)
    assert board.asked()[-1]["content"] == "buy some milk"
    await expect(
        talking.get_by_role("button", name="Play the recording").first
    ).to_be_visible()
    assert all(piece in "It is bought. Anything else?" for piece in _spoken(speech))


async def test_a_recording_that_is_not_understood_is_said_and_kept(
    talking: Page, speech: AudioServer, complaints: Complaints
) -> None:
    speech.failure = 401
    complaints.expect("api/speech/transcriptions")
    await _record(talking)
    await expect(talking.get_by_text("rejected the key")).to_be_visible()
    files = talking.locator(".attached-files li")
    await expect(files).to_have_text([re.compile(r"^recording-[\d-]+\.wav")])
    sound = {"name": "note.wav", "mimeType": "audio/wav", "buffer": tone()}
    await talking.set_input_files("input[type=file]", sound)
    await expect(files.nth(1)).to_contain_text("note.wav")


async def test_a_reply_is_cut_into_sentences_without_its_code(talking: Page) -> None:
    assert await talking.evaluate(_CUTTER) == [
        "# Done\nIt works.",
        "And so on:\nThat was all of it",
    ]


async def test_a_person_interrupts_hermes_and_its_own_voice_does_not(
    talking: Page,
) -> None:
    assert await talking.evaluate(_DETECTOR) == ["", "", "start", "end"]


async def test_without_a_backend_there_is_no_microphone(
    tmp_path: Path, browser: Browser, complaints: Complaints
) -> None:
    off = "media: {speech_in: 'off', speech_out: 'off'}\n"
    async with (
        running(tmp_path, off) as board,
        visiting(browser, board.link, complaints) as page,
    ):
        await expect(box(page)).to_be_visible()
        answer = await page.evaluate("fetch('/api/speech').then((one) => one.json())")
        await expect(page.get_by_role("button", name="Talk")).to_have_count(0)
    assert answer == {"listens": False, "speaks": False}
