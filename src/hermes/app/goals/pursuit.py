"""Works towards the goal of a session: decides after each turn whether it is reached, and what comes next.

A runner calls `advance` when nothing else waits in its session. Rules decide first (how the turn ended, the `verify`
command), then the judge. Every decision is a row, written together with the message that continues the work. So a
process that is killed in between loses nothing: the next process that runs the session finds the message waiting.
"""

import asyncio
import contextlib
import hashlib
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from hermes.app.app import App
from hermes.app.goals.awaited_event import (
    FILE_CHANGED,
    EventSearch,
    await_event,
    guest_folder,
    require_event,
)
from hermes.app.goals.contract import goal_lines
from hermes.app.goals.judge import (
    MAX_WAIT_S,
    JudgeAnswer,
    TurnEvidence,
    UnreadableVerdict,
    WaitFor,
    judge_request,
    read_verdict,
)
from hermes.app.goals.waking import waiting_role
from hermes.app.session_journal import SessionJournal
from hermes.core.budget import Cap, TurnBudget, parse_amount
from hermes.core.goal_progress import GoalProgress
from hermes.errors import HermesError, StoreError, UsageError, in_sentences
from hermes.primitives.tasks import running
from hermes.schema.event_base import Event
from hermes.schema.events import RuleCheck, TurnEnded
from hermes.schema.goals import (
    GOAL_VIA,
    GoalChecking,
    GoalJudged,
    GoalPaused,
    GoalSet,
    GoalWoken,
)
from hermes.schema.messages import AssistantMessage, UserMessage
from hermes.schema.model import ModelRequest
from hermes.text.translation import translator

t = translator(__name__)

JUDGE_TRIES = 3
"""How often the judge is asked if it can't be reached or its answer can't be read."""
_MIN_WAIT_S, _DEFAULT_WAIT_S = 1.0, 300.0
_LOOK_INTERVAL_S = 1.0
_MAX_EVIDENCE_ROWS = 2_000
_GO_ON = (
    "The goal is not reached yet. {why}\n\nGo on now: do the next useful thing, and check it. If you can't go on without "
    "the user, say plainly what you need."  # not translated
)
_BEGIN = (
    "Work towards this goal until it is reached. Hermes checks after each of your turns, with the verify command if there "
    "is one, and by what it recorded of your calls."  # not translated
)


class GoalServices(msgspec.Struct, frozen=True):
    """What the pursuit of goals needs from the process: a judge, the sandbox, and facts about turns and processes."""

    ask: Callable[[str, ModelRequest], Awaitable[AssistantMessage]]
    """Asks the judge's model, for a session. Raises HermesError."""
    verify: Callable[[str, Path, str], Awaitable[RuleCheck]]
    """Runs the command of a goal in the sandbox of a session."""
    diff: Callable[[str, Path], str]
    """What a turn changed in its folder."""
    processes: Callable[[str], Mapping[str, str]]
    """The background processes of a session that run here, with their commands."""
    children: Callable[[str], Mapping[str, str]]
    """The sessions that work for a session, with their tasks."""
    budget: Callable[[str, Cap], TurnBudget]
    """The caps of a turn, including that of its goal."""
    process_end: Callable[[str, str], Awaitable[None]]
    """Waits for the end of a background process of a session."""


