"""Measures documents and speech on this machine: how fast PDFs are read and recordings transcribed, and whether
synthesized speech is transcribed correctly.

`make bench BENCH=senses`. Speech needs the extra `voice`; Whisper and Piper are measured if `hermes voice add` has fetched
them. The bars: 20 PDF pages per second, including the start of its process; for speech, half a second of CPU time per second
of sound, including the start of the process and the model. That is twice as fast as real time even on one core, and holds
on a busy machine too, where elapsed time says little.
"""

import difflib
import importlib.util
import os
import resource
import subprocess
import sys
import tempfile
import time
import wave
from pathlib import Path

import msgspec

from hermes.children.own_python import module_command
from hermes.errors import MediaError
from hermes.media.speech_deps import SpeechDeps
from hermes.media.speech_in import find_transcriber, transcribe
from hermes.media.speech_models import WHISPER, model_path
from hermes.media.speech_out import find_speaker, speak
from hermes.settings import Home, Secrets
from hermes.settings.media import MediaSettings
from hermes.tools.documents.extract import ExtractionTask, extract
from hermes.tools.documents.reader import DocumentReader, read_pages

_MAX_CPU_S_PER_S = 0.5
_MAX_MEMORY_MB = 600
_MIN_LIKENESS = 0.9
_CORES = 2
_MIN_PDF_PAGES_PER_S = 20.0
_PDF_PAGES = 200
_LINES_PER_PAGE = 45
_TEXT = "The meeting is moved to Thursday. Please bring the printed report and a copy of the contract."
"""It has no numbers, because some models write them as digits."""


def main(_: list[str]) -> int:
    """Prints a table; returns 1 if a bar is missed."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:_CORES])
    failed = _read_pdf()
    assets = _assets()
    if assets is None:
        print("The extra `voice` is not installed, so speech is not measured.")
        return int(failed)
    print(
        f"{'backend':10} {'recording':18} {'times real time':>16} {'CPU s':>7} {'CPU s per s':>12} {'memory MB':>10}"
    )
    for backend in ("moonshine", "whisper"):
        for name in ("beckett.wav", "two_cities.wav"):  # 10 s and 44 s
            failed |= _measure(backend, assets / name)
    return int(failed | _round_trip())


def _read_pdf() -> bool:
    """Reads a PDF of full pages in the sandbox, as read_file does. Returns whether that missed the bar."""
    if importlib.util.find_spec("reportlab") is None:
        print("reportlab is not installed, so no PDF is read.")
        return False
    from reportlab.pdfgen.canvas import Canvas

    with tempfile.NamedTemporaryFile(suffix=".pdf") as file:
        canvas = Canvas(file.name)
        for page in range(_PDF_PAGES):
            for line in range(_LINES_PER_PAGE):
                canvas.drawString(60, 780 - 16 * line, f"{page}.{line} {_TEXT[:80]}")
            canvas.showPage()
        canvas.save()
        begun = time.perf_counter()
        pages = read_pages(DocumentReader(os.environ), Path(file.name))
        took = time.perf_counter() - begun
        cpu = time.process_time()
        extract(
            ExtractionTask(kind="pdf"), file
        )  # the same in this process, whose CPU can be measured
        cpu = time.process_time() - cpu
    speed = _PDF_PAGES / took
    size = len(pages.text) if pages else 0
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"PDF: {speed:.0f} pages/s, {_PDF_PAGES / cpu:.0f} pages per CPU s, {size:,} characters, {memory:.0f} MiB at most"
    )
    return speed < _MIN_PDF_PAGES_PER_S


def _assets() -> Path | None:
    found = importlib.util.find_spec("moonshine_voice")
    return (
        Path(found.origin).parent / "assets"
        if found is not None and found.origin
        else None
    )


def _deps(**settings: str) -> SpeechDeps:
    media = msgspec.structs.replace(MediaSettings(), **settings)
    home = Home(Path(tempfile.gettempdir()) / "hermes-bench-home")
    return SpeechDeps(media, Secrets({}, {}), home, os.environ)


def _measure(backend: str, path: Path) -> bool:
    """Transcribes one recording, without the sandbox, which hides the CPU time. Returns whether that missed the bar."""
    deps = _deps(speech_in=backend)
    try:
        find_transcriber(deps)
    except MediaError as error:
        print(f"{backend:10} not measured: {error.message} {error.hint}")
        return False
    model = model_path(WHISPER, deps.models) if backend == "whisper" else None
    task = (backend, *((str(model),) if model else ()))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.perf_counter()
    with path.open("rb") as file:
        command = module_command("hermes.media.audio_child", *task)
        subprocess.run(command, stdin=file, stdout=subprocess.DEVNULL, check=True)
    took = time.perf_counter() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    seconds, memory = _seconds(path), after.ru_maxrss // 1024
    print(
        f"{backend:10} {path.name:18} {seconds / took:16.1f} {cpu:7.1f} {cpu / seconds:12.2f} {memory:10}"
    )
    return cpu / seconds > _MAX_CPU_S_PER_S or memory > _MAX_MEMORY_MB


def _seconds(path: Path) -> float:
    with wave.open(str(path)) as file:
        return file.getnframes() / file.getframerate()


def _round_trip() -> bool:
    """Synthesizes a text and transcribes it. Returns whether too much of it was lost."""
    deps = _deps()
    try:
        name = find_speaker(deps).name
        audio = speak(deps, _TEXT, "ogg")
        with tempfile.NamedTemporaryFile(suffix=f".{audio.format}") as file:
            file.write(audio.data)
            file.flush()
            heard = transcribe(deps, Path(file.name))
    except MediaError as error:
        print(f"round trip not measured: {error.message} {error.hint}")
        return False
    likeness = difflib.SequenceMatcher(None, _words(_TEXT), _words(heard.text)).ratio()
    print(f"{name} spoke, {heard.backend} understood: {likeness:.0%} of the words")
    return likeness < _MIN_LIKENESS


def _words(text: str) -> list[str]:
    return "".join(one if one.isalnum() else " " for one in text.lower()).split()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
