"""A fake Telegram on loopback that speaks the real Bot API: long polling with acknowledgement by offset, messages,
changes, buttons, files, rate limits and faults on command.

`async with TelegramServer() as telegram:` and set `gateway.telegram.api_url` to `telegram.url`. `say` and `press` are
what people do; `messages` is what they see.
"""

import asyncio
import re
from collections.abc import Callable
from types import TracebackType
from typing import Any, NamedTuple, Self

import msgspec

TOKEN = "4711:loopback-bot-token-of-a-test"  # noqa: S105 - of nobody
_PATH = re.compile(r"/bot(?P<token>[^/]+)/(?P<method>\w+)")
_FILE = re.compile(r"/file/bot(?P<token>[^/]+)/(?P<path>.+)")
_MOST = 4096
_TAG = re.compile(r"<[^>]+>")
PATIENCE = 20.0  # seconds for anything to happen


class Shown(msgspec.Struct):
    """A message as people see it now."""

    chat: str
    id: int
    text: str
    buttons: list[list[dict[str, str]]]
    changes: int = 0
    file: bytes = b""
    kind: str = "text"
    thread: int = 0


class Failure(NamedTuple):
    """What the next calls of a method answer instead."""

    code: int
    description: str
    retry_after: int = 0
    effect: bool = False  # it is done all the same, and only the answer is a failure


