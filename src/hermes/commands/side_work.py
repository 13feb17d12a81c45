"""Work beside the conversation: agents, background tasks, reviews and side questions."""

import asyncio
from collections.abc import Iterable
from typing import Annotated, Literal

import msgspec

from hermes.app.child_sessions import BACKGROUND, REVIEW, ChildStatus, last_answer
from hermes.app.engine import ApprovalMode
from hermes.app.prompt_files import REVIEWER, PromptFile, stricter
from hermes.app.session_journal import read_history
from hermes.app.side_question import ask_beside
from hermes.commands.background import (
    begin_child,
    children_view,
    find_child,
    listed_children,
    move_to_background,
    nothing_runs,
    stop_child,
    tell_child,
)
from hermes.commands.command import Arg, SessionId, command
from hermes.commands.context import CommandContext
from hermes.commands.conversation import Conversation
from hermes.commands.project import folder_of, prompt_files
from hermes.commands.views import (
    Block,
    MarkdownBlock,
    MarkdownResult,
    TextResult,
    line,
    message,
    table,
)
from hermes.errors import HermesError, NotFound, UsageError, for_reader
from hermes.schema.events import SessionAgentChosen
from hermes.schema.shown_reasons import state_in_words
from hermes.store.sessions import SessionInfo
from hermes.text.translation import shown_reason, translator

t = translator(__name__)


_OFF = ("off", "none", "hermes")
_INIT = (  # not translated: for the model
    "Look at this project (its structure, build files, tests, style, README and existing notes for agents) and write "
    "AGENTS.md in its root for agents that will work here: what the project is, where things are, how to build, test "
    "and lint (exact commands), conventions that are not obvious, and pitfalls. At most about 60 lines, only facts you "
    "have checked. If there is one command that tells whether a change is right and it runs without the network, put it "
    "into front matter as `verify: COMMAND`. If AGENTS.md exists, improve it and keep what its authors wrote on purpose."
)
_REVIEW_TASK = (  # not translated: for the model
    "Review {what}. Look at the whole change and at the code around it. Report only real problems: bugs, security, "
    "lost data, broken contracts, missing tests for risky parts. One finding per line, the worst first, as "
    "`path:line: severity: what is wrong, and how to fix it`. If you find nothing, say so in one sentence. Change nothing."
)
# not translated: for the model
_WORKING_COPY = "the working copy of this repository (git status, git diff HEAD, and new files that are not tracked yet)"
_BRANCH = (  # not translated: for the model
    "this repository's changes since {branch} (git diff {branch}...HEAD and git diff HEAD)"
)
_FIX = (  # not translated: for the model
    "Repair these findings of a review, the worst first. Check each one before you change anything:"
)


class AgentOverview(msgspec.Struct, frozen=True, kw_only=True):
    """The sessions that work for a session, and the agents that it can use."""

    current: str
    in_chat: bool
    children: tuple[ChildStatus, ...]
    agents: tuple[tuple[str, str], ...]

    def view(self, _now: float) -> Iterable[Block]:
        if self.children:
            yield from children_view(self.children)
            how = t("/agents open ID, /agents tell ID TEXT, /agents stop ID")
            shell = t("hermes agents tell ID TEXT, hermes agents stop ID")
            yield line(how if self.in_chat else shell, "dim")
        else:
            yield nothing_runs()
        if self.current:
            yield line(
                t("This session works as the agent {current}.", current=self.current)
            )
        if self.agents:
            rows_of_files = tuple(
                (f"/agent {name}", about) for name, about in self.agents
            )
            yield table((t("agent"), t("description")), rows_of_files)


Action = Literal["list", "open", "tell", "stop"]


@command(
    "agents list", slash="agents action id text", role="user", scope="observe",
    group="Chat",
)  # fmt: skip
async def show_agents(
    context: CommandContext,
    action: Annotated[Action, Arg("what to do, in a chat")] = "list",
    id: Annotated[str, Arg("a child, as the list shows it")] = "",  # noqa: A002
    text: Annotated[str, Arg("what to tell it")] = "",
    *,
    session: Annotated[str, Arg("only those that work for this session")] = "",
) -> AgentOverview | TextResult:
    """Show background tasks and child agents, and what each does now; open, tell or stop one."""
    if action == "list":
        return await _list_agents(context, session)
    if context.conversation is None:
        raise UsageError(
            t("Use the command itself: hermes agents {action} ID", action=action)
        )
    if action == "open":
        child = await asyncio.to_thread(find_child, context, id)
        left = context.session
        await context.chat.enter(child.id, recap=True)
        return message(t("Go back with: /resume {session}", session=left))
    if action == "stop":
        return await stop_child(context, id)
    return await tell_child(context, id, text)


@command("agents stop", scope="chat", group="Chat")
async def stop_agent(
    context: CommandContext,
    id: Annotated[str, Arg("its id, as `hermes agents list` shows it")],  # noqa: A002
) -> TextResult:
    """Stop a background task or child agent, whichever process runs it."""
    return await stop_child(context, id)


@command("agents tell", scope="chat", group="Chat")
async def tell_agent(
    context: CommandContext,
    id: Annotated[str, Arg("its id, as `hermes agents list` shows it")],  # noqa: A002
    text: Annotated[str, Arg("what to tell it")],
) -> TextResult:
    """Give a background task or child agent a message."""
    return await tell_child(context, id, text)


