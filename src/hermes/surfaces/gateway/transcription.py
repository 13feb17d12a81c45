"""Voice notes as text, by an OpenAI-compatible `/audio/transcriptions`."""

import logging
from pathlib import Path

import httpx2
import msgspec

from hermes.settings import Secrets
from hermes.settings.gateway import GatewaySettings

log = logging.getLogger("hermes.gateway")

_PATIENCE = 120.0  # seconds


class _Answer(msgspec.Struct):
    text: str = ""


class Voice:
    """Writes down what was said."""

    def __init__(self, settings: GatewaySettings, key: str) -> None:
        self._url = settings.voice_url.rstrip("/") + "/audio/transcriptions"
        self._model = settings.voice_model
        self._key = key

    async def write_down(self, path: Path) -> str:
        """The words; or a line that says where the note is and why it could not be read."""
        headers = {"authorization": f"Bearer {self._key}"} if self._key else {}
        try:
            async with httpx2.AsyncClient(timeout=_PATIENCE, trust_env=False) as client:
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
            log.warning("a voice note was not written down: %s", error)
            return f"[A voice note that could not be written down: {path}]"
        return (
            f"[voice note] {text}" if text else f"[A voice note without words: {path}]"
        )


def voice_for(settings: GatewaySettings, secrets: Secrets) -> Voice | None:
    """What the settings ask for; None for nothing."""
    if not settings.voice_model:
        return None
    return Voice(
        settings, secrets.get("VOICE_API_KEY") or secrets.get("OPENAI_API_KEY") or ""
    )