class TelegramServer:
    """The platform and the people on it."""

    def __init__(self, token: str = TOKEN) -> None:
        self.token = token
        self.url = ""
        self.messages: list[Shown] = []
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.notes: list[str] = []  # answers to presses
        self.failures: dict[str, list[Failure]] = {}
        self.files: dict[str, bytes] = {}
        self.hang = False  # accept connections and say nothing
        self.unacknowledged: list[dict[str, Any]] = []
        self._updates = 0
        self._ids = 100
        self._changed = asyncio.Event()
        self._asked = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(
            self._accept, "127.0.0.1", 0, backlog=1000
        )
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # --- what people do

    def say(
        self, text: str, *, sender: int = 1, chat: int | None = None, **more: Any
    ) -> int:
        """Somebody writes; in a group when `chat` is negative. The id of their message."""
        place = chat if chat is not None else sender
        kind = "supergroup" if place < 0 else "private"
        self._ids += 1
        message = {
            "message_id": self._ids,
            "from": {"id": sender, "is_bot": False, "first_name": f"Person{sender}"},
            "chat": {
                "id": place,
                "type": kind,
                **({"title": "Group"} if place < 0 else {}),
            },
            "date": 0,
            "text": text,
            **more,
        }
        self._push({"message": message})
        return self._ids

    def press(self, shown: Shown, label: str, *, sender: int = 1) -> None:
        """Somebody presses a button."""
        data = next(
            one["callback_data"]
            for row in shown.buttons
            for one in row
            if one["text"] == label
        )
        kind = "private" if int(shown.chat) > 0 else "supergroup"
        message = {
            "message_id": shown.id,
            "chat": {"id": int(shown.chat), "type": kind},
            "date": 0,
        }
        self._ids += 1
        who = {"id": sender, "is_bot": False, "first_name": f"Person{sender}"}
        self._push(
            {
                "callback_query": {
                    "id": str(self._ids),
                    "from": who,
                    "message": message,
                    "data": data,
                }
            }
        )

    def texts(self, chat: int = 1) -> list[str]:
        """What can be read in a chat, as plain text."""
        return [
            _TAG.sub("", one.text) for one in self.messages if one.chat == str(chat)
        ]

    async def until(self, holds: "Callable[[TelegramServer], object]") -> None:
        """Waits until that holds."""

        async def look() -> None:
            while not holds(self):
                self._changed.clear()
                await self._changed.wait()

        try:
            await asyncio.wait_for(look(), PATIENCE)
        except TimeoutError as error:
            raise AssertionError(
                f"it never held of: {self.messages!r}\n{self.calls[-10:]!r}"
            ) from error

    async def sees(self, text: str, *, chat: int = 1) -> Shown:
        """Waits until a message of a chat holds that text."""

        def found(server: "TelegramServer") -> Shown | None:
            every = (one for one in server.messages if one.chat == str(chat))
            return next((one for one in every if text in _TAG.sub("", one.text)), None)

        await self.until(found)
        shown = found(self)
        assert shown is not None
        return shown

    def _push(self, update: dict[str, Any]) -> None:
        self._updates += 1
        self.unacknowledged.append({"update_id": self._updates, **update})
        self._asked.set()

    def again(self, update: dict[str, Any]) -> None:
        """Hands out an update once more, as Telegram does when an acknowledgement was lost."""
        self.unacknowledged.append(update)
        self._asked.set()

    # --- the wire

    def _accept(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                length = re.search(r"(?i)content-length: (\d+)", head)
                body = await reader.readexactly(int(length[1]) if length else 0)
                if self.hang:
                    await asyncio.Event().wait()
                status, content = await self._answer(head.split(" ", 2)[1], head, body)
                writer.write(
                    f"HTTP/1.1 {status} X\r\ncontent-length: {len(content)}\r\n\r\n".encode()
                    + content
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, path: str, head: str, body: bytes) -> tuple[int, bytes]:
        if file := _FILE.fullmatch(path):
            return (
                (200, self.files[file["path"]])
                if file["path"] in self.files
                else (404, b"")
            )
        found = _PATH.fullmatch(path)
        if found is None or found["token"] != self.token:
            return _error(Failure(401, "Unauthorized"))
        fields = _fields(head, body)
        method = found["method"]
        self.calls.append((method, fields))
        failure = self.failures[method].pop(0) if self.failures.get(method) else None
        if failure is not None and not failure.effect:
            self._changed.set()
            return _error(failure)
        try:
            result = await getattr(self, f"_do_{method}")(fields)
        except ValueError as error:
            return _error(Failure(400, f"Bad Request: {error}"))
        finally:
            self._changed.set()
        if failure is not None:
            return _error(failure)
        return 200, msgspec.json.encode({"ok": True, "result": result})

    async def _do_getMe(self, _: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        return {
            "id": 4711,
            "is_bot": True,
            "first_name": "Hermes",
            "username": "loopback_bot",
        }

    async def _do_setMyCommands(self, fields: dict[str, Any]) -> bool:  # noqa: N802
        for one in fields["commands"]:
            if not re.fullmatch(r"[a-z0-9_]{1,32}", one["command"]):
                raise ValueError("BOT_COMMAND_INVALID")
        return True

    async def _do_deleteWebhook(self, _: dict[str, Any]) -> bool:  # noqa: N802
        return True

    async def _do_setWebhook(self, _: dict[str, Any]) -> bool:  # noqa: N802
        return True

    async def _do_sendChatAction(self, _: dict[str, Any]) -> bool:  # noqa: N802
        return True

    async def _do_answerCallbackQuery(self, fields: dict[str, Any]) -> bool:  # noqa: N802
        self.notes.append(fields.get("text", ""))
        return True

    async def _do_getUpdates(self, fields: dict[str, Any]) -> list[dict[str, Any]]:  # noqa: N802
        offset = int(fields.get("offset", 0))
        self.unacknowledged = [
            one for one in self.unacknowledged if one["update_id"] >= offset
        ]
        deadline = asyncio.get_running_loop().time() + min(
            float(fields.get("timeout", 0)), 5.0
        )
        while not self.unacknowledged and asyncio.get_running_loop().time() < deadline:
            self._asked.clear()
            try:
                await asyncio.wait_for(
                    self._asked.wait(), deadline - asyncio.get_running_loop().time()
                )
            except TimeoutError:
                break
        return self.unacknowledged[:100]

    async def _do_getFile(self, fields: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        name = fields["file_id"]
        if name not in self.files:
            raise ValueError("wrong file_id")
        return {"file_id": name, "file_path": name, "file_size": len(self.files[name])}

    async def _do_sendMessage(self, fields: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        _check(fields)
        return self._show(fields, fields["text"])

    async def _do_editMessageText(self, fields: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        _check(fields)
        found = [
            one
            for one in self.messages
            if (one.chat, one.id) == (str(fields["chat_id"]), int(fields["message_id"]))
            and one.kind == "text"
        ]
        if not found:
            raise ValueError("message to edit not found")
        buttons = _buttons(fields)
        if (found[0].text, found[0].buttons) == (fields["text"], buttons):
            raise ValueError(
                "message is not modified: specified new message content is exactly the same"
            )
        found[0].text, found[0].buttons = fields["text"], buttons
        found[0].changes += 1
        return {"message_id": found[0].id}

    async def _do_sendDocument(self, fields: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        return self._show(fields, "", fields["document"], "document")

    async def _do_sendVoice(self, fields: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        return self._show(fields, "", fields["voice"], "voice")

    async def _do_sendAudio(self, fields: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        return self._show(fields, "", fields["audio"], "audio")

    async def _do_sendPhoto(self, fields: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        return self._show(fields, "", fields["photo"], "photo")

    def _show(
        self, fields: dict[str, Any], text: str, file: bytes = b"", kind: str = "text"
    ) -> dict[str, Any]:
        self._ids += 1
        thread = int(fields.get("message_thread_id", 0))
        shown = Shown(
            str(fields["chat_id"]),
            self._ids,
            text,
            _buttons(fields),
            0,
            file,
            kind,
            thread,
        )
        self.messages.append(shown)
        return {"message_id": self._ids, "chat": {"id": fields["chat_id"]}}


def _buttons(fields: dict[str, Any]) -> list[list[dict[str, str]]]:
    rows = fields.get("reply_markup", {}).get("inline_keyboard", [])
    if any(len(one["callback_data"].encode()) > 64 for row in rows for one in row):
        raise ValueError("BUTTON_DATA_INVALID")
    return rows


def _check(fields: dict[str, Any]) -> None:
    text = fields.get("text", "")
    plain = _TAG.sub("", text) if fields.get("parse_mode") == "HTML" else text
    if not plain.strip():
        raise ValueError("message text is empty")
    if len(plain.encode("utf-16-le")) // 2 > _MOST + 2:
        raise ValueError("message is too long")
    open_tags: list[str] = []
    for closing, name in (
        re.findall(r"<(/?)(\w+)[^>]*>", text)
        if fields.get("parse_mode") == "HTML"
        else ()
    ):
        if not closing:
            open_tags.append(name)
        elif not open_tags or open_tags.pop() != name:
            raise ValueError("can't parse entities: unexpected end tag")


def _fields(head: str, body: bytes) -> dict[str, Any]:
    if "multipart/form-data" not in head.lower():
        return msgspec.json.decode(body) if body else {}
    mark = re.search(r"(?i)boundary=(\S+)", head)
    fields: dict[str, Any] = {}
    for part in body.split(b"--" + mark[1].encode() if mark else b"")[1:-1]:
        top, _, content = part.strip(b"\r\n").partition(b"\r\n\r\n")
        name = re.search(rb'name="([^"]+)"', top)
        if name:
            fields[name[1].decode()] = (
                content if b"filename=" in top else content.decode()
            )
    return fields


def _error(failure: Failure) -> tuple[int, bytes]:
    body: dict[str, Any] = {
        "ok": False,
        "error_code": failure.code,
        "description": failure.description,
    }
    if failure.retry_after:
        body["parameters"] = {"retry_after": failure.retry_after}
    return failure.code, msgspec.json.encode(body)
