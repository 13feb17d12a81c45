"""Goals: what a session works towards over many turns."""

import asyncio
import shlex
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec

from hermes.app.goals.awaited_event import (
    await_event,
    event_name,
    guest_folder,
    require_event,
)
from hermes.app.goals.contract import draft_request, drafted, parse_goal
from hermes.app.goals.judge import MAX_WAIT_S
from hermes.app.goals.pursuit import used_so_far
from hermes.app.goals.waking import waiting_role, who_wakes
from hermes.app.session_journal import read_history
from hermes.commands.command import Arg, SessionId, command
from hermes.commands.context import CommandContext
from hermes.commands.views import Block, Record, TextResult, line, message
from hermes.core.goal_progress import GoalProgress, GoalStatus
from hermes.errors import NotFound, Refused, UsageError
from hermes.primitives.untyped import number_in_text
from hermes.schedules.parse import seconds
from hermes.schedules.time_zones import ScheduleError
from hermes.schema.event_base import Event
from hermes.schema.events import RuleCheck
from hermes.schema.goals import (
    GoalCleared,
    GoalJudged,
    GoalPaused,
    GoalResumed,
    GoalSet,
    SubgoalsChanged,
)
from hermes.text.formats import moment, money
from hermes.text.translation import shown_reason, to_translate, translator

if TYPE_CHECKING:
    from hermes.app.agent import Agent

t = translator(__name__)


EXAMPLES = to_translate("""\
examples:
  hermes goal run "all tests pass  verify: make test"   work until it is reached
  hermes goal                                           the goal of the newest session, and its progress
  hermes goal pause                                     stop after the running turn
  hermes --resume last                                  go on with it, in the chat
""")
_MAX_WAIT_S = 30 * 86_400.0
_MAX_SUBGOALS = 50
_MAX_SEARCHED_SESSIONS, _MAX_NAMED_SESSIONS = 200, 5
_MAX_SUBGOAL_CHARS = 1_000
_STATES: dict[GoalStatus, str] = {
    "none": to_translate("none"),
    "active": to_translate("working on it"),
    "waiting": to_translate("waiting"),
    "paused": to_translate("paused"),
    "done": to_translate("reached"),
}
_NO_GOAL = to_translate("This session has no goal.")
_HOW = to_translate(
    "Set one: /goal all tests pass  verify: make test (in a shell: hermes goal run)"
)
GoalText = Annotated[
    str,
    Arg(
        "the goal; also draft TEXT, show, pause, resume, wait EVENT, clear",
        metavar="TEXT",
    ),
]
AwaitedText = Annotated[
    str,
    Arg(
        "the event and fields that it must have: kanban.card.moved card=t_1a2b3c4d5e after=done",
        metavar="EVENT",
    ),
]
WaitLimit = Annotated[
    str, Arg("go on after this time at the latest: 2h (default: a day)", metavar="TIME")
]
SubgoalText = Annotated[
    str, Arg("a subgoal; also list, remove N, clear", metavar="TEXT")
]