class GoalPursuit:
    """Works towards the goals of all sessions of one process."""

    def __init__(self, app: App, services: GoalServices) -> None:
        self._app = app
        self._services = services

    async def advance(
        self, journal: SessionJournal, look: Callable[[], Awaitable[bool]]
    ) -> bool:
        """Decides what comes next when nothing waits in the session. Returns whether there is more to do.

        `look` returns whether a message has arrived: a person's message goes first, and is judged together with its
        results.
        """
        progress = journal.history.goal
        if progress.status == "waiting":
            return await self._wake(journal)
        if progress.status != "active":
            return False
        if not progress.is_due:  # the process ended between a verdict and its message
            why = progress.woken or _why(progress)
            await journal.record(_message(progress, why))
            return True
        before = (progress.since, progress.last)
        rows = await self._decide(journal)
        has_messages = await look()
        if not progress.is_due or (progress.since, progress.last) != before:
            return has_messages or progress.status == "active"  # a person changed it
        if has_messages:
            rows = [one for one in rows if not isinstance(one, UserMessage)]
        last = rows[-1] if rows else None
        if isinstance(last, GoalJudged) and last.verdict == "wait":
            role = waiting_role(journal.session)
            await asyncio.to_thread(self._app.store.roles.take, role)
        if rows:
            await journal.record(*rows)
        return bool(journal.history.waiting)

    def budget(self, session: str, progress: GoalProgress) -> TurnBudget | None:
        """Returns the caps of the next turn, if its goal has its own."""
        goal = progress.goal
        if goal is None or not progress.is_open or not goal.budget:
            return None
        unit, limit = parse_amount(goal.budget)
        return self._services.budget(
            session, Cap("goal", unit, limit, self._used(session, progress))
        )

    async def rest(self, session: str, progress: GoalProgress) -> None:
        """Waits until the awaited event has happened or its time is over; also for another one, if that is chosen."""
        judged = progress.last
        while judged is not None and judged.verdict == "wait":
            left = max(0.0, judged.until - self._app.clock.now())
            async with (
                running(self._come(session, judged)) as come,
                running(self._newer(session, judged)) as newer,
            ):
                await asyncio.wait(
                    {come, newer}, timeout=left, return_when=asyncio.FIRST_COMPLETED
                )
                if come.done():
                    judged = await come
                else:
                    judged = await newer if newer.done() else None

    async def _newer(self, session: str, judged: GoalJudged) -> GoalJudged:
        """Waits until another verdict is written, as by `hermes goal wait` in another process."""
        watch = self._app.store.watch(session)
        try:
            while True:
                watch.changed()  # from here on, it is told of what this look misses
                with contextlib.suppress(StoreError):  # looked at again in a moment
                    last = await asyncio.to_thread(self._other, session, judged)
                    if last is not None:
                        return last
                await watch.wait(_LOOK_INTERVAL_S)
        finally:
            watch.close()

    def _other(self, session: str, judged: GoalJudged) -> GoalJudged | None:
        """Returns the newest verdict on a session's goal; None if it is this one."""
        last = self._app.store.log.latest(session, GoalJudged.topic)
        if isinstance(last, GoalJudged) and _wait_key(last) != _wait_key(judged):
            return last
        return None

    async def _come(self, session: str, judged: GoalJudged) -> GoalJudged | None:
        """Waits until the awaited event has happened. Returns the verdict that holds instead, if there is one."""
        if judged.wait_for == "process":
            await self._services.process_end(session, judged.wait_name)
        elif judged.wait_for == "child":
            await self._child_end(judged.wait_name)
        elif judged.wait_for == "event":
            what = await EventSearch(self._app, session, judged).wait()
            return await asyncio.to_thread(self._note_woken, session, judged, what)
        else:
            await asyncio.Event().wait()  # only the time ends it
        return None

    def _note_woken(
        self, session: str, judged: GoalJudged, what: str
    ) -> GoalJudged | None:
        """Ends a wait, unless another one has taken its place, which is returned."""
        if (other := self._other(session, judged)) is not None:
            return other
        self._app.record(session, GoalWoken(reason=what))
        return None

    async def _child_end(self, child: str) -> None:
        """Waits until no process has the child. That is no row, so no watch tells of it."""
        while await asyncio.to_thread(self._works, child):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(_LOOK_INTERVAL_S)

    def _works(self, child: str) -> bool:
        try:
            return self._app.store.leases.holder(child) is not None
        except StoreError:
            return True

    async def _wake(self, journal: SessionJournal) -> bool:
        """Continues after a wait. Returns False if the wait is not over."""
        progress = journal.history.goal
        judged = progress.last
        if judged is None:
            return False
        why = await asyncio.to_thread(self._woken_by, journal.session, judged)
        if not why:
            return False
        await journal.record(GoalWoken(reason=why), _message(progress, why))
        return True

    def _woken_by(self, session: str, judged: GoalJudged) -> str:
        name = judged.wait_name
        if judged.wait_for == "process" and name not in self._services.processes(
            session
        ):
            return t.logged("The process {name} has ended.", name=name)
        if judged.wait_for == "child" and not self._works(name):
            return t.logged("The child {name} has ended.", name=name[-6:])
        if judged.wait_for == "event":
            what = EventSearch(self._app, session, judged).look()
            if what:
                return what
        if self._app.clock.now() >= judged.until:
            return t.logged("The time to wait is over.")
        return ""

    async def _decide(self, journal: SessionJournal) -> list[Event]:
        """Returns the rows with the decision on what comes next."""
        progress = journal.history.goal
        goal = progress.goal
        folder = self._app.store.sessions.origin(journal.session).working_directory
        if paused := _stopped(progress):
            return [GoalPaused(reason=paused, by="hermes")]
        if (failed := _failed(progress)) is not None:
            return self._follow(journal.session, progress, failed, is_first=False)
        is_first = progress.is_fresh
        if goal is None or (is_first and not goal.verify and not progress.had_turns):
            return [
                _message(progress)
            ]  # nothing is done yet, so there is nothing to judge
        try:
            check = await self._check(journal, goal, folder)
            if is_first and check is not None and check.outcome != "passed":
                return [_message(progress)]
            answer, judge = await self._ask(journal, check, folder, is_first=is_first)
        except HermesError as error:
            return [GoalPaused(reason=_no_judge(error), by="hermes")]
        finally:
            journal.show(GoalChecking())
        judged = self._judged(
            journal.session, progress, answer, check, judge, is_first=is_first
        )
        return self._follow(journal.session, progress, judged, is_first=is_first)

    async def _check(
        self, journal: SessionJournal, goal: GoalSet, folder: Path
    ) -> RuleCheck | None:
        if not goal.verify:
            return None
        journal.show(GoalChecking(step="verify"))
        return await self._services.verify(journal.session, folder, goal.verify)

    async def _ask(
        self,
        journal: SessionJournal,
        check: RuleCheck | None,
        folder: Path,
        *,
        is_first: bool,
    ) -> tuple[JudgeAnswer, str]:
        """Asks the judge, a limited number of times. Raises the last error."""
        journal.show(GoalChecking(step="judge"))
        progress = journal.history.goal
        evidence = await asyncio.to_thread(
            self._evidence, journal.session, progress, check, folder
        )
        request = judge_request(progress, evidence)
        failure: HermesError = UnreadableVerdict("the judge gave no verdict")
        for _ in range(JUDGE_TRIES):
            try:
                message = await self._services.ask(journal.session, request)
                answer = read_verdict(message.text)
            except StoreError:
                raise
            except HermesError as error:
                failure = error
                continue
            if (
                check is not None
                and check.outcome != "passed"
                and answer.verdict == "done"
            ):
                why = t.logged(
                    "The verify command does not succeed ({detail}).",
                    detail=check.detail,
                )
                answer = JudgeAnswer("continue", why)
            if is_first and answer.verdict != "done":
                answer = JudgeAnswer("continue", answer.reason)
            guest = await asyncio.to_thread(guest_folder, self._app, journal.session)
            answer = _known_wait(answer, evidence.running, folder, guest)
            return answer, f"{message.provider}:{message.model}"
        raise failure

    def _evidence(
        self,
        session: str,
        progress: GoalProgress,
        check: RuleCheck | None,
        folder: Path,
    ) -> TurnEvidence:
        rows = self._app.store.log.events(
            session, after=max(0, progress.turn_seq - 1), limit=_MAX_EVIDENCE_ROWS
        )
        now = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(self._app.clock.now()))
        diff = self._services.diff(progress.turn, folder) if progress.turn else ""
        return TurnEvidence(
            rows=[row.event for row in rows if row.event is not None],
            diff=diff,
            check=check,
            running={
                **self._services.processes(session),
                **self._services.children(session),
            },
            time=now,
        )

    def _judged(
        self,
        session: str,
        progress: GoalProgress,
        answer: JudgeAnswer,
        check: RuleCheck | None,
        judge: str,
        *,
        is_first: bool,
    ) -> GoalJudged:
        judged = GoalJudged(
            verdict=answer.verdict,
            reason=answer.reason,
            turns=progress.turns + (0 if is_first else 1),
            check=check,
            judge=judge,
            reply=_digest(progress.reply),
            failure=_failure(progress.ended, check),
        )
        if answer.verdict != "wait":
            return judged
        wait = answer.wait or WaitFor()
        if wait.event:
            return self._awaiting(session, progress, judged, wait)
        kind, seconds = _kind_and_time(wait)
        return msgspec.structs.replace(
            judged,
            wait_for=kind,
            wait_name=wait.process or wait.child,
            until=self._app.clock.now() + seconds,
        )

    def _awaiting(
        self, session: str, progress: GoalProgress, judged: GoalJudged, wait: WaitFor
    ) -> GoalJudged:
        """Returns the verdict to wait for an event: one that happens, or that happened during the last turn."""
        now = self._app.clock.now()
        awaited = await_event(self._app, judged, wait.event, wait.where)
        begun = self._app.store.log.events(
            session, after=max(0, progress.turn_seq - 1), limit=1
        )
        if begun and wait.event != FILE_CHANGED:
            awaited = msgspec.structs.replace(
                awaited, wait_row=begun[0].id, wait_since=begun[0].ts
            )
        seconds = max(_MIN_WAIT_S, wait.seconds or MAX_WAIT_S)
        return msgspec.structs.replace(awaited, until=now + min(MAX_WAIT_S, seconds))

    def _follow(
        self,
        session: str,
        progress: GoalProgress,
        judged: GoalJudged,
        *,
        is_first: bool,
    ) -> list[Event]:
        """Returns the verdict and its consequence: the next message, a pause, or nothing."""
        if judged.verdict not in ("continue", "wait"):
            return [judged]
        if not is_first and (limit := self._limit(session, progress, judged)):
            return [judged, GoalPaused(reason=limit, by="hermes")]
        if judged.verdict == "wait":
            return [judged]
        if is_first:
            return [judged, _message(progress)]
        return [judged, _message(progress, _why(progress, judged))]

    def _limit(self, session: str, progress: GoalProgress, judged: GoalJudged) -> str:
        """Returns why an unreached goal pauses now; empty if it continues."""
        goal, last = progress.goal, progress.last
        if goal is None:
            return ""
        if judged.turns >= goal.max_turns:
            return t.logged(
                "It took {count} turn, which is its limit.",
                "It took {count} turns, which is its limit.",
                count=judged.turns,
            )
        if last is not None and judged.reply and judged.reply == last.reply:
            return t.logged("The last two answers were the same.")
        is_stuck = judged.verdict == "continue"  # the awaited event may fix it
        if last and is_stuck and judged.failure and judged.failure == last.failure:
            return t.logged("The same thing failed twice.")
        if goal.budget:
            _, limit = parse_amount(goal.budget)
            if self._used(session, progress) >= limit:
                return t.logged("It used up its budget ({budget}).", budget=goal.budget)
        return ""

    def _used(self, session: str, progress: GoalProgress) -> float:
        """Returns the usage of the session and its children since the goal was set, in the unit of its budget."""
        goal = progress.goal
        if goal is None or not goal.budget:
            return 0.0
        unit, _ = parse_amount(goal.budget)
        usd, tokens = used_so_far(self._app, session)
        return (
            usd - goal.spent_usd if unit == "usd" else float(tokens - goal.spent_tokens)
        )


