"""Transcribes voice notes with an OpenAI-compatible `/audio/transcriptions`."""

import logging
from pathlib import Path

import httpx2
import msgspec

from hermes.settings import Secrets
from hermes.settings.gateway import GatewaySettings

log = logging.getLogger("hermes.gateway")

_TRANSCRIPTION_TIMEOUT_S = 120.0


class _Answer(msgspec.Struct):
    text: str = ""


class Voice:
    """Transcribes voice notes."""

    def __init__(self, settings: GatewaySettings, key: str) -> None:
        self._url = settings.voice_url.rstrip("/") + "/audio/transcriptions"
        self._model = settings.voice_model
        self._key = key

    async def transcribe(self, path: Path) -> str:
        """The text of a voice note; if that fails, a line that says where the file is."""
        headers = {"authorization": f"Bearer {self._key}"} if self._key else {}
        try:
            async with httpx2.AsyncClient(
                timeout=_TRANSCRIPTION_TIMEOUT_S, trust_env=False
            ) as client:
                with path.open("rb") as file:
                    answer = await client.post(
                        self._url,
                        headers=headers,
                        data={"model": self._model},
                        files={"file": (path.name, file)},
                    )
            answer.raise_for_status()
            text = msgspec.json.decode(answer.content, type=_Answer).text.strip()
        except (httpx2.HTTPError, OSError, msgspec.MsgspecError) as error:
            log.warning("a voice note was not transcribed: %s", error)
            return f"[A voice note that could not be transcribed: {path}]"
        return (
            f"[voice note] {text}" if text else f"[A voice note without speech: {path}]"
        )


def voice_for(settings: GatewaySettings, secrets: Secrets) -> Voice | None:
    """The transcription that the settings ask for; None for none."""
    if not settings.voice_model:
        return None
    return Voice(
        settings, secrets.get("VOICE_API_KEY") or secrets.get("OPENAI_API_KEY") or ""
    )
