"""Work beside the conversation: agents, background tasks, reviews and side questions."""

import asyncio
from collections.abc import Iterable
from typing import Annotated, Literal

import msgspec

from hermes.app.engine import ApprovalMode
from hermes.app.prompt_files import REVIEWER, PromptFile, stricter
from hermes.app.session_journal import read_history
from hermes.app.side_question import ask_beside
from hermes.commands.command import Arg, SessionId, command
from hermes.commands.context import CommandContext
from hermes.commands.conversation import Conversation
from hermes.commands.project import folder_of, prompt_files
from hermes.commands.views import Block, TextResult, line, message, table
from hermes.errors import HermesError, NotFound, UsageError, in_sentences
from hermes.schema.events import SessionAgentChosen, SessionCreated
from hermes.schema.messages import AssistantMessage
from hermes.store.sessions import SessionInfo
from hermes.text.plurals import count

_MAX_SHOWN_CHILDREN = 20
_OFF = ("off", "none", "hermes")
_REVIEW, _BACKGROUND = "review", "background"
_INIT = (
    "Look at this project (its structure, build files, tests, style, README and existing notes for agents) and write "
    "AGENTS.md in its root for agents that will work here: what the project is, where things are, how to build, test "
    "and lint (exact commands), conventions that are not obvious, and pitfalls. At most about 60 lines, only facts you "
    "have checked. If there is one command that tells whether a change is right and it runs without the network, put it "
    "into front matter as `verify: COMMAND`. If AGENTS.md exists, improve it and keep what its authors wrote on purpose."
)
_REVIEW_TASK = (
    "Review {what}. Look at the whole change and at the code around it. Report only real problems: bugs, security, "
    "lost data, broken contracts, missing tests for risky parts. One finding per line, the worst first, as "
    "`path:line: severity: what is wrong, and how to fix it`. If you find nothing, say so in one sentence. Change nothing."
)
_WORKING_COPY = "the working copy of this repository (git status, git diff HEAD, and new files that are not tracked yet)"


class ChildState(msgspec.Struct, frozen=True, kw_only=True):
    """A child agent or a background task of a session."""

    id: str
    state: str
    kind: str
    turns: int
    tokens: int
    title: str


class AgentOverview(msgspec.Struct, frozen=True, kw_only=True):
    """What works for a session, and the agents that it can use."""

    current: str
    in_chat: bool
    children: tuple[ChildState, ...]
    agents: tuple[tuple[str, str], ...]

    def view(self, _now: float) -> Iterable[Block]:
        if self.children:
            rows = (
                (one.id[-6:], one.state, one.kind, f"{one.tokens:,}", one.title)
                for one in self.children
            )
            yield table(("id", "state", "what", "tokens", "task"), rows)
            yield line("/agents open ID, /agents tell ID TEXT, /agents stop ID", "dim")
        elif self.in_chat:
            yield line("Nothing is running in the background.")
        if self.current:
            yield line(f"This session works as the agent {self.current}.")
        if self.agents:
            rows_of_files = tuple(
                (f"/agent {name}", about) for name, about in self.agents
            )
            yield table(("agent", "description"), rows_of_files)


Action = Literal["list", "open", "tell", "stop"]


@command("agents list", slash="agents action id text", group="Chat")
async def show_agents(
    context: CommandContext,
    action: Annotated[Action, Arg("what to do")] = "list",
    id: Annotated[str, Arg("a child, as the list shows it")] = "",  # noqa: A002
    text: Annotated[str, Arg("what to tell it")] = "",
) -> AgentOverview | TextResult:
    """Show child agents and background tasks; open, tell or stop one."""
    if action == "list":
        return await asyncio.to_thread(_overview, context)
    child = await asyncio.to_thread(_find_child, context, id)
    service = context.chat.agent.service
    if action == "open":
        await context.chat.enter(child.id, recap=True)
        return message()
    if action == "stop":
        await service.interrupt(child.id, by="agents")
        return message(f"Stopped {child.id[-6:]}. What it did so far was saved.")
    if not text:
        raise UsageError("There is nothing to tell it.", hint="/agents tell ID TEXT")
    is_working = service.works_on(child.id)
    await service.submit(child.id, text, delivery="steer" if is_working else "queue")
    return message(f"Told {child.id[-6:]}.")