async def _list_agents(context: CommandContext, session: str) -> AgentOverview:
    named = context.session
    if session:
        found = await asyncio.to_thread(context.app.store.sessions.find, session)
        named = found.id
    if named and context.service is not None:
        await context.service.tell_ends(named)
    return await asyncio.to_thread(_overview, context, named)


@command(slash="agent name", role="owner", group="Chat")
async def choose_agent(
    context: CommandContext,
    session: SessionId,
    name: Annotated[str, Arg("an agent file; `off` for Hermes itself")] = "",
) -> AgentOverview | TextResult:
    """Work as an agent from a file from now on; alone: list them."""
    if not name:
        return await _list_agents(context, "")
    await context.chat.require_idle()
    if name.lower() in _OFF:
        await asyncio.to_thread(context.app.record, session, SessionAgentChosen())
        return message(
            t("From the next message on, this session works as Hermes itself.")
        )
    folder = await asyncio.to_thread(folder_of, context)
    file = await asyncio.to_thread(prompt_files(context).find, folder, "agent", name)
    notes = await _apply(context.chat, file)
    chosen = SessionAgentChosen(agent=file.name)
    await asyncio.to_thread(context.app.record, session, chosen)
    return message(
        t(
            "From the next message on, this session works as {name}. /agent off goes back.",
            name=file.name,
        ),
        *notes,
    )


async def _apply(chat: Conversation, file: PromptFile) -> list[str]:
    """Gives the chat the model of an agent, and its mode if that allows less."""
    await asyncio.to_thread(chat.agent.check_agent, chat.session, file)
    notes: list[str] = []
    if stricter(chat.approvals, file.mode):
        notes.append(
            t(
                "Its mode {mode} asks less than this session's; {approvals} stays.",
                mode=file.mode,
                approvals=chat.approvals,
            )
        )
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
    await _submit(context.chat, f'/init\n\n<command name="init">\n{_INIT}\n</command>')
    return message()


@command(slash="btw question", role="user", group="Chat")
async def side_question(
    context: CommandContext,
    session: SessionId,
    question: Annotated[str, Arg(metavar="QUESTION")],
) -> MarkdownResult:
    """Ask something beside the conversation, which leaves no trace in it."""
    context.surface.tell(line(t("Thinking ..."), "dim"))
    answer = await ask_beside(context.app, context.chat.agent, session, question)
    return MarkdownResult(text=answer)


@command(slash="bg task", role="user", group="Chat")
async def begin_background(
    context: CommandContext,
    session: SessionId,
    task: Annotated[str, Arg("what to do", metavar="TASK")] = "",
) -> TextResult:
    """Do a task in the background; alone: move the running turn there. You are told when it ends."""
    if not task.strip():
        return await move_to_background(context, session)
    child = await begin_child(context, session, BACKGROUND)
    await context.chat.agent.service.submit(child, task)
    return message(
        t("Working on it in the background as {child}. See /agents", child=child[-6:])
    )


@command(slash="review branch", role="user", group="Changes")
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
        await _submit(chat, f"{_FIX}\n\n{findings}")
        return message()
    child = await begin_child(context, session, REVIEW)
    reviewer = SessionAgentChosen(agent=REVIEWER.name)
    await asyncio.to_thread(context.app.record, child, reviewer)
    task = _REVIEW_TASK.format(
        what=_BRANCH.format(branch=branch) if branch else _WORKING_COPY
    )
    await chat.agent.service.submit(child, task)
    if not chat.via:  # a chat app sends what the log says of its end
        chat.agent.background.start(_report_review(context, chat, child))
    return message(
        t("A fresh reviewer is looking at the changes. You can go on working.")
    )


async def _submit(chat: Conversation, text: str) -> None:
    await chat.agent.service.submit(chat.session, text, via=chat.via)
    await chat.resume()


async def _report_review(
    context: CommandContext, chat: Conversation, child: str
) -> None:
    how = await _end_of(chat, child)
    said = await asyncio.to_thread(last_answer, context.app, child)
    context.surface.tell(
        line(t("Review {how}:", how=how), "bold"),
        MarkdownBlock(said.strip()),
        line(t("To repair what it found: /review fix"), "dim"),
    )


async def _end_of(chat: Conversation, child: str) -> str:
    """Waits for a child. Returns how it ended, in a word."""
    try:
        ended = await chat.agent.service.idle(child)
    except HermesError as error:
        return t("failed ({error})", error=for_reader(error))
    if ended is None or ended.reason == "done":
        return t("done")
    return f"{state_in_words(ended.reason)} {shown_reason(ended.detail)}".rstrip()


def _last_review(context: CommandContext, session: str) -> str:
    children = _children(context, session)
    reviews = [one for one in children if _surface(context, one.id) == REVIEW]
    if not reviews:
        raise NotFound(
            t("There was no review in this session."), hint=t("Begin one: /review")
        )
    return last_answer(context.app, reviews[-1].id)


def _children(context: CommandContext, session: str) -> list[SessionInfo]:
    return context.app.store.sessions.children(session)


def _surface(context: CommandContext, session: str) -> str:
    return context.app.store.sessions.origin(session).surface


def _overview(context: CommandContext, session: str) -> AgentOverview:
    files = prompt_files(context).all(folder_of(context), "agent")
    current = ""
    if context.session:
        current = read_history(context.app.store, context.session).agent
    return AgentOverview(
        current=current,
        in_chat=bool(context.session),
        children=tuple(listed_children(context, session)),
        agents=tuple((one.name, one.description) for one in files if one.is_usable),
    )
