"""The two wire formats of requests, read into one.

What Hermes can't do is refused where a client would fail if it were ignored.
"""

import base64
import hashlib
from typing import Any, Literal, TypeAlias

import msgspec

from hermes.schema.messages import Image
from hermes.settings import Home
from hermes.surfaces.web.errors import Refusal

DEFAULT_MODEL = "hermes"
"""Stands for the model of the settings."""

_PICTURE_TYPES = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/gif": "gif",
    "image/webp": "webp",
}
_MAX_PICTURE_BYTES = 20_000_000
Role: TypeAlias = Literal["system", "user", "assistant"]


class ClientMessage(msgspec.Struct, frozen=True):
    """A message of the conversation that the client sent."""

    role: Role
    text: str
    pictures: tuple[str, ...] = ()
    """https or data addresses."""


class ApiRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request in either format."""

    model: str
    messages: tuple[ClientMessage, ...]
    stream: bool = False
    include_usage: bool = False
    conversation: str = ""
    """The client's name of the conversation; empty for one that each request contains whole."""
    previous: str = ""
    """The id of the previous response."""
    instructions: str = ""
    metadata: dict[str, str] = {}

    @property
    def before(self) -> tuple[ClientMessage, ...]:
        """The messages before the user's last ones."""
        return self.messages[: self._last]

    @property
    def now(self) -> tuple[ClientMessage, ...]:
        """The user's last messages: all after the last answer."""
        return tuple(one for one in self.messages[self._last :] if one.role == "user")

    @property
    def system(self) -> str:
        """The instructions of the application."""
        texts = [
            self.instructions,
            *(one.text for one in self.messages if one.role == "system"),
        ]
        return "\n\n".join(text for text in texts if text.strip())

    @property
    def _last(self) -> int:
        answers = [
            number
            for number, one in enumerate(self.messages, 1)
            if one.role == "assistant"
        ]
        return answers[-1] if answers else 0


class _StreamOptions(msgspec.Struct):
    include_usage: bool = False


class _Format(msgspec.Struct):
    type: str = "text"


class _Text(msgspec.Struct):
    format: _Format | None = None


class _Message(msgspec.Struct):
    role: str = ""
    content: str | list[dict[str, Any]] | None = None
    type: str = "message"


class _Conversation(msgspec.Struct):
    id: str = ""


class ChatBody(msgspec.Struct):
    """The body of `POST /v1/chat/completions`, as far as Hermes uses it."""

    messages: list[_Message]
    model: str = DEFAULT_MODEL
    stream: bool | None = False
    stream_options: _StreamOptions | None = None
    n: int | None = 1
    tools: list[Any] | None = None
    functions: list[Any] | None = None
    response_format: _Format | None = None
    user: str | None = ""
    metadata: dict[str, str] | None = None

    def request(self, header: str, *, by_user: bool = False) -> ApiRequest:
        """The request. A conversation that is sent whole needs no name, whatever `user` says."""
        _refuse_tools(self.tools or self.functions)
        _refuse_format(self.response_format, "response_format")
        if self.n not in (None, 1):
            raise Refusal(
                400,
                "Hermes returns one answer per request.",
                code="unsupported_value",
                param="n",
            )
        metadata = self.metadata or {}
        messages = _messages(self.messages)
        is_whole = any(one.role == "assistant" for one in messages)
        user = self.user or "" if by_user and not is_whole else ""
        return ApiRequest(
            model=self.model,
            messages=messages,
            stream=bool(self.stream),
            include_usage=bool(
                self.stream_options and self.stream_options.include_usage
            ),
            conversation=header
            or metadata.get("session", "")
            or metadata.get("conversation", "")
            or user,
            metadata=metadata,
        )


