"""The status line below the input: model, mode, context use, cost, branch, background work, sandbox and the person's
own script.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from hermes.app.model_info import ModelInfo
from hermes.errors import HermesError
from hermes.surfaces.terminal.text import cut, money, one_line, width
from hermes.text.formats import short_number
from hermes.text.translation import translator

if TYPE_CHECKING:
    from hermes.surfaces.tui.conversation import ChatConversation

t = translator(__name__)

_MAX_BRANCH_CELLS = 24
_MAX_HEAD_BYTES = 4_096


class StatusLine(msgspec.Struct):
    """The values of the line. The first parts win when there is no room for all."""

    model: str = ""
    window: int = 0
    """The size of the context window in tokens; 0 if unknown."""
    context: int = 0
    """The tokens of the last request and its reply."""
    cost: float = 0.0
    is_priced: bool = True
    """Whether the price of every call is known."""
    review_cost: float = 0.0
    """The cost of the review that runs in the background."""
    branch: str = ""
    agents: frozenset[str] = frozenset()
    """The child sessions that work now."""
    script: str = ""
    """What the person's own program printed."""
    mode: str = ""
    sandbox: str = ""
    profile: str = ""
    """The profile, if it is not the default one."""

    def on_event(self, event: Mapping[str, Any]) -> None:
        """Updates the line from an event."""
        if event["type"] == "agent.message.assistant":
            usage = event.get("usage") or {}
            self.context = (
                usage.get("input_tokens", 0) + usage.get("output_tokens", 0)
                or self.context
            )
            self._add_cost(usage)
            name = event.get("model")
            if name:  # the provider may choose it, or a fallback may have answered
                self.model = ModelInfo(event.get("provider", ""), name).label
        elif event["type"] == "session.mode_changed":
            self.mode = event["mode"]
        elif event["type"] == "agent.auxiliary.called":
            usage = event.get("usage") or {}
            self._add_cost(usage)
            if event.get("task") == "review":
                self.review_cost += usage.get("cost_usd") or 0.0

    def on_child_event(self, event: Mapping[str, Any]) -> bool:
        """Updates the line from an event of a child session. Returns whether it changed."""
        before, child = self.agents, frozenset((event.get("session_id", ""),))
        if event["type"] == "agent.turn.started":
            self.agents |= child
        elif event["type"] == "agent.turn.ended":
            self.agents -= child
        return self.agents != before

    def spent(self) -> str:
        """Returns the cost so far; empty for nothing."""
        known = money(self.cost)
        if self.is_priced:
            return known
        return f"{known} + {t('unknown')}" if known else t("cost unknown")

    def _add_cost(self, usage: Mapping[str, Any]) -> None:
        self.cost += usage.get("cost_usd") or 0.0
        if usage and usage.get("cost_usd") is None:
            self.is_priced = False

    def text(self, columns: int, bullet: str) -> str:
        """Returns the line in at most `columns` cells."""
        working = ""
        if self.agents:
            working = t("{count} agent", "{count} agents", count=len(self.agents))
        parts = [
            *(self.model, self.profile, self.mode, self.filled(), self.spent()),
            *(self.branch, working, self.sandbox, self.script),
        ]
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
            tokens = short_number(self.context)
            return t(
                "{tokens} token", "{tokens} tokens", count=self.context, tokens=tokens
            )
        share = 100 * self.context / self.window
        percent = "<1" if share < 1 else min(999, round(share))
        return t(
            "{percent}% of {window}", percent=percent, window=short_number(self.window)
        )


def status_facts(line: StatusLine, session: str, folder: Path) -> dict[str, object]:
    """Returns what the person's own program is told."""
    return {
        "session": session,
        "folder": str(folder),
        "model": line.model,
        "mode": line.mode,
        "context_tokens": line.context,
        "context_window": line.window,
        "cost_usd": line.cost if line.is_priced else None,
        "branch": line.branch,
        "agents": len(line.agents),
        "profile": line.profile,
    }


def branch_of(folder: Path) -> str:
    """Returns the branch of a folder, cut if its name is long."""
    return cut(one_line(git_branch(folder)), _MAX_BRANCH_CELLS)


def current_status(chat: "ChatConversation", before: StatusLine) -> StatusLine:
    """Returns the status line for the chat's current session and model."""
    from hermes.providers.catalogue import UNKNOWN, facts_of

    settings = chat.app.settings
    model = _answering_model(chat)
    custom = settings.custom_providers.get(model.provider)
    facts = facts_of(model.name, custom.models if custom else None)
    rows = chat.app.store.sessions.usage(session=chat.session)
    return StatusLine(
        model=model.label,
        window=0 if facts is UNKNOWN else facts.window,
        context=before.context,
        cost=sum(row.cost_usd for row in rows),
        is_priced=not any(row.unpriced_calls for row in rows),
        branch=branch_of(chat.folder),
        agents=before.agents,
        script=before.script,
        mode=chat.approvals,
        sandbox=before.sandbox,
        profile=t("profile {name}", name=name)
        if (name := chat.app.home.profile)
        else "",
    )


def _answering_model(chat: "ChatConversation") -> ModelInfo:
    """The model that answers. One that can't be used has only its name: a turn says why."""
    try:
        return chat.agent.describe(chat.session)
    except HermesError:
        return ModelInfo("", chat.model)


def git_branch(folder: Path) -> str:
    """Returns the branch, the start of a commit if there is none, or nothing outside a repository."""
    for parent in (folder, *folder.parents):
        found = parent / ".git"
        try:
            if found.is_dir():
                return _branch(found / "HEAD")
            if found.is_file():  # a worktree or a submodule
                link = _start_of(found).removeprefix("gitdir:").strip()
                return _branch((parent / link) / "HEAD")
        except (OSError, ValueError):  # perhaps a pipe, a link or a large file
            return ""
    return ""


def _branch(head: Path) -> str:
    text = _start_of(head)
    return (
        text.removeprefix("ref: refs/heads/") if text.startswith("ref:") else text[:8]
    )


def _start_of(path: Path) -> str:
    from hermes.tools.project_rules import read_small_file

    return read_small_file(path, _MAX_HEAD_BYTES).strip()