def used_so_far(app: App, session: str) -> tuple[float, int]:
    """Returns the cost and the tokens of a session and its children."""
    rows = app.store.sessions.usage(session=session)
    tokens = sum(row.input_tokens + row.output_tokens for row in rows)
    return sum(row.cost_usd for row in rows), tokens


def _wait_key(judged: GoalJudged) -> tuple[str, int, float, float]:
    """Returns what tells one wait from another."""
    return judged.wait_name, judged.wait_row, judged.wait_since, judged.until


def _failed(progress: GoalProgress) -> GoalJudged | None:
    """Returns the verdict on a turn that failed or was cut off: retry once. No judge is needed."""
    ended = progress.ended
    if ended is None or progress.is_fresh:
        return None
    if ended.reason not in ("failed", "crashed"):
        return None
    what = (
        t.logged("The last turn failed.")
        if ended.reason == "failed"
        else t.logged("Hermes stopped in that turn.")
    )
    return GoalJudged(
        verdict="continue",
        reason=f"{what} {ended.detail}".rstrip(),
        turns=progress.turns + 1,
        failure=_failure(ended, None),
    )


def _stopped(progress: GoalProgress) -> str:
    """Returns why the end of a turn pauses the goal; empty if it does not."""
    ended, last = progress.ended, progress.last
    if ended is None or progress.is_fresh:
        return ""
    if ended.reason == "interrupted" and progress.was_stopped:
        return t.logged("You stopped the turn.")
    if ended.reason == "refused":
        return f"{t.logged('The model refused.')} {ended.detail}".rstrip()
    if ended.reason == "budget" and ended.limit == "spending":
        return ended.detail[:1].upper() + ended.detail[1:]
    if ended.reason in ("failed", "crashed"):
        failure = _failure(ended, None)
        if last is not None and last.failure == failure:
            twice = t.logged("Two turns in a row failed the same way.")
            return f"{twice} {ended.detail}".rstrip()
    return ""


