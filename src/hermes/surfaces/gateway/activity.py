"""Shows in a chat that a turn runs: "typing", the tools that run, and that the turn is still working."""

from collections.abc import Callable

from hermes.schema.events import ToolStarted
from hermes.settings.gateway import GatewaySettings
from hermes.settings.redaction import mask
from hermes.surfaces.gateway.adapter import AdapterError, Chat, Outbound
from hermes.surfaces.gateway.sender import Sender
from hermes.surfaces.terminal.tool_line import label_of
from hermes.text.translation import translator

t = translator(__name__)

_MAX_TOOL_LINES = 6
_MAX_TOOL_LINE_CHARACTERS = 120
_MAX_UPDATE_PAUSE_S = 5.0
_TYPING_DELAY_S = 0.7
"""Many replies arrive before "typing" would be shown."""


class ChatActivity:
    """The activity of one chat. It is not part of the conversation, so it is neither stored nor sent again."""

    def __init__(
        self,
        sender: Sender,
        chat: Chat,
        settings: GatewaySettings,
        time: Callable[[], float],
    ) -> None:
        self._sender = sender
        self._chat = chat
        self._settings = settings
        self._time = time
        self._lines: list[str] = []
        self._message = ""
        self._edit_at = 0.0
        self._typing_at = 0.0
        self._began = self._spoke = time()
        self._still_working_s = settings.still_working

    def begin(self) -> None:
        """A turn has started."""
        self._began = self._spoke = self._time()
        self._still_working_s = self._settings.still_working
        self._typing_at = self._began + _TYPING_DELAY_S

    def spoke(self) -> None:
        """The chat has received a message."""
        self._spoke = self._time()

    def end(self) -> None:
        """Ends the list of tools; the next tool starts a new one."""
        self._lines = []
        self._message = ""

    async def tool(self, started: ToolStarted) -> None:
        """Shows a tool that runs."""
        if (
            not self._settings.show_tools
            or not self._sender.adapter.limits.edit
            or started.name == "ask_user"
        ):
            return
        label = mask(label_of(started.name, mask(started.arguments)))[
            :_MAX_TOOL_LINE_CHARACTERS
        ].replace("`", "'")
        self._lines = [*self._lines, f"⚙ `{label}`"][-_MAX_TOOL_LINES:]
        if self._message and self._time() < self._edit_at:
            return
        await self._show("\n".join(self._lines))
        self._edit_at = self._time() + self._sender.adapter.limits.edit_every

    async def update(self) -> None:
        """Shows what is due by now."""
        now = self._time()
        lasts = self._sender.adapter.limits.typing
        if lasts and now >= self._typing_at:
            self._typing_at = now + lasts * 0.8
            try:
                await self._sender.adapter.typing(self._chat)
            except AdapterError:
                self._typing_at = now + lasts * 4  # not worth a retry
        if self._still_working_s and now - self._spoke >= self._still_working_s:
            self._still_working_s *= 2
            minutes = max(1, round((now - self._began) / 60))
            last = f"\n{self._lines[-1]}" if self._lines else ""
            self._message = ""
            await self._show(
                t("⏳ Still working ({minutes} min). /stop stops it.", minutes=minutes)
                + last
            )
            self._spoke = now

    def pause(self) -> float:
        """Seconds until the next update may be due."""
        now = self._time()
        due = [_MAX_UPDATE_PAUSE_S]
        if self._sender.adapter.limits.typing:
            due.append(self._typing_at - now)
        if self._still_working_s:
            due.append(self._spoke + self._still_working_s - now)
        return max(0.05, min(due))

    async def _show(self, text: str) -> None:
        out = Outbound(text=text)
        if self._message:
            await self._sender.try_edit(self._chat, self._message, out)
            return
        try:
            self._message = await self._sender.adapter.send(self._chat, out)
        except AdapterError:  # not worth a retry
            self._message = ""
