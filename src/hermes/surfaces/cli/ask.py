"""One question, one answer: `hermes "question"` and `hermes -z "prompt"`.

Stdout gets the answer and nothing else, or with `--json` every event. What happens meanwhile is shown on stderr when
that is a terminal. The exit code tells how it went: 0 done, 1 failed, 3 refused or not approved, 130 interrupted.
"""

import asyncio
import os
import signal
from contextlib import ExitStack

from hermes.app import App
from hermes.app.agent import Agent
from hermes.errors import StoreError
from hermes.settings.load import load_secrets
from hermes.surfaces.cli.answer import FAILED, INTERRUPTED, Answer
from hermes.surfaces.cli.ask_screen import AskScreen
from hermes.surfaces.cli.interrupts import Interrupts
from hermes.surfaces.cli.jsonlines import JsonLines
from hermes.surfaces.cli.message import say
from hermes.surfaces.cli.opening import Place, begin, choose_model, find_place, open_app
from hermes.surfaces.cli.piped import joined, read_piped
from hermes.surfaces.cli.question import Question
from hermes.surfaces.cli.sessions_text import one_line
from hermes.surfaces.cli.watching import subscribed, watched

HELLO = "Say hello and tell in one sentence what you can do."


def ask(question: Question) -> int:
    """Asks, prints the answer and returns the exit code."""
    text = joined(question.text, read_piped()) or HELLO
    with open_app(question) as app:
        place = find_place(app, question)
        choose_model(app, question)
        agent = Agent(app, load_secrets(home=app.home), approvals=question.approvals, model=question.model)
        agent.describe()  # what is wrong with the settings is said now
        try:
            return asyncio.run(_ask(app, agent, place, text, as_json=question.json))
        except asyncio.CancelledError:  # Ctrl-C, twice
            return INTERRUPTED


async def _ask(app: App, agent: Agent, place: Place, text: str, *, as_json: bool) -> int:
    with ExitStack() as stack:
        lines = JsonLines() if as_json else None
        if lines is not None:
            stack.enter_context(subscribed(lines.see, "**"))
        session = await asyncio.to_thread(begin, app, place, "cli")
        answer = Answer(session)
        interrupts = Interrupts(agent.service, session)
        stack.callback(interrupts.close)
        _listen(interrupts)
        for see in (answer.see, interrupts.see):
            stack.enter_context(watched(see))
        if lines is not None:
            loop = asyncio.get_running_loop()
            lines.on_failure = lambda: loop.call_soon_threadsafe(interrupts.press)
            failure = await _run(agent, session, text)
            if lines.failure is not None:
                raise lines.failure
        else:
            failure = await _run_shown(agent, session, text, answer)
    return _report(answer, failure, session)


def _listen(interrupts: Interrupts) -> None:
    """The first Ctrl-C stops the turn and keeps what there is, the second whatever waits for it, the third all."""
    waiting = asyncio.current_task()

    def press() -> None:
        match interrupts.press():
            case 1:
                pass
            case 2 if waiting is not None:
                waiting.cancel()
            case _:
                os._exit(INTERRUPTED)

    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, press)


async def _run(agent: Agent, session: str, text: str) -> StoreError | None:
    """To the end. Returns what kept the session from being saved."""
    try:
        await agent.service.submit(session, text)
        await agent.service.idle(session)
    except StoreError as error:
        return error
    finally:
        await agent.service.close()
    return None


async def _run_shown(agent: Agent, session: str, text: str, answer: Answer) -> StoreError | None:
    screen = AskScreen(agent, session)
    with ExitStack() as stack:
        screen.attach(stack)
        stack.enter_context(watched(screen.see))
        failure = await _run(agent, session, text)
    screen.finish()
    if not screen.streams and answer.text:
        print(answer.text, flush=True)
    return failure


def _report(answer: Answer, failure: StoreError | None, session: str) -> int:
    """Says on stderr what went wrong, if anything did."""
    again = f"Go on with: hermes --resume {session}"
    if failure is not None:
        say(f"Not saved: {failure.message}", failure.hint)
        return FAILED
    if answer.ended == "interrupted":
        say("Interrupted. What was written until then is kept.", again, alarming=False)
    elif answer.ended is None:
        say("Somebody else answered in this session.", f"Read it with: hermes sessions show {session}")
    elif answer.ended != "done":
        say(_sentence(answer), again)
    elif answer.denied:
        calls = "\n".join(f"- {one_line(call)}" for call in answer.denied)
        say(
            f"Not done, because nobody could be asked:\n{calls}",
            f"Allow edits with --approvals auto-edit, everything with --approvals full. {again}",
        )
    elif answer.declined:
        calls = "\n".join(f"- {one_line(call)}" for call in answer.declined)
        say(f"Not done, because it was not allowed:\n{calls}", again, alarming=False)
    return answer.code


def _sentence(answer: Answer) -> str:
    words = {"refused": "The model refused", "budget": "Stopped by the budget", "crashed": "It crashed"}
    head = words.get(str(answer.ended), "It failed")
    detail = "" if answer.ended == "refused" and answer.detail == answer.text else answer.detail
    return f"{head}: {detail}" if detail else f"{head}."
