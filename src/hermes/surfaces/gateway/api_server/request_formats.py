"""The wire formats of OpenAI's requests, read into one; `anthropic_format` reads Anthropic's into the same.

An option that Hermes does not support is refused if a client would fail without it, and ignored otherwise.
"""

import base64
import hashlib
import re
from typing import Any, Literal, TypeAlias, get_args

import msgspec

from hermes.schema.messages import Image, ToolCall
from hermes.schema.tool_spec import ToolSpec
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
_TOOL_NAME = re.compile(r"[A-Za-z0-9_\-]{1,64}")
_MAX_PICTURE_BYTES = 20_000_000
Role: TypeAlias = Literal["system", "user", "assistant", "tool"]


class ClientMessage(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message of the conversation that the client sent."""

    role: Role
    text: str
    pictures: tuple[str, ...] = ()
    """https or data addresses."""
    calls: tuple[ToolCall, ...] = ()
    """What the assistant called."""
    call_id: str = ""
    """Of a tool: the call whose result this is."""


class AnswerFormat(msgspec.Struct, frozen=True):
    """The answer must be JSON, and fit the schema if there is one."""

    schema: dict[str, Any] | None = None

    @property
    def instructions(self) -> str:
        """What the model is told."""
        text = "Reply with a single JSON object and nothing else: no explanation, no code fence."
        if self.schema is None:
            return text
        return f"{text} It must fit this JSON Schema:\n{msgspec.json.encode(self.schema).decode()}"


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
    tools: tuple[ToolSpec, ...] = ()
    """Tools that the caller runs itself."""
    format: AnswerFormat | None = None

    @property
    def results(self) -> dict[str, str]:
        """The results of the caller's tools, by the id of the call."""
        last = self.messages[self._last :]
        return {one.call_id: one.text for one in last if one.role == "tool"}

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


class _JsonSchema(msgspec.Struct):
    schema: dict[str, Any] | None = None


class _Format(msgspec.Struct):
    type: str = "text"
    json_schema: _JsonSchema | None = None
    schema: dict[str, Any] | None = None


class _Function(msgspec.Struct):
    name: str = ""
    description: str | None = ""
    parameters: dict[str, Any] | None = None
    arguments: str | None = ""


class _Tool(msgspec.Struct):
    type: str = "function"
    function: _Function | None = None
    name: str = ""
    description: str | None = ""
    parameters: dict[str, Any] | None = None


class _Call(msgspec.Struct):
    id: str = ""
    function: _Function = msgspec.field(default_factory=_Function)


class _Text(msgspec.Struct):
    format: _Format | None = None


class _Message(msgspec.Struct):
    role: str = ""
    content: str | list[dict[str, Any]] | None = None
    type: str = "message"
    tool_calls: list[_Call] | None = None
    tool_call_id: str = ""
    call_id: str = ""
    name: str | None = ""
    arguments: str = ""
    output: str | list[dict[str, Any]] | None = None


class _Conversation(msgspec.Struct):
    id: str = ""


class ChatBody(msgspec.Struct):
    """The body of `POST /v1/chat/completions`, as far as Hermes uses it."""

    messages: list[_Message]
    model: str = DEFAULT_MODEL
    stream: bool | None = False
    stream_options: _StreamOptions | None = None
    n: int | None = 1
    tools: list[_Tool] | None = None
    tool_choice: str | dict[str, Any] | None = "auto"
    functions: list[Any] | None = None
    response_format: _Format | None = None
    user: str | None = ""
    metadata: dict[str, str] | None = None

    def request(self, header: str, *, by_user: bool = False) -> ApiRequest:
        """The request. A conversation that is sent whole needs no name, whatever `user` says."""
        _refuse_functions(self.functions)
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
            tools=_tools(self.tools, self.tool_choice),
            format=_answer_format(self.response_format, "response_format"),
        )


class ResponseBody(msgspec.Struct):
    """The body of `POST /v1/responses`, as far as Hermes uses it."""

    input: str | list[_Message]
    model: str = DEFAULT_MODEL
    stream: bool | None = False
    instructions: str | None = ""
    previous_response_id: str | None = ""
    conversation: str | _Conversation | None = ""
    tools: list[_Tool] | None = None
    tool_choice: str | dict[str, Any] | None = "auto"
    text: _Text | None = None
    background: bool | None = False
    user: str | None = ""
    metadata: dict[str, str] | None = None

    def request(self, header: str) -> ApiRequest:
        """The request."""
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
            messages=_messages(words, follows=bool(self.previous_response_id)),
            stream=bool(self.stream),
            include_usage=True,
            conversation=header
            or named
            or metadata.get("session", "")
            or metadata.get("conversation", ""),
            previous=self.previous_response_id or "",
            instructions=self.instructions or "",
            metadata=metadata,
            tools=_tools(self.tools, self.tool_choice),
            format=_answer_format(
                self.text.format if self.text else None, "text.format"
            ),
        )


