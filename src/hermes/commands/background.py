"""Sessions that work in the background for a chat: child agents, background tasks and reviews."""

import asyncio
import contextlib
from collections.abc import Iterable

from hermes.app.child_sessions import (
    BACKGROUND,
    DELEGATE,
    REVIEW,
    ChildStatus,
    child_ids,
    child_status,
    running_children,
)
from hermes.commands.context import CommandContext
from hermes.commands.views import Block, Column, TextResult, line, message, table
from hermes.errors import NotFound, SessionNotFound, UsageError
from hermes.schema.events import InterruptRequested, SessionCreated
from hermes.schema.goals import ChildAttached
from hermes.schema.messages import UserMessage
from hermes.schema.shown_reasons import state_in_words
from hermes.text.formats import money, short_duration
from hermes.text.translation import shown_reason, to_translate, translator

t = translator(__name__)


MAX_SHOWN_CHILDREN = 20
_KINDS = {
    REVIEW: to_translate("review"),
    BACKGROUND: to_translate("background"),
    DELEGATE: to_translate("child agent"),
}
_MAX_LABEL_CHARS = 60


def children_view(children: Iterable[ChildStatus]) -> Iterable[Block]:
    """The children as a table."""
    rows = [
        (
            one.id[-6:],
            state_in_words(one.state),
            t.marked(_KINDS.get(one.kind, one.kind)),
            short_duration(one.seconds),
            money(one.cost_usd),
            child_label(one),
        )
        for one in children
    ]
    columns = (
        *(Column(t("id")), Column(t("state")), Column(t("what"))),
        *(
            Column(t("time"), right=True),
            Column(t("cost"), right=True),
            Column(t("task")),
        ),
    )
    yield table(columns, rows, narrow=((0, 1, 3, 4), (5,)))


def child_label(one: ChildStatus) -> str:
    """The task of a child, and what it is doing or how it ended."""
    task = " ".join(one.title.split())[:_MAX_LABEL_CHARS]
    doing = " ".join(shown_reason(one.doing).split())[:_MAX_LABEL_CHARS]
    if one.runs and doing:
        return f"{task}: {doing}" if task else doing
    return f"{task} ({doing})" if doing and one.state != "done" else task


def listed_children(context: CommandContext, session: str = "") -> list[ChildStatus]:
    """The children of a session, the newest last; without a session, all that work now."""
    app = context.app
    if not session:
        found = running_children(app) if app.has_log else []
        return [child_status(app, one, parent=parent) for one, parent in found]
    ids = child_ids(app, session)[-MAX_SHOWN_CHILDREN:]
    return [child_status(app, one, parent=session) for one in ids]


def find_child(context: CommandContext, name: str) -> ChildStatus:
    """Finds a child by the end of its id; outside of chats, also by the beginning. Raises NotFound."""
    app = context.app
    ids = child_ids(app, context.session) if context.session else []
    if not context.session:
        ids = [one for one, _ in running_children(app)]
    found = [one for one in ids if name and (one.endswith(name) or one == name)]
    if not found and name and not context.session:
        with contextlib.suppress(SessionNotFound):
            found = [app.store.sessions.find(name).id]
    if len(found) != 1:
        known = ", ".join(one[-6:] for one in ids)
        raise NotFound(
            t("There is no background task or child agent {name!r}.", name=name)
            if name
            else t("Which one? ID is missing."),
            hint=t("There are: {known}.", known=known)
            if known
            else t("Nothing is running in the background."),
        )
    return child_status(app, found[0], parent=context.session)


async def stop_child(context: CommandContext, name: str) -> TextResult:
    """Stops a child, in whichever process it runs."""
    child = await asyncio.to_thread(find_child, context, name)
    if not child.runs:
        return message(
            t(
                "{id} is no longer running: {state}.",
                id=child.id[-6:],
                state=child.state,
            )
        )
    if context.service is not None:
        await context.service.interrupt(child.id, by=context.surface.name)
    else:
        asked = InterruptRequested(by=context.surface.name)
        await asyncio.to_thread(context.app.record, child.id, asked)
    return message(t("Stopped {id}. What it did so far was saved.", id=child.id[-6:]))


async def tell_child(context: CommandContext, name: str, text: str) -> TextResult:
    """Sends a child a message, which it reads in its running turn or takes as its next task."""
    if not text.strip():
        word = "hermes agents" if context.conversation is None else "/agents"
        raise UsageError(t("The message is empty."), hint=f"{word} tell ID TEXT")
    child = await asyncio.to_thread(find_child, context, name)
    if context.service is not None:
        delivery = "steer" if child.runs else "queue"
        await context.service.submit(child.id, text, delivery=delivery)
        return message(t("Told {id}.", id=child.id[-6:]))
    said = UserMessage(text=text, delivery="steer" if child.runs else "queue")
    await asyncio.to_thread(context.app.record, child.id, said)
    if child.runs:
        return message(
            t("Told {id}; it reads your message at its next step.", id=child.id[-6:])
        )
    return message(t("Saved. Let it answer: hermes --resume {id}", id=child.id))


async def begin_child(context: CommandContext, session: str, kind: str) -> str:
    """Begins a session that works for this one. Its questions reach whoever watches this chat."""
    info = await asyncio.to_thread(context.app.store.sessions.find, session)
    created = SessionCreated(
        kind="child",
        parent=info.id,
        parent_seq=info.head,
        root=info.top or info.id,
        surface=kind,
        cwd=info.cwd,
    )
    return (await asyncio.to_thread(context.app.begin, created)).session


async def move_to_background(context: CommandContext, session: str) -> TextResult:
    """Moves the running turn to the background, and begins a new session here."""
    app, chat = context.app, context.chat
    holder = await asyncio.to_thread(app.store.leases.holder, session)
    if holder is None:
        raise UsageError(
            t("No turn is running, so there is nothing to move to the background."),
            hint=t("Begin a task there: /bg TASK"),
        )
    new = await chat.leave_running()
    attached = ChildAttached(child=session, is_moved=True)
    await asyncio.to_thread(app.record, new, attached)
    chat.agent.service.report_end_to(session, new)
    return message(
        t(
            "The turn goes on in the background as {session}. This is a new session.",
            session=session[-6:],
        ),
        t("Go back with: /agents open {session}", session=session[-6:]),
    )


def nothing_runs() -> Block:
    return line(t("Nothing is running in the background."))
