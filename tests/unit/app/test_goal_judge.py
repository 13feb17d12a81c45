"""What the judge of a goal is shown."""

import pytest

from hermes.app.goals.contract import parse_goal
from hermes.app.goals.judge import TurnEvidence, judge_request, read_verdict
from hermes.core.goal_progress import GoalProgress
from hermes.schema.events import RuleCheck, ToolStarted, TurnEnded
from hermes.schema.goals import GoalSet
from hermes.schema.messages import AssistantMessage, ToolFinished
from hermes.settings.sections import GoalSettings


def test_the_judge_sees_exit_codes_test_output_and_diffs_beside_the_answer() -> None:
    progress = GoalProgress()
    progress.add(1, GoalSet(text="the parser works", verify="make test"))
    progress.add(2, AssistantMessage(text="All tests pass."))
    check = RuleCheck(command="make test", outcome="failed", detail="exit 2", output="E: boom")  # fmt: skip
    rows = (
        ToolStarted(call_id="c", name="terminal", arguments='{"command": "pytest -q"}'),
        ToolFinished(
            call_id="c", name="terminal", text="1 failed\n[exit code 1]", ok=False
        ),
        TurnEnded(reason="done"),
    )
    evidence = TurnEvidence(rows=rows, diff="-old\n+new", check=check)

    (message,) = judge_request(progress, evidence).messages

    shown = (
        *("the parser works", "All tests pass.", "pytest -q", "[exit code 1]"),
        *("it failed (exit 2)", "E: boom", "-old\n+new"),
    )
    assert [one for one in shown if one not in message.text] == []


def test_conditions_that_a_person_typed_reach_the_judge() -> None:
    typed = "the parser works\nverify: make test\nconstraints: keep the API\nstop when: a test must go"
    goal = parse_goal(typed, GoalSettings())
    assert (goal.verify, goal.constraints) == ("make test", "keep the API")
    progress = GoalProgress()
    progress.add(1, goal)

    (message,) = judge_request(progress, TurnEvidence()).messages

    assert "Constraints: keep the API\nStop when: a test must go" in message.text


@pytest.mark.parametrize(
    "thoughts",
    [
        "<think>{no}</think>",
        "<think>a <think> {b}</think>\n<think>{c}</think>",
        "<think>" * 3 + "{</think>",
    ],
)
def test_what_the_judge_thinks_is_no_verdict(thoughts: str) -> None:
    verdict = read_verdict(f'{thoughts} {{"verdict": "done", "reason": "it works"}}')
    assert verdict.reason == "it works"
