"""One question, one answer: `hermes "question"` and `hermes -z "prompt"`.

Stdout gets the answer and nothing else, or with `--json` every event. Progress is shown on stderr if that is a
terminal. Exit codes: 0 done, 1 failed (the turn, or a check of the project's rules), 3 refused or not approved, 130
interrupted, 143 and 129 ended by SIGTERM and SIGHUP.
"""

import asyncio
import os
import signal
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes.app import App
from hermes.app.agent import Agent
from hermes.app.attachments import Attached, AttachmentFolder, attach, images_of
from hermes.app.goals.waking import who_wakes
from hermes.app.session_journal import read_history
from hermes.errors import LeaseLost, StoreError, UsageError
from hermes.schema.goals import GoalSet
from hermes.schema.messages import Image
from hermes.settings.load import load_secrets
from hermes.store.lock_holders import owner_in_words
from hermes.surfaces.cli.answer import DONE, FAILED, INTERRUPTED, REFUSED, Answer
from hermes.surfaces.cli.ask_screen import AskScreen
from hermes.surfaces.cli.question import is_piped, joined, read_piped
from hermes.surfaces.terminal.event_watcher import events_in_loop, subscribed
from hermes.surfaces.terminal.interrupts import Interrupts, is_elsewhere
from hermes.surfaces.terminal.open_agent import (
    SessionTarget,
    as_agent,
    begin,
    begin_as,
    choose_model,
    find_target,
    in_worktree,
    keeps_models,
    open_app,
    with_kept_model,
)
from hermes.surfaces.terminal.run_options import RunOptions
from hermes.surfaces.terminal.signals import (
    interruptible,
    listen_for_end,
    message_saved,
)
from hermes.surfaces.terminal.stderr_message import not_saved, remark, say
from hermes.surfaces.terminal.text import one_line
from hermes.text.translation import shown_reason, translator
from hermes.tools.sensitive import Guard

if TYPE_CHECKING:
    from hermes.surfaces.cli.jsonlines import JsonLines

t = translator(__name__)


def ask(question: RunOptions) -> int:
    """Asks, prints the answer and returns the exit code."""
    piped = read_piped()
    if not joined(question.text or question.goal, piped):
        raise UsageError(
            t("There is no question: none was given, and stdin is empty."),
            hint=t(
                'Ask like this: hermes "what is in this folder?" For a chat, run hermes in a terminal.'
            ),
        )
    images = images_of(question.images)
    with open_app(question) as app:
        question = in_worktree(app, question)
        target = find_target(app, question)
        question = as_agent(app, target, question)
        with interruptible():
            choose_model(app, with_kept_model(app, target, question))
        agent = Agent(
            app,
            load_secrets(home=app.home),
            approvals=question.approvals,
            model=question.model,
            keeps_models=keeps_models(question),
        )
        agent.describe()  # what is wrong with the settings is said now
        attached = _attached(app, agent, target.cwd, question.text or "")
        text = question.goal or joined(attached.text, piped)
        run = _Run(app, agent, target, text, (*images, *attached.images))
        run.as_agent = question.agent
        if question.goal:
            from hermes.app.goals.contract import parse_goal

            run.goal = parse_goal(question.goal, app.settings.goals, by="cli")
        try:
            return asyncio.run(run.to_end(as_json=question.json))
        except asyncio.CancelledError:  # a signal
            return run.say_left()


def _attached(app: App, agent: Agent, folder: Path, question: str) -> Attached:
    """The question with the files that it names.

    A script's question may hold a stranger's words, so without a terminal only files in the folder are attached.
    """
    if "@" not in question:
        return Attached(question)
    from hermes.app.speech import listener

    named = AttachmentFolder(
        folder,
        Guard(app.home.root, Path.home()),
        is_far=is_piped(),
        listen=listener(app),
        reads_documents=app.settings.media.documents != "off",
        is_elsewhere=agent.names_resource,
    )
    attached = attach(question, named)
    for reason in attached.left:
        remark(reason)
    return attached