class GoalReport(msgspec.Struct, frozen=True, kw_only=True):
    """A session's goal and its progress."""

    session: str
    status: GoalStatus
    why: str = ""
    goal: GoalSet | None = None
    subgoals: tuple[str, ...] = ()
    turns: int = 0
    used_usd: float = 0.0
    used_tokens: int = 0
    check: RuleCheck | None = None
    wait_for: str = ""
    until: float = 0.0
    """When a wait ends at the latest."""
    wakes: str = ""
    """Who starts the session again when it waits."""
    in_chat: bool = False

    def view(self, _now: float) -> Iterable[Block]:
        goal = self.goal
        if goal is None:
            yield line(f"{t.marked(_NO_GOAL)} {t.marked(_HOW)}", fit="wrap")
            return
        state = t.marked(_STATES[self.status]) + (
            f": {shown_reason(self.why)}" if self.why else ""
        )
        tokens = t("{count:,} token", "{count:,} tokens", count=self.used_tokens)
        spent = f"{tokens} {money(self.used_usd)}".rstrip()
        check = self.check
        subgoals = (
            (t("subgoal {number}", number=number), one)
            for number, one in enumerate(self.subgoals, 1)
        )
        yield Record(
            (
                (t("goal"), goal.text),
                (t("state"), state),
                (
                    t("waits for"),
                    self.wait_for if self.status == "waiting" else "",
                ),
                (
                    t("until"),
                    t("{moment} at the latest", moment=moment(self.until))
                    if self.status == "waiting"
                    else "",
                ),
                (
                    t("turns"),
                    t(
                        "{turns} of {max_turns}",
                        turns=self.turns,
                        max_turns=goal.max_turns,
                    ),
                ),
                (
                    t("used"),
                    t("{spent} of {budget}", spent=spent, budget=goal.budget)
                    if goal.budget
                    else spent,
                ),
                (t("verify"), goal.verify),
                (
                    t("last check"),
                    f"{check.outcome} ({shown_reason(check.detail)})" if check else "",
                ),
                (t("constraints"), goal.constraints),
                (t("stop when"), goal.stop_when),
                *subgoals,
            )
        )
        if self.status == "waiting":
            yield line(self.wakes, "dim", fit="wrap")
        if self.status == "paused":
            session = "" if self.in_chat else self.session
            yield line(
                t(
                    "Continue: {resume}. Drop it: {clear}.",
                    resume=_words("resume", session),
                    clear=_words("clear", session),
                ),
                "dim",
            )


@command("goal set", slash="goal text", role="user", scope="chat", group="Chat")
async def set_goal(
    context: CommandContext, session: SessionId, text: GoalText = ""
) -> GoalReport | TextResult:
    """Set a goal that Hermes works towards until it is reached; alone: show it.

    Lines that begin with verify:, constraints:, stop when:, turns: or budget: are conditions. Hermes runs the verify
    command itself, in the sandbox, after each turn. `draft TEXT` lets a model write the conditions; `show`, `pause`,
    `resume` and `clear` do what they say; `wait EVENT [FIELD=VALUE ...] [for TIME]` goes on when that event happens.
    """
    word, _, rest = text.strip().partition(" ")
    word, rest = word.lower(), rest.strip()
    if not rest and word in _ACTIONS:
        return await _ACTIONS[word](context, session)
    if word == "draft":
        return await _draft(context, session, rest)
    if word == "wait" and "." in rest.partition(" ")[0]:
        words = _split(rest)
        has_limit = "for" in words[1:]
        place = len(words) - 1 - words[::-1].index("for") if has_limit else len(words)
        limit = " ".join(words[place + 1 :])
        return await _wait(context, session, words[:place], limit)
    return await _begin(context, session, text)


@command("goal show", scope="observe", group="Chat")
async def show_goal(context: CommandContext, session: SessionId = "last") -> GoalReport:
    """Show a session's goal and its progress."""
    return await _show(context, session)


@command("goal pause", scope="chat", group="Chat")
async def pause_goal(context: CommandContext, session: SessionId = "") -> TextResult:
    """Pause a goal; the running turn ends first."""
    meant = await asyncio.to_thread(_meant, context, session, "active", "waiting")
    return await _pause(context, meant)


@command("goal resume", scope="chat", group="Chat")
async def resume_goal(context: CommandContext, session: SessionId = "") -> TextResult:
    """Resume a paused goal; its turns are counted from zero again."""
    meant = await asyncio.to_thread(_meant, context, session, "paused")
    return await _resume(context, meant)


@command("goal wait", scope="chat", group="Chat")
async def wait_with_goal(
    context: CommandContext,
    session: SessionId,
    event: AwaitedText,
    *,
    limit: WaitLimit = "",
) -> TextResult:
    """Let a goal wait until an event happens; no turn is used meanwhile.

    Events are listed in the documentation; * stands for one part of a name, ** for any. `file.changed path=FILE` waits
    for a file.
    """
    return await _wait(context, session, _split(event), limit)


@command("goal clear", scope="chat", group="Chat")
async def clear_goal(context: CommandContext, session: SessionId = "") -> TextResult:
    """Drop a session's goal."""
    meant = await asyncio.to_thread(
        _meant, context, session, "active", "waiting", "paused"
    )
    return await _clear(context, meant)


