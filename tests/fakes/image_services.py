"""Services that make pictures, on loopback: OpenAI's images API, xAI's, and the queue of fal.ai, with real shapes."""

import base64
import email.policy
from collections.abc import Mapping
from email.parser import BytesParser
from typing import Any

import msgspec
from tests.fakes.web_server import Asked, Page

JSON = {"Content-Type": "application/json"}


def reply(content: object, status: int = 200) -> Page:
    """A reply in JSON."""
    return Page(msgspec.json.encode(content), status, JSON)


def form_of(asked: Asked) -> list[tuple[str, str, bytes]]:
    """The parts of a form: name, content type and content."""
    head = f"Content-Type: {asked.headers['content-type']}\r\n\r\n".encode()
    parser = BytesParser(policy=email.policy.HTTP)
    found: list[tuple[str, str, bytes]] = []
    for part in parser.parsebytes(head + asked.body).iter_parts():
        name = str(part.get_param("name", header="content-disposition"))
        data = part.get_payload(decode=True)
        assert isinstance(data, bytes)
        found.append((name, part.get_content_type(), data))
    return found


class FakeImageApi:
    """OpenAI's shape, with a bearer key. Each request is kept in `made`."""

    def __init__(self, picture: bytes, key: str = "sk-test") -> None:
        self.picture = picture
        self.made: list[dict[str, Any]] = []
        self.refusal: Page | None = None
        self._key = key

    def __call__(self, asked: Asked) -> Page:
        if asked.headers.get("authorization") != f"Bearer {self._key}":
            error = {
                "message": "Incorrect API key provided.",
                "code": "invalid_api_key",
            }
            return reply({"error": error}, 401)
        if self.refusal is not None:
            return self.refusal
        fields = self._fields(asked)
        if fields is None or not fields.get("prompt"):
            return reply({"error": {"message": "Invalid URL"}}, 404)
        self.made.append({"path": asked.target, **fields})
        return reply(
            {
                "created": 1_790_000_000,
                "data": [{"b64_json": base64.b64encode(self.picture).decode()}],
                "usage": {
                    "input_tokens": 12,
                    "output_tokens": 1_056,
                    "total_tokens": 1_068,
                    "input_tokens_details": {"text_tokens": 12, "image_tokens": 0},
                },
            }
        )

    def _fields(self, asked: Asked) -> dict[str, Any] | None:
        if asked.target == "/v1/images/generations":
            return dict(msgspec.json.decode(asked.body))
        if asked.target != "/v1/images/edits":
            return None
        if asked.headers["content-type"] == "application/json":  # xAI takes no form
            return dict(msgspec.json.decode(asked.body))
        parts = form_of(asked)
        texts = {name: data.decode() for name, _, data in parts if name[:5] != "image"}
        files = [
            (name, kind, data) for name, kind, data in parts if name[:5] == "image"
        ]
        return {**texts, "files": files}


class FakeFal:
    """The queue of fal.ai: a request waits once before it is done; its picture lies at an address of its own."""

    def __init__(self, picture: bytes, key: str = "fal-test") -> None:
        self.picture = picture
        self.made: list[Mapping[str, Any]] = []
        self.address = ""
        """Where it is reached; set when it is."""
        self._key = key
        self._asked: dict[str, int] = {}

    def __call__(self, asked: Asked) -> Page:
        if asked.target == "/files/made.png":
            return Page(self.picture, headers={"Content-Type": "image/png"})
        if asked.headers.get("authorization") != f"Key {self._key}":
            return reply({"detail": "Unauthorized"}, 401)
        if asked.method == "POST":
            fields = msgspec.json.decode(asked.body)
            if "prompt" not in fields:
                problem = {"loc": ["body", "prompt"], "msg": "Field required"}
                return reply({"detail": [problem]}, 422)
            self.made.append({"path": asked.target, **fields})
            place = f"{self.address}{asked.target}/requests/r1"
            return reply(
                {
                    "request_id": "r1",
                    "status_url": f"{place}/status",
                    "response_url": place,
                    "cancel_url": f"{place}/cancel",
                }
            )
        if asked.target.endswith("/status"):
            count = self._asked[asked.target] = self._asked.get(asked.target, 0) + 1
            return reply({"status": "IN_QUEUE" if count == 1 else "COMPLETED"}, 202)
        return reply(
            {
                "images": [
                    {
                        "url": f"{self.address}/files/made.png",
                        "content_type": "image/png",
                        "width": 4,
                        "height": 3,
                    }
                ],
                "seed": 7,
                "has_nsfw_concepts": [False],
            }
        )