class _Run:
    """One question until its answer, and the signals that can end it."""

    def __init__(
        self,
        app: App,
        agent: Agent,
        target: SessionTarget,
        text: str,
        images: tuple[Image, ...],
    ) -> None:
        self._app = app
        self._agent = agent
        self._target = target
        self._text = text
        self._images = images
        self.as_agent = ""
        """The agent file that the session works as from now on."""
        self.goal: GoalSet | None = None
        """What is worked towards, if it is a goal and no question."""
        self._session = ""
        self._answer = Answer("")
        self._interrupts: Interrupts | None = None
        self._lines: JsonLines | None = None
        self._waiting: asyncio.Task[Any] | None = None
        self._saved = False
        self._elsewhere = False
        self._code = 0

    async def to_end(self, *, as_json: bool) -> int:
        """Runs until the turn ends, and returns the exit code."""
        self._waiting = asyncio.current_task()
        with ExitStack() as stack:
            if as_json:
                from hermes.surfaces.cli.jsonlines import JsonLines

                self._lines = JsonLines()
                stack.enter_context(subscribed(self._lines.on_event, "**"))
            self._session = await asyncio.to_thread(
                begin, self._app, self._target, "cli"
            )
            begin_as(self._app, self._session, self.as_agent)
            self._answer = answer = Answer(self._session)
            self._interrupts = Interrupts(self._agent.service, self._session)
            stack.callback(self._interrupts.close)
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self._press)
            listen_for_end(self._end)
            for see in (answer.on_event, self._interrupts.on_event):
                stack.enter_context(events_in_loop(see))
            if self._lines is None:
                failure = await self._shown(answer)
            else:
                failure = await self._written(self._lines)
        code = self._code or _report(
            answer, failure, self._session, is_goal=self.goal is not None
        )
        if self.goal is None or failure is not None or self._code:
            return code
        return _report_goal(self._app, self._session)

    def say_left(self) -> int:
        """Reports that a signal ended the run early. Returns the exit code."""
        if self._elsewhere:
            say(
                message_saved(),
                t(
                    "Read it with: hermes sessions show {session}",
                    session=self._session,
                ),
                alarming=False,
            )
        elif self._code and self._session:
            again = t("Resume with: hermes --resume {session}", session=self._session)
            say(
                t("Stopped by a signal. Everything up to then was saved."),
                again,
                alarming=False,
            )
        return self._code or INTERRUPTED

    def _press(self) -> None:
        """Handles Ctrl-C: the first stops the turn and keeps its text, the second stops waiting for it, the third exits."""
        if self._lines is not None:
            self._lines.stop_waiting()
        if self._leaves() or self._interrupts is None:
            return
        match self._interrupts.press():
            case 1:
                pass
            case 2 if self._waiting is not None:
                self._waiting.cancel()
            case _:
                os._exit(INTERRUPTED)

    def _end(self, code: int) -> None:
        """Handles SIGTERM and SIGHUP: the first stops the turn and exits once that is saved, the second exits at once."""
        if self._code:
            os._exit(code)
        self._code = code
        if self._lines is not None:
            self._lines.stop_waiting()
        if (
            not self._leaves()
            and self._interrupts is not None
            and self._waiting is not None
        ):
            self._interrupts.press()
            self._waiting.cancel()

    def _leaves(self) -> bool:
        """Whether another process runs the session. Then its turn is left alone, and this process stops waiting."""
        if not is_elsewhere(self._app, self._session):
            return False
        self._elsewhere = True
        if self._saved and self._waiting is not None:
            self._waiting.cancel()
        return True

    async def _answered(self) -> StoreError | None:
        """Submits the question and waits for the turn to end. Returns the error that kept it from being saved."""
        service = self._agent.service
        try:
            holder = await asyncio.to_thread(self._holder)
            if self.goal is not None:
                await service.note_goal(self._session, self.goal)
            else:
                _, self._answer.message = await service.submit(
                    self._session, self._text, images=self._images
                )
            self._saved = True
            if holder and not self._elsewhere:
                remark(
                    t(
                        "{holder} is working on this session. Your message is saved and will be answered next.",
                        holder=holder,
                    )
                )
            if self._elsewhere:
                raise asyncio.CancelledError
            await service.at_rest(self._session)
        except StoreError as error:
            return error
        finally:
            if not self._elsewhere:
                await self._agent.close()
        return None

    def _holder(self) -> str:
        """The other process that runs the session, in words; empty when none does."""
        if self._target.before is None or not is_elsewhere(self._app, self._session):
            return ""
        held = self._app.store.leases.holder(self._session)
        return owner_in_words(held.owner) if held is not None else ""

    async def _written(self, lines: "JsonLines") -> StoreError | None:
        loop = asyncio.get_running_loop()
        lines.on_failure = lambda: loop.call_soon_threadsafe(self._press)
        if lines.failure is not None:
            self._press()
        try:
            return await self._answered()
        finally:
            missing = await lines.finish()
            if lines.failure is not None:
                raise lines.failure
            if missing:
                self._code = self._code or INTERRUPTED
                say(
                    t(
                        "The program that reads the output stalled; {missing:,} events were not written.",
                        missing=missing,
                    )
                )

    async def _shown(self, answer: Answer) -> StoreError | None:
        screen = AskScreen(self._agent, self._session)
        try:
            with ExitStack() as stack:
                screen.attach(stack)
                stack.enter_context(events_in_loop(screen.on_event))
                stack.enter_context(events_in_loop(screen.on_event, "session.*"))
                failure = await self._answered()
        finally:
            screen.finish()
        if failure is not None:
            return failure  # what came meanwhile may be another process's answer
        if not screen.streams and answer.text:
            screen.print_answer(answer.text)
        if answer.note:
            remark(answer.note)
        return failure


