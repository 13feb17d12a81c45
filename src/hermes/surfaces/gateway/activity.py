"""Signs of life in a chat while a turn runs: "typing", which tools are at work, and that it is still going on."""

from collections.abc import Callable

from hermes.schema.events import ToolStarted
from hermes.settings.gateway import GatewaySettings
from hermes.settings.redaction import mask
from hermes.surfaces.gateway.adapter import AdapterError, Chat, Outbound
from hermes.surfaces.gateway.sender import Sender
from hermes.surfaces.terminal.tool_line import label_of

_LINES = 6  # tools that are shown at once
_WIDTH = 120  # characters of each
_MINUTE = 60.0
_TICK = 5.0  # seconds
_SOON = 0.7  # seconds before "typing" is shown: many an answer is there by then


class ChatActivity:
    """Of one chat. Nothing of it is part of the conversation, so none of it is kept or sent again."""

    def __init__(
        self,
        post: Sender,
        chat: Chat,
        settings: GatewaySettings,
        time: Callable[[], float],
    ) -> None:
        self._post = post
        self._chat = chat
        self._settings = settings
        self._time = time
        self._lines: list[str] = []
        self._message = ""
        self._edit_at = 0.0
        self._typing_at = 0.0
        self._began = self._spoke = time()
        self._patience = settings.still_working

    def begin(self) -> None:
        """A turn began."""
        self._began = self._spoke = self._time()
        self._patience = self._settings.still_working
        self._typing_at = self._began + _SOON

    def spoke(self) -> None:
        """The chat has got something to read."""
        self._spoke = self._time()

    def end(self) -> None:
        """The list of tools is over; the next one begins a new one."""
        self._lines = []
        self._message = ""

    async def tool(self, started: ToolStarted) -> None:
        """A tool is at work."""
        if (
            not self._settings.show_tools
            or not self._post.adapter.limits.edit
            or started.name == "ask_user"
        ):
            return
        label = mask(label_of(started.name, mask(started.arguments)))[:_WIDTH].replace(
            "`", "'"
        )
        self._lines = [*self._lines, f"⚙ `{label}`"][-_LINES:]
        if self._message and self._time() < self._edit_at:
            return
        await self._show("\n".join(self._lines))
        self._edit_at = self._time() + self._post.adapter.limits.edit_every

    async def keep_company(self) -> None:
        """What is due by now."""
        now = self._time()
        lasts = self._post.adapter.limits.typing
        if lasts and now >= self._typing_at:
            self._typing_at = now + lasts * 0.8
            try:
                await self._post.adapter.typing(self._chat)
            except AdapterError:
                self._typing_at = now + lasts * 4  # nobody misses it
        if self._patience and now - self._spoke >= self._patience:
            self._patience *= 2
            minutes = max(1, round((now - self._began) / _MINUTE))
            last = f"\n{self._lines[-1]}" if self._lines else ""
            self._message = ""
            await self._show(f"⏳ Still working ({minutes} min). /stop ends it.{last}")
            self._spoke = now

    def pause(self) -> float:
        """Seconds until something may be due."""
        now = self._time()
        due = [_TICK]
        if self._post.adapter.limits.typing:
            due.append(self._typing_at - now)
        if self._patience:
            due.append(self._spoke + self._patience - now)
        return max(0.05, min(due))

    async def _show(self, text: str) -> None:
        out = Outbound(text=text)
        if self._message:
            await self._post.try_edit(self._chat, self._message, out)
            return
        try:
            self._message = await self._post.adapter.send(self._chat, out)
        except AdapterError:  # it is not worth insisting
            self._message = ""