def _messages(
    given: list[_Message], *, follows: bool = False
) -> tuple[ClientMessage, ...]:
    found = (_client_message(one, number) for number, one in enumerate(given))
    return checked(tuple(found), follows=follows)


def checked(
    found: tuple[ClientMessage, ...], *, follows: bool = False
) -> tuple[ClientMessage, ...]:
    """A conversation that can be answered, or what `follows` an earlier response. Raises Refusal for any other."""
    called = {call.id for one in found for call in one.calls}
    unknown = [
        one.call_id for one in found if one.role == "tool" and one.call_id not in called
    ]
    if unknown and not follows:
        raise _wrong_messages(
            f"There is no call {unknown[0]!r} for this result of a tool."
        )
    if not found or found[-1].role != "tool":
        _require_user_message(found)
    return found


def _require_user_message(found: tuple[ClientMessage, ...]) -> None:
    """Raises Refusal if nothing asks for an answer."""
    has_user = any(one.role == "user" for one in found)
    if not has_user or found[-1].role == "assistant":
        raise _wrong_messages("The last message must be from the user.")
    if not (found[-1].text.strip() or found[-1].pictures):
        raise _wrong_messages("The last message is empty.")


def _wrong_messages(text: str) -> Refusal:
    return Refusal(400, text, code="invalid_value", param="messages")


def _client_message(message: _Message, number: int) -> ClientMessage:
    if message.type == "function_call":
        call = ToolCall(
            id=message.call_id, name=message.name or "", arguments=message.arguments
        )
        return ClientMessage("assistant", "", calls=(call,))
    if message.type == "function_call_output":
        text, _ = _parts(message.output, number)
        return ClientMessage("tool", text, call_id=message.call_id)
    role = {"developer": "system"}.get(message.role, message.role)
    if message.type != "message" or role not in get_args(Role):
        what = message.type if message.type != "message" else message.role
        raise Refusal(400, f"{what!r} is not supported.", param=f"messages[{number}]")
    text, pictures = _parts(message.content, number)
    calls = tuple(
        ToolCall(
            id=call.id,
            name=call.function.name,
            arguments=call.function.arguments or "{}",
        )
        for call in message.tool_calls or ()
    )
    return ClientMessage(
        msgspec.convert(role, Role), text, pictures, calls, message.tool_call_id
    )


def _parts(
    content: str | list[dict[str, Any]] | None, number: int
) -> tuple[str, tuple[str, ...]]:
    """The text and the pictures of a message."""
    if content is None or isinstance(content, str):
        return content or "", ()
    texts: list[str] = []
    pictures: list[str] = []
    for part in content:
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
    return "\n".join(texts), tuple(pictures)


def _refuse_functions(functions: list[Any] | None) -> None:
    if functions:
        text = "`functions` is no longer supported. Send `tools` instead."
        raise Refusal(400, text, code="unsupported_parameter", param="functions")


def _tools(
    given: list[_Tool] | None, choice: str | dict[str, Any] | None
) -> tuple[ToolSpec, ...]:
    """The caller's tools. Tools that a service would run itself, such as a web search, are Hermes' own anyway."""
    if choice == "none":
        return ()
    specs: list[ToolSpec] = []
    for one in given or ():
        if one.type != "function":
            continue
        name = one.function.name if one.function else one.name
        described = one.function or one
        specs.append(tool_spec(name, described.description, described.parameters))
    return tuple(specs)


def tool_spec(
    name: str, description: str | None, parameters: dict[str, Any] | None
) -> ToolSpec:
    """A tool of the caller as the model sees it. Raises Refusal for a name that no model takes."""
    if not _TOOL_NAME.fullmatch(name):
        raise Refusal(400, f"{name!r} can't be the name of a tool.", param="tools")
    empty: dict[str, Any] = {"type": "object", "properties": {}}
    return ToolSpec(
        name=name, description=description or "", parameters=parameters or empty
    )


def _answer_format(wanted: _Format | None, param: str) -> AnswerFormat | None:
    if wanted is None or wanted.type == "text":
        return None
    if wanted.type == "json_object":
        return AnswerFormat()
    if wanted.type == "json_schema":
        named = wanted.json_schema.schema if wanted.json_schema else None
        return AnswerFormat(wanted.schema or named)
    text = f"There is no format {wanted.type!r}."
    raise Refusal(400, text, code="unsupported_value", param=param)


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