@command("goal subgoal", slash="subgoal text", role="user", scope="chat", group="Chat")
async def change_subgoals(
    context: CommandContext, session: SessionId, text: SubgoalText = ""
) -> TextResult:
    """Add a subgoal; alone: list them. `remove N` and `clear` remove them."""
    session, progress = await asyncio.to_thread(_find, context, session)
    if progress.goal is None:
        raise NotFound(t.marked(_NO_GOAL), hint=t.marked(_HOW))
    known = progress.subgoals
    word, _, rest = text.strip().partition(" ")
    match word.lower(), rest.strip():
        case (("" | "list"), ""):
            return _listed(context, session, known)
        case "clear", "":
            changed: tuple[str, ...] = ()
        case "remove", number if number.isdecimal():
            place = number_in_text(number) or 0
            if not 1 <= place <= len(known):
                raise NotFound(
                    t("There is no subgoal {number}.", number=number),
                    hint=f"hermes goal subgoal {session} list"
                    if context.conversation is None
                    else "/subgoal list",
                )
            changed = (*known[: place - 1], *known[place:])
        case _:
            if len(known) >= _MAX_SUBGOALS or len(text) > _MAX_SUBGOAL_CHARS:
                raise UsageError(
                    t(
                        "At most {max_subgoals} subgoals of {max_subgoal_chars:,} characters.",
                        max_subgoals=_MAX_SUBGOALS,
                        max_subgoal_chars=_MAX_SUBGOAL_CHARS,
                    )
                )
            changed = (*known, text.strip())
    await _write(context, session, SubgoalsChanged(subgoals=changed))
    return _listed(context, session, changed, idle=not progress.is_open)


def _listed(
    context: CommandContext,
    session: str,
    subgoals: tuple[str, ...],
    *,
    idle: bool = False,
) -> TextResult:
    lines = [f"{number}. {one}" for number, one in enumerate(subgoals, 1)]
    if lines and idle:
        resume = _in_words(context, "resume", session)
        lines.append(
            t("The goal is not being worked on now. Continue: {resume}", resume=resume)
        )
    add = f"hermes goal subgoal {session}"
    if context.conversation is not None:
        add = "/subgoal"
    return message(
        *(lines or [t("There are no subgoals. Add one: {add} TEXT", add=add)])
    )


def _in_words(context: CommandContext, action: str, session: str) -> str:
    """What a person types next: in the chat, or in a shell."""
    return _words(action, "" if context.conversation is not None else session)


def _words(action: str, session: str) -> str:
    return f"hermes goal {action} {session}" if session else f"/goal {action}"


def _meant(context: CommandContext, name: str, *states: GoalStatus) -> str:
    """The session whose goal is to be changed: without a name, the only one with a goal in one of these states."""
    if name:
        return name
    recent = context.app.store.sessions.recent(limit=_MAX_SEARCHED_SESSIONS)
    found = [
        one.id
        for one in recent
        if context.app.store.log.latest(one.id, GoalSet.topic) is not None
        and _find(context, one.id)[1].status in states
    ]
    if len(found) > 1:
        named = ", ".join(found[:_MAX_NAMED_SESSIONS])
        raise UsageError(
            t(
                "{count:,} session has such a goal: {named}.",
                "{count:,} sessions have such a goal: {named}.",
                count=len(found),
                named=named,
            ),
            hint=t("Name the one you mean."),
        )
    return found[0] if found else "last"


def _find(context: CommandContext, name: str) -> tuple[str, GoalProgress]:
    """The session that is meant, and its goal."""
    store = context.app.store
    session = store.sessions.find(name).id
    return session, read_history(store, session).goal


async def _show(context: CommandContext, name: str) -> GoalReport:
    return await asyncio.to_thread(_report, context, name)


