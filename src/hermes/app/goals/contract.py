"""The text of a goal: the outcome, and the lines `verify:`, `constraints:`, `stop when:`, `turns:` and `budget:`."""

import re
from collections.abc import Sequence

import msgspec

from hermes.core.budget import parse_amount
from hermes.errors import UsageError
from hermes.primitives.untyped import number_in_text
from hermes.schema.goals import GoalSet
from hermes.schema.messages import UserMessage
from hermes.schema.model import ModelRequest
from hermes.settings.sections import GoalSettings
from hermes.text.translation import translator

t = translator(__name__)


_LINE = re.compile(
    r"(?i)(?:^|(?<=[\s;]))(verify|constraints?|stop[ _-]?when|(?:turns|budget)(?=\s*:\s*[$\d]))\s*:\s*",
    re.MULTILINE,
)
_FIELDS = {"constraint": "constraints", "stopwhen": "stop_when"}
MAX_GOAL_CHARS = 8_000
_MAX_TURNS = 10_000
_EXAMPLE = "all tests pass   verify: make test   stop when: an API must change"  # not translated
_DRAFT = (
    "Write a contract for the goal that the user gives you, so that it can be checked. Answer with exactly these lines and "
    "nothing else, in the user's language:\n"
    "goal: the outcome in one or two sentences, concrete\n"
    "verify: one shell command that succeeds only if it is reached and that runs without the network; leave the line out "
    "if there is none\n"
    "constraints: what must stay true\n"
    "stop when: when to stop and ask the user"  # not translated
)
_DRAFT_TOKENS = 2_000


def parse_goal(text: str, settings: GoalSettings, *, by: str = "") -> GoalSet:
    """Parses the goal that a person typed. Raises UsageError if it has no outcome, or an invalid line."""
    if len(text) > MAX_GOAL_CHARS:
        raise UsageError(
            t.later(
                "The goal is longer than {max_goal_chars:,} characters.",
                max_goal_chars=MAX_GOAL_CHARS,
            ),
            hint=t.later("Put the details into a file and name it in the goal."),
        )
    found = list(_LINE.finditer(text))
    outcome = text[: found[0].start()] if found else text
    fields = {"max_turns": str(settings.max_turns), "budget": settings.budget}
    for number, one in enumerate(found):
        end = found[number + 1].start() if number + 1 < len(found) else len(text)
        name = re.sub(r"[ _-]", "", one[1].lower())
        name = {"turns": "max_turns"}.get(name, _FIELDS.get(name, name))
        fields[name] = text[one.end() : end].strip().rstrip(";").rstrip()
    if not outcome.strip():
        raise UsageError(
            t.later("The goal is empty."),
            hint=t.later("Such as: {example}", example=_EXAMPLE),
        )
    return GoalSet(
        text=outcome.strip(),
        verify=fields.get("verify", ""),
        constraints=fields.get("constraints", ""),
        stop_when=fields.get("stop_when", ""),
        max_turns=_turns(fields["max_turns"]),
        budget=_amount(fields["budget"]),
        by=by,
    )


def _turns(text: str) -> int:
    if not 1 <= (number := number_in_text(text) or 0) <= _MAX_TURNS:
        raise UsageError(
            t.later(
                "turns: {text!r} is not a number from 1 to {max_turns:,}.",
                text=text,
                max_turns=_MAX_TURNS,
            )
        )
    return number


def _amount(text: str) -> str:
    if text:
        try:
            parse_amount(text)
        except ValueError as error:
            raise UsageError(t.later("budget: {error}.", error=error)) from error
    return text


def draft_request(text: str) -> ModelRequest:
    """Asks a model to write the contract of a goal."""
    return ModelRequest(
        system=(_DRAFT,),
        messages=(UserMessage(text=text),),
        max_output_tokens=_DRAFT_TOKENS,
    )


def drafted(reply: str, typed: str, settings: GoalSettings, *, by: str) -> GoalSet:
    """Returns the goal that a model wrote, as a draft. Parts that it did not write stay as the person typed them."""
    body = re.sub(r"(?m)^```\w*$", "", reply).strip()
    body = re.sub(r"(?i)^\s*goal\s*:\s*", "", body)
    try:
        goal = parse_goal(body, settings, by=by)
    except UsageError:
        goal = parse_goal(typed, settings, by=by)
    own = parse_goal(typed, settings, by=by)
    verify = (
        re.sub(r"^`(.*)`$", r"\1", goal.verify.splitlines()[0]) if goal.verify else ""
    )
    return msgspec.structs.replace(
        goal,
        verify=own.verify or verify,
        constraints=own.constraints or goal.constraints,
        stop_when=own.stop_when or goal.stop_when,
        max_turns=own.max_turns,
        budget=own.budget,
        is_draft=True,
    )


def goal_lines(goal: GoalSet, subgoals: Sequence[str] = ()) -> list[str]:
    """Returns the goal and its conditions, one per line."""
    named = (
        ("Verify", goal.verify),
        ("Constraints", goal.constraints),
        ("Stop when", goal.stop_when),  # not translated
    )
    lines = [f"Goal: {goal.text}"]
    lines += [f"{name}: {text}" for name, text in named if text]
    lines += [f"Subgoal {number}: {one}" for number, one in enumerate(subgoals, 1)]
    return lines
