"""What codex asks: anything but a clear yes is a no."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from hermes.codex.asking import Asking
from hermes.codex.failures import CodexRefused
from hermes.codex.wire import Call
from hermes.core.ports import Decision
from hermes.schema.events import ApprovalAnswered, ApprovalRequested, QuestionAnswered, QuestionAsked


class Answers:
    """Answers as told; without an answer, asking fails."""

    def __init__(self, answer: Any = None) -> None:
        self._answer = answer
        self.asked: list[ApprovalRequested] = []

    async def ask(self, request: ApprovalRequested) -> ApprovalAnswered:
        self.asked.append(request)
        if self._answer is None:
            raise RuntimeError("the desk is broken")
        return ApprovalAnswered(call_id=request.call_id, answer=self._answer)

    async def question(self, request: QuestionAsked) -> QuestionAnswered:
        raise RuntimeError("the desk is broken")


def call(method: str, **params: Any) -> Call:
    return Call(0, method, msgspec.Raw(msgspec.json.encode(params)))


COMMAND = call("item/commandExecution/requestApproval", itemId="c", command="/bin/bash -lc 'rm -rf x'", cwd="/w")


@pytest.mark.parametrize(
    ("answer", "decision"),
    [
        ("once", "accept"),
        ("session", "acceptForSession"),
        ("always", "acceptForSession"),
        ("deny", "decline"),
        (None, "decline"),
    ],
)
async def test_answers_become_decisions_and_a_failure_is_a_no(answer: Any, decision: str) -> None:
    asking = Asking(Answers(answer), {}, Path("/w"))
    assert await asking.answer(COMMAND) == {"decision": decision}
    assert asking.waiting == 0


async def test_a_policy_that_fails_does_not_allow() -> None:
    def broken(command: str, cwd: Path) -> Decision:
        raise RuntimeError("no policy")

    approvals = Answers("deny")
    assert await Asking(approvals, {}, Path("/w"), judge=broken).answer(COMMAND) == {"decision": "decline"}
    assert len(approvals.asked) == 1


async def test_the_policy_sees_the_command_as_it_was_written_and_its_folder() -> None:
    seen: list[tuple[str, Path]] = []

    def judge(command: str, cwd: Path) -> Decision:
        seen.append((command, cwd))
        return Decision("forbid")

    approvals = Answers("once")
    assert await Asking(approvals, {}, Path("/other"), judge=judge).answer(COMMAND) == {"decision": "decline"}
    assert seen == [("rm -rf x", Path("/w"))]
    assert approvals.asked == []


def command(text: str | None, **more: Any) -> Call:
    return call("item/commandExecution/requestApproval", itemId="c", command=text, cwd="/w", **more)


async def test_a_program_that_is_only_called_like_a_shell_is_judged_and_shown_whole() -> None:
    seen: list[str] = []

    def judge(text: str, cwd: Path) -> Decision:
        seen.append(text)
        return Decision("ask")

    approvals = Answers("once")
    fake = "/w/node_modules/.bin/bash -lc 'ls -la'"
    asking = Asking(approvals, {}, Path("/w"), judge=judge)
    for text in ("/bin/bash -lc 'ls -la'", fake):
        await asking.answer(command(text))
    real_asked, fake_asked = approvals.asked
    assert seen == ["ls -la", fake]
    assert fake_asked.summary.startswith(fake)
    assert real_asked.shape != fake_asked.shape


async def test_an_answer_is_remembered_for_the_command_as_codex_runs_it() -> None:
    """Two shells may do different things with the same words."""
    approvals = Answers("once")
    asking = Asking(approvals, {}, Path("/w"))
    for text in ("/bin/bash -lc make", "/bin/sh -c make", "/bin/bash -lc make"):
        await asking.answer(command(text))
    first, other, again = (request.shape for request in approvals.asked)
    assert first == again != other


async def test_a_question_of_an_unreadable_shape_is_refused() -> None:
    with pytest.raises(CodexRefused, match="does not understand"):
        await Asking(Answers("once"), {}, Path("/w")).answer(
            call("item/commandExecution/requestApproval", itemId=3, command=["rm"])
        )


async def test_an_elicitation_that_can_not_be_asked_is_declined() -> None:
    form = {"type": "object", "properties": {"a": {"type": "string"}}}
    asked = call("mcpServer/elicitation/request", serverName="lab", message="?", mode="form", requestedSchema=form)
    answer = await Asking(Answers("once"), {}, Path("/w")).answer(asked)
    assert answer == {"action": "decline", "content": None, "_meta": None}


async def test_an_elicitation_to_open_an_address_is_declined() -> None:
    asked = call("mcpServer/elicitation/request", serverName="lab", message="?", mode="url", url="https://example.org")
    answer = await Asking(Answers("once"), {}, Path("/w")).answer(asked)
    assert answer == {"action": "decline", "content": None, "_meta": None}
