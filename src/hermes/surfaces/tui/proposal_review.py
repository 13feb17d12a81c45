"""Reviews proposed changes one at a time: shows the diff and asks for a key."""

import asyncio
import time
from collections.abc import Callable, Sequence

from hermes.app.learning.learner import Learner
from hermes.errors import HermesError, for_reader
from hermes.learning.proposals import Proposal
from hermes.surfaces.terminal.approval import KEY_GRACE_S
from hermes.surfaces.terminal.styled_text import (
    BOLD,
    DIM,
    GREEN,
    RED,
    YELLOW,
    Row,
    painted,
)
from hermes.surfaces.terminal.text import ago, clean, cut, one_line, wrap
from hermes.surfaces.tui.plain_screen import ChatScreen
from hermes.text.translation import shown_reason, translator

t = translator(__name__)


_MAX_PROPOSAL_DIFF_LINES = 30
_LOOKS = {"+": GREEN, "-": RED}
_KEYS = {"y": "keep", "n": "never", "s": "later", "v": "show all", "q": "stop"}
_WORDS = {
    "yes": "y",
    "keep": "y",
    "no": "n",
    "never": "n",
    "skip": "s",
    "later": "s",
    "view": "v",
    "quit": "q",
}


class ProposalReview:
    """One pass over the pending proposals. A line that is no decision ends it; the rest stay pending."""

    def __init__(
        self,
        learner: Learner,
        screen: ChatScreen,
        proposals: Sequence[Proposal],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._learner = learner
        self._screen = screen
        self._proposals = proposals
        self._clock = clock
        self._at = -1
        self._shown_at = 0.0
        self._kept = self._rejected = 0

    @property
    def is_over(self) -> bool:
        """Whether the review has ended."""
        return self._at >= len(self._proposals)

    def begin(self) -> None:
        """Shows the first proposal."""
        self._next()

    def ask(self) -> None:
        """Asks for a key, unless a key pressed now may be meant for the previous proposal."""
        if not self.is_over and self._clock() >= self._shown_at + KEY_GRACE_S:
            is_cut = len(self._diff()) > _MAX_PROPOSAL_DIFF_LINES
            keys = "".join(key for key in _KEYS if key != "v" or is_cut)
            full = t(
                "Keep it? {keys}",
                keys=", ".join(f"{key} ({_KEYS[key]})" for key in keys),
            )
            label = (
                full
                if len(full) <= self._screen.columns - 4
                else t("Keep it? {keys}", keys="/".join(keys))
            )
            self._screen.ask(label, keys=keys)

    async def take(self, line: str, typed_at: float | None) -> bool:
        """Applies a line to the proposal shown. Returns False, and ends the review, if it is no
        decision.
        """
        word = line.strip().lower()
        key = _WORDS.get(word, word)
        if (
            typed_at is not None
            and typed_at < self._shown_at + KEY_GRACE_S
            and (key in _KEYS or not key)
        ):
            return True  # meant for the previous proposal
        if key not in _KEYS:
            self._finish()
            return False
        if key == "v":
            self._show(whole=True)
        elif key == "q":
            self._finish()
        else:
            await self._decide(key)
            self._next()
        return True

    async def _decide(self, key: str) -> None:
        proposal = self._proposals[self._at]
        if key == "s":
            self._say(t("Left for later."), DIM)
            return
        try:
            decided = await asyncio.to_thread(
                self._learner.decide, proposal.id, keep=key == "y"
            )
        except HermesError as error:
            self._say(for_reader(error), RED)
            return
        self._kept, self._rejected = (
            self._kept + (key == "y"),
            self._rejected + (key == "n"),
        )
        kept = f"Kept{f' as change {decided.hash[:10]}' if decided.hash else ''}."
        self._say(
            kept if key == "y" else t("Rejected. Hermes will not propose it again."),
            GREEN if key == "y" else DIM,
        )

    def _next(self) -> None:
        self._at += 1
        if self.is_over:
            self._finish()
            return
        self._show()
        self._shown_at = self._clock()
        self._screen.ask("")

    def _finish(self) -> None:
        self._at = len(self._proposals)
        self._screen.ask("")
        left = len(self._proposals) - self._kept - self._rejected
        parts = [
            f"{self._kept} kept" if self._kept else "",
            f"{self._rejected} rejected" if self._rejected else "",
            f"{left} to review: /learn" if left else "",
        ]
        self._say(", ".join(part for part in parts if part) + ".", DIM)

    def _show(self, *, whole: bool = False) -> None:
        proposal, screen = self._proposals[self._at], self._screen
        room = screen.columns - 1
        number = f"{self._at + 1}/{len(self._proposals)}"
        bullet = screen.marks.separator
        facts = bullet.join(
            (
                proposal.id,
                f"by {one_line(str(proposal.origin))}",
                ago(proposal.created, self._now()),
            )
        )
        screen.line()
        self._row(
            (
                (f"{number} ", DIM),
                (cut(one_line(proposal.change.title), room - len(number) - 1), BOLD),
            )
        )
        self._row(((cut(f"  {facts}", room), DIM),))
        for line in (
            wrap(one_line(shown_reason(proposal.why)), room - 2) if proposal.why else ()
        ):
            self._row(((f"  {line}", YELLOW),))
        rows = self._diff()
        shown = (
            rows
            if whole or len(rows) <= _MAX_PROPOSAL_DIFF_LINES
            else rows[: _MAX_PROPOSAL_DIFF_LINES - 1]
        )
        for row in shown:
            self._row(row)
        if len(shown) < len(rows):
            more = t(
                "{count:,} more line; v shows all",
                "{count:,} more lines; v shows all",
                count=len(rows) - len(shown),
            )
            more = f"{screen.marks.runs} {more}"
            self._row(((f"  {more}", DIM),))

    def _diff(self) -> list[Row]:
        """Returns the diff in rows that fit: file names, removed and added lines, and marks for
        omitted lines.
        """
        marks = self._screen.marks
        rows: list[Row] = []
        begins = False
        for line in clean(self._proposals[self._at].diff).split("\n"):
            text, look = line, _LOOKS.get(line[:1], "")
            if line.startswith(("--- ", "@@ ")):
                text, look = ("" if line[0] == "-" or begins else marks.runs), DIM
            elif line.startswith("+++ b/"):
                text, look = line[6:], BOLD
            begins = line.startswith("+++ b/")
            parts = wrap(text, max(self._screen.columns - 6, 20)) if text else ()
            rows += [((f"  {marks.bar} ", DIM), (part, look)) for part in parts]
        return rows

    def _now(self) -> float:
        return self._learner.learning.now()

    def _say(self, text: str, look: str) -> None:
        for line in wrap(clean(text), self._screen.columns - 3):
            self._row(((f"  {line}", look),))

    def _row(self, row: Row) -> None:
        self._screen.line(painted(row, self._screen.style))
