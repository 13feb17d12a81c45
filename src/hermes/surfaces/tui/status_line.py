"""The status line below the input: model, context use, cost, approval mode and sandbox."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from hermes.app.engine import ModelInfo
from hermes.surfaces.terminal.text import cut, money, width
from hermes.text.plurals import short_number

if TYPE_CHECKING:
    from hermes.surfaces.tui.conversation import ChatConversation


class StatusLine(msgspec.Struct):
    """The values of the line. The first parts win when there is no room for all."""

    model: str = ""
    window: int = 0
    """The size of the context window in tokens; 0 if unknown."""
    context: int = 0
    """The tokens of the last request and its reply."""
    cost: float = 0.0
    mode: str = ""
    sandbox: str = ""

    def on_event(self, event: Mapping[str, Any]) -> None:
        """Updates the line from an event."""
        if event["type"] == "agent.message.assistant":
            usage = event.get("usage") or {}
            self.context = (
                usage.get("input_tokens", 0) + usage.get("output_tokens", 0)
                or self.context
            )
            self.cost += usage.get("cost_usd") or 0.0
            name = event.get("model")
            if name:  # the provider may choose it, or a fallback may have answered
                self.model = ModelInfo(event.get("provider", ""), name).label
        elif event["type"] == "agent.auxiliary.called":
            self.cost += (event.get("usage") or {}).get("cost_usd") or 0.0

    def text(self, columns: int, bullet: str) -> str:
        """Returns the line in at most `columns` cells."""
        parts = [self.model, self.filled(), money(self.cost), self.mode, self.sandbox]
        between = f" {bullet} "
        line = ""
        for part in filter(None, parts):
            longer = f"{line}{between}{part}" if line else part
            if width(longer) > columns:
                break
            line = longer
        return line or cut(self.model, columns)

    def filled(self) -> str:
        """Returns how full the context window is; empty before the first reply."""
        if not self.context:
            return ""
        if not self.window:
            return (
                f"{short_number(self.context)} token{'' if self.context == 1 else 's'}"
            )
        share = 100 * self.context / self.window
        return f"{'<1' if share < 1 else min(999, round(share))}% of {short_number(self.window)}"


def current_status(chat: "ChatConversation", before: StatusLine) -> StatusLine:
    """Returns the status line for the chat's current session and model."""
    from hermes.providers.catalogue import UNKNOWN, facts_of

    settings = chat.app.settings
    model = chat.agent.describe(chat.session)
    custom = settings.custom_providers.get(model.provider)
    facts = facts_of(model.name, custom.models if custom else None)
    rows = chat.app.store.sessions.usage(session=chat.session)
    return StatusLine(
        model=model.label,
        window=0 if facts is UNKNOWN else facts.window,
        context=before.context,
        cost=sum(row.cost_usd for row in rows),
        mode=chat.approvals,
        sandbox=before.sandbox,
    )
