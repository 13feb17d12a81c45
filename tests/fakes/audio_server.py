"""A fake speech service on loopback: OpenAI's `/audio/transcriptions` and `/audio/speech`, and ElevenLabs' `/text-to-speech`.

`with AudioServer() as server:` and set an address of the settings to `server.url`. It understands every recording as `heard`.
"""

import email.parser
import email.policy
import json
import math
import threading
from array import array
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self

from hermes.media.audio import wav_of

KEY = "sk-voice-0000000000000000"
MP3 = b"ID3\x04\x00\x00\x00\x00\x00\x00" + b"\0" * 64
OGG = b"OggS\x00\x02" + b"\0" * 64


def tone(seconds: float = 0.3, rate: int = 16_000) -> bytes:
    """A WAV file with a hum."""
    wave = (int(8000 * math.sin(n / 8)) for n in range(int(seconds * rate)))
    return wav_of(array("h", wave), rate)


class AudioRequest(NamedTuple):
    """A request that arrived. `fields` are those of the form or of the JSON body."""

    path: str
    key: str
    fields: dict[str, Any]
    file: bytes = b""


class AudioServer:
    """Remembers `requests`; answers with the HTTP status `failure` if that is set."""

    def __init__(self, heard: str = "buy some milk") -> None:
        self.heard = heard
        self.failure = 0
        self.requests: list[AudioRequest] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def answer(self, request: AudioRequest) -> tuple[int, str, bytes]:
        """The status, the media type and the body."""
        self.requests.append(request)
        if self.failure:
            body = json.dumps({"error": {"message": "not today"}}).encode()
            return self.failure, "application/json", body
        if request.path == "/v1/audio/transcriptions":
            body = json.dumps({"text": self.heard}).encode()
            return 200, "application/json", body
        if request.path == "/v1/audio/speech":
            kinds = {"wav": tone(), "mp3": MP3, "opus": OGG}
            kind = request.fields["response_format"]
            return 200, f"audio/{kind}", kinds[kind]
        if request.path.startswith("/v1/text-to-speech/"):
            return 200, "audio/mpeg", MP3
        return 404, "text/plain", b"no such address"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                kind = self.headers["content-type"]
                key = self.headers.get("authorization", "").removeprefix("Bearer ")
                request = AudioRequest(
                    self.path,
                    key or self.headers.get("xi-api-key", ""),
                    *_content(kind, body),
                )
                status, media_type, data = server.answer(request)
                self.send_response(status)
                self.send_header("content-type", media_type)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            # pyrefly: ignore[missing-override-decorator]
            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
                """Says nothing."""

        return Handler


def _content(kind: str, body: bytes) -> tuple[dict[str, Any], bytes]:
    if "json" in kind:
        return json.loads(body), b""
    form = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(
        b"content-type: " + kind.encode() + b"\r\n\r\n" + body
    )
    fields: dict[str, Any] = {}
    file = b""
    for part in form.iter_parts():
        data = part.get_payload(decode=True)
        if not isinstance(data, bytes):
            continue
        if part.get_filename():
            file = data
        else:
            fields[str(part.get_param("name", header="content-disposition"))] = (
                data.decode()
            )
    return fields, file