@command(slash="agent name", role="owner", group="Chat")
async def choose_agent(
    context: CommandContext,
    session: SessionId,
    name: Annotated[str, Arg("an agent file; `off` for Hermes itself")] = "",
) -> AgentOverview | TextResult:
    """Work as an agent from a file from now on; alone: list them."""
    if not name:
        return await asyncio.to_thread(_overview, context)
    await context.chat.require_idle()
    if name.lower() in _OFF:
        await asyncio.to_thread(context.app.record, session, SessionAgentChosen())
        return message("From the next message on, this session works as Hermes itself.")
    folder = await asyncio.to_thread(folder_of, context)
    file = await asyncio.to_thread(prompt_files(context).find, folder, "agent", name)
    notes = await _apply(context.chat, file)
    chosen = SessionAgentChosen(agent=file.name)
    await asyncio.to_thread(context.app.record, session, chosen)
    return message(
        f"From the next message on, this session works as {file.name}. /agent off goes back.",
        *notes,
    )


async def _apply(chat: Conversation, file: PromptFile) -> list[str]:
    """Gives the chat the model of an agent, and its mode if that allows less."""
    notes: list[str] = []
    if file.model:
        notes.append(await chat.use_model(file.model, force=True))
    if stricter(file.mode, chat.approvals):
        mode = msgspec.convert(file.mode, ApprovalMode)
        notes.append(await chat.use_approvals(mode))
        notes.append(f"Approvals: {file.mode}.")
    return [note for note in notes if note]


@command(slash="init", role="owner", group="Chat")
async def write_notes(context: CommandContext) -> TextResult:
    """Look at the project and write AGENTS.md for agents."""
    await _submit(context.chat, _INIT)
    return message()


@command(slash="btw question", role="user", group="Chat")
async def side_question(
    context: CommandContext,
    session: SessionId,
    question: Annotated[str, Arg(metavar="QUESTION")],
) -> TextResult:
    """Ask something beside the conversation, which leaves no trace in it."""
    context.surface.tell(line("Thinking ...", "dim"))
    answer = await ask_beside(context.app, context.chat.agent, session, question)
    return message(*answer.splitlines())


@command(slash="bg task", group="Chat")
async def begin_background(
    context: CommandContext,
    session: SessionId,
    task: Annotated[str, Arg("what to do", metavar="TASK")],
) -> TextResult:
    """Do a task in the background; you are told when it is done."""
    chat = context.chat
    child = await _begin_child(context, session, _BACKGROUND)
    await chat.agent.service.submit(child, task)
    chat.agent.background.start(_report_end(context, chat, child, task))
    return message(f"Working on it in the background as {child[-6:]}. See /agents")


@command(slash="review branch", group="Changes")
async def review_changes(
    context: CommandContext,
    session: SessionId,
    branch: Annotated[
        str, Arg("compare with this branch; `fix` repairs what was found")
    ] = "",
) -> TextResult:
    """Let a fresh reviewer look at the working copy or a branch; `/review fix` repairs the findings."""
    chat = context.chat
    if branch == "fix":
        findings = await asyncio.to_thread(_last_review, context, session)
        fix = "Repair these findings of a review, the worst first. Check each one before you change anything:"
        await _submit(chat, f"{fix}\n\n{findings}")
        return message()
    what = f"this repository's changes since {branch} (git diff {branch}...HEAD and git diff HEAD)"
    child = await _begin_child(context, session, _REVIEW)
    reviewer = SessionAgentChosen(agent=REVIEWER.name)
    await asyncio.to_thread(context.app.record, child, reviewer)
    task = _REVIEW_TASK.format(what=what if branch else _WORKING_COPY)
    await chat.agent.service.submit(child, task)
    chat.agent.background.start(_report_review(context, chat, child))
    return message("A fresh reviewer is looking at the changes. You can go on working.")


