"""`present_plan`: the end of plan mode. The person accepts the plan, changes it, or sends it back with a comment."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated

from msgspec import Meta

from hermes.core.accepted_plan import ACCEPTED, PLAN_TOOL, STARTS, plan_question
from hermes.core.ports import ToolContext
from hermes.schema.events import Mode
from hermes.tools.escapes import clean
from hermes.tools.tool import tool

_MAX_TODO_STEPS = 50
_NOW = "Carry it out now, and keep the todo list up to date."  # not translated
_NEXT_TURN = "The work begins in the next turn. End this one now, without another call."  # not translated

_Line = Annotated[str, Meta(min_length=1, max_length=1000)]
_Lines = Annotated[tuple[_Line, ...], Meta(max_length=50)]
StartWork = Callable[[str, Mode], Awaitable[bool]]


class PlanTool:
    """Shows a plan and waits for the decision.

    `start_work` changes the mode of a session, and returns whether the work begins in a separate turn.
    """

    def __init__(self, start_work: StartWork) -> None:
        self._start_work = start_work

    @tool(PLAN_TOOL, effect="read")
    async def present_plan(
        self,
        context: ToolContext,
        title: Annotated[str, Meta(min_length=1, max_length=200)],
        steps: Annotated[_Lines, Meta(min_length=1, description="In order.")],
        files: Annotated[_Lines, Meta(description="What will change.")],
        risks: Annotated[_Lines, Meta(description="What could go wrong.")],
        check: Annotated[_Line, Meta(description="How the result will be checked.")],
    ) -> str:
        """You are in plan mode: only read, search and ask; nothing can be changed. Once you know enough, show the user
        your plan with this tool. The user accepts it, changes it, or says what should be different."""
        plan = plan_text(title, steps, files, risks, check)
        answer = await context.ask_about_plan(plan_question(plan), tuple(STARTS), plan)
        mode = STARTS.get(answer.text)
        if mode is None:
            return (  # not translated
                f"The user did not accept the plan and says: {answer.text}\n"
                "Stay in plan mode and present a new plan."
            )
        accepted = answer.plan.strip() or plan
        is_next_turn = await self._start_work(context.session, mode)
        todo = [{"text": step} for step in plan_steps(accepted)[:_MAX_TODO_STEPS]]
        await context.call("todo", {"items": todo})
        changed = ", with changes" if answer.plan.strip() else ""
        when = _NEXT_TURN if is_next_turn else _NOW
        return f"{ACCEPTED}{changed}. {when}\n\n{accepted}"


def plan_text(
    title: str,
    steps: Sequence[str],
    files: Sequence[str],
    risks: Sequence[str],
    check: str,
) -> str:
    """The plan as Markdown that a person can edit."""
    numbered = [f"{number}. {_line(step)}" for number, step in enumerate(steps, 1)]
    parts = [f"# {_line(title)}", "\n".join(["## Steps", *numbered])]
    for heading, lines in (("Files", files), ("Risks", risks)):
        if lines:
            listed = (f"- {_line(line)}" for line in lines)
            parts.append("\n".join([f"## {heading}", *listed]))
    parts.append(f"## How it will be checked\n{_line(check)}")  # not translated
    return "\n\n".join(parts)


def plan_steps(plan: str) -> list[str]:
    """The steps of a plan, even after a person edited it: the items below the first heading that has any."""
    steps: list[str] = []
    for line in plan.splitlines():
        number, dot, rest = line.strip().partition(". ")
        is_item = bool(dot) and number.isdecimal()
        if not is_item and line.strip()[:2] in ("- ", "* "):
            is_item, rest = True, line.strip()[2:]
        if is_item and rest.strip():
            steps.append(rest.strip())
        elif line.startswith("#") and steps:
            break
    return steps or [
        plan.strip().partition("\n")[0].lstrip("# ")
        or "Carry out the plan"  # not translated: a step of the todo list
    ]


def _line(text: str) -> str:
    return " ".join(clean(text).split())