def _known_event(
    answer: JudgeAnswer, wait: WaitFor, folder: Path, guest: Path | None
) -> JudgeAnswer:
    """Returns the answer with the whole path of an awaited file; `continue` if there is no such event."""
    where = dict(wait.where)
    if "path" in where:
        where["path"] = str(folder / where["path"])
    try:
        require_event(wait.event, where, guest)
    except UsageError as error:
        return JudgeAnswer("continue", in_sentences(error))
    return JudgeAnswer("wait", answer.reason, msgspec.structs.replace(wait, where=where))  # fmt: skip


def _known_wait(
    answer: JudgeAnswer,
    running: Mapping[str, str],
    folder: Path,
    guest: Path | None,
) -> JudgeAnswer:
    """Returns the answer with the full name of what it waits for; `continue` if that no longer runs."""
    wait = answer.wait
    if answer.verdict == "wait" and wait is not None and wait.event:
        return _known_event(answer, wait, folder, guest)
    name = (wait.process or wait.child) if wait is not None else ""
    if answer.verdict != "wait" or not name:
        return answer
    whole = next((one for one in running if one.endswith(name)), "")
    if not whole:
        return JudgeAnswer(
            "continue", t.logged("{name} is no longer running.", name=name)
        )
    named = WaitFor(process=whole) if wait and wait.process else WaitFor(child=whole)
    return JudgeAnswer("wait", answer.reason, named)