class ResponseBody(msgspec.Struct):
    """The body of `POST /v1/responses`, as far as Hermes uses it."""

    input: str | list[_Message]
    model: str = DEFAULT_MODEL
    stream: bool | None = False
    instructions: str | None = ""
    previous_response_id: str | None = ""
    conversation: str | _Conversation | None = ""
    tools: list[Any] | None = None
    text: _Text | None = None
    background: bool | None = False
    user: str | None = ""
    metadata: dict[str, str] | None = None

    def request(self, header: str) -> ApiRequest:
        """The request."""
        _refuse_tools(self.tools)
        _refuse_format(self.text.format if self.text else None, "text.format")
        if self.background:
            raise Refusal(
                400,
                "Background responses are not supported.",
                code="unsupported_value",
                param="background",
            )
        metadata = self.metadata or {}
        named = (
            self.conversation.id
            if isinstance(self.conversation, _Conversation)
            else self.conversation or ""
        )
        if named and self.previous_response_id:
            raise Refusal(
                400,
                "Name a conversation or a previous response, not both.",
                param="conversation",
            )
        words = (
            [_Message("user", self.input)]
            if isinstance(self.input, str)
            else self.input
        )
        return ApiRequest(
            model=self.model,
            messages=_messages(words),
            stream=bool(self.stream),
            include_usage=True,
            conversation=header
            or named
            or metadata.get("session", "")
            or metadata.get("conversation", ""),
            previous=self.previous_response_id or "",
            instructions=self.instructions or "",
            metadata=metadata,
        )


def _messages(given: list[_Message]) -> tuple[ClientMessage, ...]:
    found = tuple(_client_message(one, number) for number, one in enumerate(given))
    if (
        not found
        or found[-1].role == "assistant"
        or not any(one.role == "user" for one in found)
    ):
        raise Refusal(
            400,
            "The last message must be from the user.",
            code="invalid_value",
            param="messages",
        )
    if not (found[-1].text.strip() or found[-1].pictures):
        raise Refusal(
            400, "The last message is empty.", code="invalid_value", param="messages"
        )
    return found


def _client_message(message: _Message, number: int) -> ClientMessage:
    role = {"developer": "system"}.get(message.role, message.role)
    if message.type != "message" or role not in ("system", "user", "assistant"):
        what = message.type if message.type != "message" else message.role
        raise Refusal(
            400,
            f"{what!r} is not supported: Hermes runs tools itself.",
            param=f"messages[{number}]",
        )
    if message.content is None or isinstance(message.content, str):
        return ClientMessage(role, message.content or "")  # type: ignore[arg-type]
    texts: list[str] = []
    pictures: list[str] = []
    for part in message.content:
        match part:
            case {"type": "text" | "input_text" | "output_text" | "refusal", **rest}:
                texts.append(str(rest.get("text") or rest.get("refusal") or ""))
            case {"type": "image_url", "image_url": {"url": str(url)}} | {
                "type": "input_image",
                "image_url": str(url),
            }:
                pictures.append(url)
            case _:
                what = part.get("type")
                raise Refusal(
                    400,
                    f"Content of type {what!r} is not supported.",
                    param=f"messages[{number}].content",
                )
    return ClientMessage(role, "\n".join(texts), tuple(pictures))  # type: ignore[arg-type]


def _refuse_tools(tools: list[Any] | None) -> None:
    if tools:
        text = "Tools of the client are not supported: Hermes runs its own. See `hermes tools`."
        raise Refusal(400, text, code="unsupported_parameter", param="tools")


def _refuse_format(wanted: _Format | None, param: str) -> None:
    """Refuses JSON mode: a client would fail on anything else, and Hermes can't guarantee it."""
    if wanted is not None and wanted.type != "text":
        text = f"Answers in the format {wanted.type!r} can't be guaranteed. Ask for it in the message, and check the answer."
        raise Refusal(400, text, code="unsupported_parameter", param=param)


def pictures_of(said: tuple[ClientMessage, ...], home: Home) -> tuple[Image, ...]:
    """The pictures of messages; those in the request itself are stored in files."""
    return tuple(_picture(url, home) for one in said for url in one.pictures)


def _picture(url: str, home: Home) -> Image:
    if url.startswith("https://"):
        return Image(source=url, media_type="image/*")
    head, _, data = url.partition(",")
    kind = head.removeprefix("data:").removesuffix(";base64")
    if (
        not head.startswith("data:")
        or kind not in _PICTURE_TYPES
        or not head.endswith(";base64")
    ):
        raise Refusal(
            400,
            "A picture must be an https URL, or data:image/png;base64,...",
            param="image_url",
        )
    try:
        content = base64.b64decode(data, validate=True)
    except ValueError as error:
        raise Refusal(
            400, "The picture is not valid base64.", param="image_url"
        ) from error
    if len(content) > _MAX_PICTURE_BYTES:
        raise Refusal(400, "The picture is too large.", param="image_url")
    folder = home.cache / "api"
    home.ensure(home.cache, folder)
    path = folder / f"{hashlib.sha256(content).hexdigest()[:32]}.{_PICTURE_TYPES[kind]}"
    path.write_bytes(content)
    return Image(source=str(path), media_type=kind)