def _report(context: CommandContext, name: str) -> GoalReport:
    session, progress = _find(context, name)
    goal = progress.goal
    usd, tokens = used_so_far(context.app, session)
    return GoalReport(
        session=session,
        status=progress.status,
        why=progress.why,
        goal=goal,
        subgoals=progress.subgoals,
        turns=progress.turns,
        used_usd=usd - goal.spent_usd if goal else 0.0,
        used_tokens=tokens - goal.spent_tokens if goal else 0,
        check=progress.last.check if progress.last else None,
        wait_for=event_name(progress.last) if progress.last else "",
        until=progress.last.until if progress.last else 0.0,
        wakes=who_wakes(context.app, session) if progress.status == "waiting" else "",
        in_chat=context.conversation is not None,
    )


async def _write(context: CommandContext, session: str, *events: Event) -> None:
    """Writes a person's decision, and acts on it if this process runs sessions."""
    service = context.service
    if service is None:
        await asyncio.to_thread(context.app.record, session, *events)
        return
    await service.note_goal(session, *events)
    if context.conversation is not None and context.session == session:
        await context.conversation.resume()


async def _begin(context: CommandContext, name: str, text: str) -> TextResult:
    session, before = await asyncio.to_thread(_find, context, name)
    goal = parse_goal(text, context.settings.goals, by=context.surface.name)
    await _write(context, session, await _with_usage(context, session, goal))
    notes = [t("It replaces the previous goal.")] if before.is_open else []
    if context.service is None:
        notes.append(t("Work on it: hermes --resume {session}", session=session))
    limits = [t("{count:,} turn", "{count:,} turns", count=goal.max_turns), goal.budget]
    most = t(" and ").join(filter(None, limits))
    return message(
        t("Working towards the goal, for at most {most}.", most=most), *notes
    )


async def _draft(context: CommandContext, name: str, text: str) -> TextResult:
    """Lets a model write the conditions. They apply once the person has read them and resumes."""
    if not text:
        how = f"hermes goal set {name} 'draft TEXT'"
        if context.conversation is not None:
            how = "/goal draft TEXT"
        raise UsageError(t("The goal is empty."), hint=how)
    session, _ = await asyncio.to_thread(_find, context, name)
    context.surface.tell(line(t("Writing the conditions ..."), "dim"))
    async with _agent(context) as agent:
        auxiliary = agent.engine(session).auxiliary
        reply = await auxiliary.ask("judge", session, draft_request(text))
    settings, by = context.settings.goals, context.surface.name
    goal = drafted(reply.text, text, settings, by=by)
    await _write(context, session, await _with_usage(context, session, goal))
    named = (
        (t("Goal"), goal.text),
        (t("Verify"), goal.verify),
        (t("Constraints"), goal.constraints),
        (t("Stop when"), goal.stop_when),
    )
    lines = [f"{name}: {one}" for name, one in named if one]
    change = "/goal TEXT"
    if context.conversation is None:
        change = f"hermes goal set {session} TEXT"
    resume = _in_words(context, "resume", session)
    start = t("Start it: {resume}. Change it: {change}", resume=resume, change=change)
    return message(*lines, start)


@asynccontextmanager
async def _agent(context: CommandContext) -> "AsyncIterator[Agent]":
    """The agent of the chat, or one of its own."""
    if context.conversation is not None:
        yield context.conversation.agent
        return
    from hermes.app.agent import Agent

    agent = Agent(context.app, context.secrets)
    try:
        yield agent
    finally:
        await agent.release()


async def _with_usage(context: CommandContext, session: str, goal: GoalSet) -> GoalSet:
    """The goal with what the session had used before, so that its budget counts from here."""
    usd, tokens = await asyncio.to_thread(used_so_far, context.app, session)
    return msgspec.structs.replace(goal, spent_usd=usd, spent_tokens=tokens)


async def _pause(context: CommandContext, name: str) -> TextResult:
    session, progress = await asyncio.to_thread(_find, context, name)
    if progress.goal is None:
        raise NotFound(t.marked(_NO_GOAL), hint=t.marked(_HOW))
    if not progress.is_open:
        state = t("reached") if progress.status == "done" else t("paused")
        return message(
            t(
                "The goal is {state} already. Continue: {resume}",
                state=state,
                resume=_in_words(context, "resume", session),
            )
        )
    reason = "You paused it."  # not translated: for the log
    paused = GoalPaused(reason=reason, by=context.surface.name)
    await _write(context, session, paused)
    return message(
        t(
            "Paused the goal; the running turn ends first. Continue: {resume}",
            resume=_in_words(context, "resume", session),
        )
    )


