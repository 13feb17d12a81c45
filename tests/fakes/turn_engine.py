"""An engine for session services in tests. Implements `TurnEngine`."""

from collections.abc import Callable
from pathlib import Path

from hermes.app import App
from hermes.app.approvals import PendingQuestions
from hermes.app.session_runner import RunnerDeps
from hermes.core.budget import TurnBudget
from hermes.core.history import ConversationHistory
from hermes.core.ports import Approver
from hermes.core.turn import Runtime
from hermes.schema.events import SessionPrompted
from hermes.store.log_row import Row


class FakeEngine:
    """Runs turns with the given runtime and prompt, without caps."""

    attended = True

    def __init__(
        self,
        runtime: Callable[[str, Approver], Runtime],
        prompt: Callable[[], SessionPrompted],
        budget: Callable[[str], TurnBudget] = lambda _: TurnBudget(),
    ) -> None:
        self._runtime = runtime
        self._prompt = prompt
        self._budget = budget

    def adapted(self, session: str, prompt: SessionPrompted) -> SessionPrompted:
        return prompt

    async def prompt(self, session: str, cwd: Path, agent: str = "") -> SessionPrompted:
        return self._prompt()

    def runtime(self, session: str, approvals: Approver, agent: str = "") -> Runtime:
        return self._runtime(session, approvals)

    def budget(self, session: str) -> TurnBudget:
        return self._budget(session)

    def written(self, row: Row) -> None:
        """Nothing was claimed."""

    def title(self, session: str, history: ConversationHistory) -> None:
        """Nobody looks for a better title."""

    def deps(self, app: App, questions: PendingQuestions) -> RunnerDeps:
        """What the runners of a service need, without undo."""

        async def keep_files(turn: str, cwd: Path) -> None:
            """Nothing is kept."""

        return RunnerDeps(
            app=app,
            questions=questions,
            engine=lambda session: self,
            keep_files=keep_files,
        )
