"""Shift-Tab: goes through the modes. A mode takes effect only after a moment, because a person may press it several
times to reach the wanted one.
"""

import asyncio
from collections.abc import Awaitable, Callable

from hermes.primitives.tasks import BackgroundTasks
from hermes.surfaces.terminal.run_options import Approvals
from hermes.text.translation import translator

t = translator(__name__)

MODES: tuple[Approvals, ...] = ("ask", "auto-edit", "plan", "full")
SETTLE_S = 0.7
"""How long after the last press a mode takes effect."""
SETTLE_WITH_QUESTION_S = 2.0
"""The same while a call waits for approval, which the mode may answer."""
_ALLOWING = ("auto-edit", "full")


class ModeSwitch:
    """The mode that was chosen with a key and is not in effect yet. `use` puts a mode into effect, `show` shows the
    choice.
    """

    def __init__(
        self,
        current: Callable[[], Approvals],
        use: Callable[[Approvals], Awaitable[None]],
        show: Callable[[Approvals, str], None],
    ) -> None:
        self._current = current
        self._use = use
        self._show = show
        self._chosen: Approvals | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._tasks = BackgroundTasks("changing the mode")

    def cycle(self, *, has_question: bool) -> None:
        """Goes to the next mode."""
        before = self._chosen or self._current()
        self._chosen = MODES[(MODES.index(before) + 1) % len(MODES)]
        remark = ""
        if has_question and self._chosen in _ALLOWING:
            remark = t(
                "Mode {mode}: if it allows this call, the call runs in {seconds:.0f} seconds."
                " Shift-Tab: next mode. Esc: stop.",
                mode=self._chosen,
                seconds=SETTLE_WITH_QUESTION_S,
            )
        elif has_question and before in _ALLOWING:
            remark = t("Mode {mode}: the call still waits for you.", mode=self._chosen)
        self._show(self._chosen, remark)
        self._cancel()
        wait_s = SETTLE_WITH_QUESTION_S if has_question else SETTLE_S
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(wait_s, lambda: self._tasks.start(self.settle()))

    async def settle(self) -> None:
        """Puts the chosen mode into effect now."""
        chosen = self._chosen
        self.forget()
        if chosen is not None and chosen != self._current():
            await self._use(chosen)

    def forget(self) -> None:
        """Drops a choice that is not in effect yet."""
        self._chosen = None
        self._cancel()

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