async def _resume(context: CommandContext, name: str) -> TextResult:
    session, progress = await asyncio.to_thread(_find, context, name)
    if progress.goal is None:
        raise NotFound(t.marked(_NO_GOAL), hint=t.marked(_HOW))
    if progress.status == "active":
        return message(t("The goal is already being worked on."))
    await _write(context, session, GoalResumed(by=context.surface.name))
    if context.service is None:
        return message(
            t("Resumed. Work on it: hermes --resume {session}", session=session)
        )
    return message(t("Going on with the goal."))


async def _clear(context: CommandContext, name: str) -> TextResult:
    session, progress = await asyncio.to_thread(_find, context, name)
    if progress.goal is None:
        raise NotFound(t.marked(_NO_GOAL), hint=t.marked(_HOW))
    await _write(context, session, GoalCleared(by=context.surface.name))
    if context.conversation is None:
        return message(t("Dropped the goal. A running turn ends normally."))
    return message(
        t("Dropped the goal. The running turn ends normally; /stop stops it.")
    )


async def _wait(
    context: CommandContext, name: str, words: list[str], limit: str
) -> TextResult:
    """Lets the goal wait for an event, from now on."""
    session, progress = await asyncio.to_thread(_find, context, name)
    if progress.goal is None:
        raise NotFound(t.marked(_NO_GOAL), hint=t.marked(_HOW))
    if await asyncio.to_thread(context.app.store.log.has_open_turn, session):
        raise Refused(
            t("A turn of this session is running."),
            hint=_in_words(context, "pause", session),
        )
    topic, where = await asyncio.to_thread(_awaited, context, session, words)
    limit_s = _wait_seconds(limit)
    judged = GoalJudged(
        verdict="wait",
        reason=t.logged("You told it to wait."),
        until=context.app.clock.now() + limit_s,
    )
    waits = await asyncio.to_thread(await_event, context.app, judged, topic, where)
    roles = context.app.store.roles
    role = await asyncio.to_thread(roles.take, waiting_role(session))
    await _write(context, session, GoalResumed(by=context.surface.name), waits)
    if role is not None and context.service is None:  # for whoever runs next
        await asyncio.to_thread(roles.release, role)
    return message(
        t(
            "The goal waits for {event}, until {moment} at the latest.",
            event=event_name(waits),
            moment=moment(waits.until),
        ),
        shown_reason(await asyncio.to_thread(who_wakes, context.app, session)),
    )


def _awaited(
    context: CommandContext, session: str, words: list[str]
) -> tuple[str, dict[str, str]]:
    """The topic and the fields of an event as a person types them. Blocks."""
    topic, *fields = words or [""]
    where = dict[str, str]()
    for word in fields:
        field, sign, value = word.partition("=")
        if not sign or not field:
            raise UsageError(
                t("{word!r} is not FIELD=VALUE.", word=word),
                hint="kanban.card.moved card=t_1a2b3c4d5e after=done",  # not translated
            )
        where[field] = value
    if "path" in where:
        cwd = context.app.store.sessions.origin(session).cwd or "."
        where["path"] = str(Path(cwd) / Path(where["path"]).expanduser())
    require_event(topic, where, guest_folder(context.app, session))
    return topic, where


def _split(text: str) -> list[str]:
    """The words of an event as a person types them: quotes keep a path with spaces together."""
    try:
        return shlex.split(text)
    except ValueError:  # a quote without an end is part of a name
        return text.split()


def _wait_seconds(text: str) -> float:
    if not text.strip():
        return MAX_WAIT_S
    try:
        found = seconds(text)
    except ScheduleError as error:
        raise UsageError(error.words, hint=error.hint_words) from error
    if not 1 <= found <= _MAX_WAIT_S:
        raise UsageError(t("A goal can wait for up to 30 days."))
    return found


_ACTIONS = {
    "": _show,
    "show": _show,
    "status": _show,
    "pause": _pause,
    "resume": _resume,
    "clear": _clear,
    "stop": _clear,
}
"""What `/goal` does with one word."""