async def _begin_child(context: CommandContext, session: str, surface: str) -> str:
    """Begins a child of the session. Its questions reach whoever watches this chat."""
    info = await asyncio.to_thread(context.app.store.sessions.find, session)
    created = SessionCreated(
        kind="child",
        parent=info.id,
        parent_seq=info.head,
        root=info.root if info.kind == "child" else info.id,
        surface=surface,
        cwd=info.cwd,
    )
    return (await asyncio.to_thread(context.app.begin, created)).session


async def _submit(chat: Conversation, text: str) -> None:
    await chat.agent.service.submit(chat.session, text, via=chat.via)
    await chat.resume()


async def _report_end(
    context: CommandContext, chat: Conversation, child: str, task: str
) -> None:
    how = await _end_of(chat, child)
    said = await asyncio.to_thread(_last_text, context, child)
    first = next(iter(said.strip().splitlines()), "")
    label = " ".join(task.split())[:40]
    context.surface.tell(
        line(
            f"Background task {child[-6:]} ({label}) {how}: {first[:200]}", fit="wrap"
        ),
        line(f"All of it: /agents open {child[-6:]}", "dim"),
    )
    notify = getattr(context.surface, "notify", None)
    if notify is not None:
        notify(f"Background task {how}: {label}")


async def _report_review(
    context: CommandContext, chat: Conversation, child: str
) -> None:
    how = await _end_of(chat, child)
    said = await asyncio.to_thread(_last_text, context, child)
    context.surface.tell(
        line(f"Review {how}:", "bold"),
        *(line(one, fit="wrap") for one in said.strip().splitlines()),
        line("To repair what it found: /review fix", "dim"),
    )


async def _end_of(chat: Conversation, child: str) -> str:
    """Waits for a child; how it ended, in a word."""
    try:
        ended = await chat.agent.service.idle(child)
    except HermesError as error:
        return f"failed ({in_sentences(error)})"
    if ended is None or ended.reason == "done":
        return "done"
    return f"{ended.reason} {ended.detail}".rstrip()


def _last_text(context: CommandContext, session: str) -> str:
    messages = read_history(context.app.store, session).messages
    replies = (
        one.text for one in reversed(messages) if isinstance(one, AssistantMessage)
    )
    return next(filter(None, replies), "(it said nothing)")


def _last_review(context: CommandContext, session: str) -> str:
    children = _children(context, session)
    reviews = [one for one in children if _surface(context, one.id) == _REVIEW]
    if not reviews:
        raise NotFound(
            "There was no review in this session.", hint="Begin one: /review"
        )
    return _last_text(context, reviews[-1].id)


def _children(context: CommandContext, session: str) -> list[SessionInfo]:
    return context.app.store.sessions.children(session)


def _surface(context: CommandContext, session: str) -> str:
    return context.app.store.sessions.origin(session).surface


def _find_child(context: CommandContext, name: str) -> SessionInfo:
    found = [
        one for one in _children(context, context.session) if one.id.endswith(name)
    ]
    if not name or len(found) != 1:
        known = ", ".join(one.id[-6:] for one in _children(context, context.session))
        raise NotFound(
            f"There is no child {name!r}." if name else "Which one?",
            hint=f"There are: {known or 'none'}.",
        )
    return found[0]


def _overview(context: CommandContext) -> AgentOverview:
    files = prompt_files(context).all(folder_of(context), "agent")
    children: list[ChildState] = []
    current = ""
    if context.session:
        found = _children(context, context.session)[-_MAX_SHOWN_CHILDREN:]
        children = [_state(context, one) for one in found]
        current = read_history(context.app.store, context.session).agent
    return AgentOverview(
        current=current,
        in_chat=bool(context.session),
        children=tuple(children),
        agents=tuple((one.name, one.description) for one in files if one.is_trusted),
    )


def _state(context: CommandContext, info: SessionInfo) -> ChildState:
    agent = context.chat.agent
    holder = context.app.store.leases.holder(info.id)
    state = "working" if agent.service.works_on(info.id) or holder else "ended"
    if agent.questions.waits(info.id):
        state = "asks you"
    kinds = {_REVIEW: "review", _BACKGROUND: "background"}
    return ChildState(
        id=info.id,
        state=state,
        kind=kinds.get(_surface(context, info.id), "child"),
        turns=info.turns,
        tokens=info.tokens,
        title=info.title or count(info.turns, "turn"),
    )