def _failure(ended: TurnEnded | None, check: RuleCheck | None) -> str:
    """Returns a hash of the failure, without numbers, because times and addresses change from run to run."""
    if ended is not None and ended.reason in ("failed", "crashed"):
        return _digest(f"{ended.reason} {re.sub(r'[0-9]+', '#', ended.detail)}")
    if check is not None and check.outcome == "failed" and check.output:
        return _digest(re.sub(r"0x[0-9a-f]+|[0-9]+", "#", check.output))
    return ""


def _kind_and_time(wait: WaitFor) -> tuple[Literal["process", "child", "time"], float]:
    """What to wait for, and for how many seconds at most."""
    if wait.process:
        return "process", MAX_WAIT_S
    if wait.child:
        return "child", MAX_WAIT_S
    if not wait.seconds:
        return "time", _DEFAULT_WAIT_S
    return "time", min(MAX_WAIT_S, max(_MIN_WAIT_S, wait.seconds))


def _digest(text: str) -> str:
    plain = " ".join(text.split()).lower()
    if plain:
        return hashlib.sha256(plain.encode()).hexdigest()[:16]
    return ""


def _why(progress: GoalProgress, judged: GoalJudged | None = None) -> str:
    judged = judged or progress.last
    if judged is None:
        return ""
    parts = [judged.reason]
    check = judged.check
    if check is not None and check.outcome == "failed":
        parts.append(f"`{check.command}` failed ({check.detail}):\n{check.output}")
    elif check is not None and check.outcome == "not_run":
        parts.append(
            f"`{check.command}` could not be run: {check.detail}"
        )  # not translated
    return "\n".join(filter(None, parts))


def _message(progress: GoalProgress, why: str = "") -> UserMessage:
    """Returns the message that continues a goal. It contains the whole goal, so that no compaction loses it."""
    goal = progress.goal
    lines = goal_lines(goal, progress.subgoals) if goal is not None else []
    rest = _GO_ON.format(why=why).strip() if why else _BEGIN
    return UserMessage(text="\n".join([*lines, "", rest]), via=GOAL_VIA)


def _no_judge(error: HermesError) -> str:
    if isinstance(error, UnreadableVerdict):
        return t.logged(
            "The judge gave no readable verdict in {tries} tries.", tries=JUDGE_TRIES
        )
    return t.logged(
        "The judge could not be reached in {tries} tries: {reason}",
        tries=JUDGE_TRIES,
        reason=in_sentences(error),
    )