def _report(
    answer: Answer, failure: StoreError | None, session: str, *, is_goal: bool
) -> int:
    """Says on stderr what went wrong, if anything did."""
    again = t("Resume with: hermes --resume {session}", session=session)
    if isinstance(failure, LeaseLost):
        words = t(
            "Another process took over this session, so this one stopped. Everything up to then was saved."
        )
        say(
            words,
            t("See what happened: hermes sessions show {session}", session=session),
        )
        return FAILED
    if failure is not None:
        say(not_saved(failure), failure.hint)
        return FAILED
    if answer.ended == "interrupted":
        say(t("Interrupted. Everything up to then was saved."), again, alarming=False)
    elif answer.ended is None and is_goal:
        return answer.code
    elif answer.ended is None:
        say(
            t("Somebody else answered in this session."),
            t("Read it with: hermes sessions show {session}", session=session),
        )
    elif answer.ended != "done":
        say(_sentence(answer), again)
    elif answer.failed_checks:
        commands = ", ".join(map(one_line, answer.failed_checks))
        say(
            t(
                "The project's checks failed after the last change: {commands}",
                commands=commands,
            ),
            again,
        )
    elif answer.denied:
        calls = _listed(answer.denied)
        say(
            t("Not run, because there was nobody to ask:\n{calls}", calls=calls),
            t(
                "Allow edits with --approvals auto-edit, everything with --approvals full. {again}",
                again=again,
            ),
        )
    elif answer.declined:
        calls = _listed(answer.declined)
        say(
            t("Not run, because it was not allowed:\n{calls}", calls=calls),
            again,
            alarming=False,
        )
    return answer.code


def _report_goal(app: App, session: str) -> int:
    """Says on stderr why a goal was not reached, and returns the exit code."""
    progress = read_history(app.store, session).goal
    if progress.status == "done":
        return DONE
    again = f"Continue: hermes --resume {session}"
    if progress.status == "waiting":
        waits = t("The goal waits. {why}", why=shown_reason(progress.why)).rstrip()
        say(waits, shown_reason(who_wakes(app, session)), alarming=False)
        return FAILED
    if progress.was_stopped:
        say(t("Stopped. Everything up to then was saved."), again, alarming=False)
        return INTERRUPTED
    needs_you = progress.last is not None and progress.last.verdict == "needs_you"
    say(
        t("The goal was not reached. {why}", why=shown_reason(progress.why)).rstrip(),
        again,
    )
    return REFUSED if needs_you else FAILED


def _sentence(answer: Answer) -> str:
    words = {
        "refused": t("The model refused"),
        "budget": t("Stopped by the budget"),
        "crashed": t("Hermes stopped during this turn"),
    }
    if (
        answer.ended == "budget" and answer.detail
    ):  # it says by itself that it was stopped
        detail = shown_reason(answer.detail)
        return detail[:1].upper() + detail[1:]
    head = words.get(str(answer.ended), t("The turn failed"))
    detail = (
        ""
        if answer.ended == "refused" and answer.detail == answer.text
        else shown_reason(answer.detail)
    )
    return f"{head}: {detail}" if detail else f"{head}."


def _listed(calls: list[str]) -> str:
    """The calls that were not run, one per line: the file or command, without details."""
    return "\n".join(f"- {heading_of(call)}" for call in calls)


def heading_of(summary: str) -> str:
    """The first line; with the second if the first ends in a colon."""
    first, _, rest = summary.partition("\n")
    return one_line(
        f"{first} {rest.partition(chr(10))[0]}" if first.endswith(":") else first
    )
