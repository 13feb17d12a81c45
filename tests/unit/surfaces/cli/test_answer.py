"""What a one-shot run came to, read from its events."""

from typing import Any

import pytest

from hermes.surfaces.cli.answer import Answer
from hermes.surfaces.cli.ask import heading_of


def event(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": f"agent.{kind}", "session_id": "s", **fields}


def seen(*events: dict[str, Any]) -> Answer:
    answer = Answer("s")
    for one in events:
        answer.on_event(one)
    return answer


DONE = event("turn.ended", reason="done")


def test_the_last_reply_without_calls_is_the_answer() -> None:
    answer = seen(
        event("message.assistant", text="Let me look.", tool_calls=[{"id": "1"}]),
        event("message.assistant", text="There it is.\n"),
        DONE,
    )
    assert (answer.text, answer.code) == ("There it is.", 0)


def test_a_reply_that_goes_on_is_one_answer() -> None:
    answer = seen(
        event("message.assistant", text="It begins "),
        event("reply.rejected", reason="truncated"),
        event("message.assistant", text="and ends."),
        DONE,
    )
    assert answer.text == "It begins and ends."


def test_a_rejected_reply_is_no_answer() -> None:
    answer = seen(
        event("message.assistant", text=" "),
        event("reply.rejected", reason="empty"),
        event("turn.ended", reason="failed", detail="empty"),
    )
    assert (answer.text, answer.code, answer.detail) == ("", 1, "empty")


def test_what_was_streamed_counts_until_the_reply_is_whole() -> None:
    assert (
        seen(
            event("message.delta", text="one "), event("message.delta", text="two")
        ).text
        == "one two"
    )


def test_a_retried_reply_begins_anew() -> None:
    deltas = (
        event("message.delta", text="void"),
        event("model.retried", reason="server"),
    )
    assert seen(*deltas, event("message.delta", text="good")).text == "good"


def test_other_sessions_do_not_count() -> None:
    assert (
        seen({**event("message.delta", text="not ours"), "session_id": "other"}).text
        == ""
    )


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("done", 0),
        ("failed", 1),
        ("crashed", 1),
        ("budget", 1),
        ("refused", 3),
        ("interrupted", 130),
    ],
)
def test_the_exit_code_tells_how_the_turn_ended(reason: str, code: int) -> None:
    assert seen(event("turn.ended", reason=reason)).code == code


def test_without_an_end_it_failed() -> None:
    assert Answer("s").code == 1


def test_a_call_that_nobody_could_approve_is_not_success() -> None:
    answer = seen(
        event("approval.requested", call_id="c", name="terminal", summary="run make"),
        event("approval.answered", call_id="c", answer="deny", by="nobody"),
        DONE,
    )
    assert (answer.denied, answer.code) == (["run make"], 3)


def test_a_call_that_a_person_denied_is_not_success_either() -> None:
    answer = seen(
        event("approval.answered", call_id="c", answer="deny", by="cli"), DONE
    )
    assert (answer.denied, answer.declined, answer.code) == ([], ["c"], 3)


def test_an_allowed_call_is_success() -> None:
    assert (
        seen(
            event("approval.answered", call_id="c", answer="once", by="cli"), DONE
        ).code
        == 0
    )


def test_what_was_not_done_is_named_without_its_diff() -> None:
    assert (
        heading_of("edit_file /w/a.py\n@@ -1 +1 @@\n-old\n+new") == "edit_file /w/a.py"
    )
    assert heading_of("Run in /w:\nmake all\nmake clean") == "Run in /w: make all"


def test_a_small_local_model_is_named() -> None:
    local = {"provider": "embedded", "model": "qwen2.5-coder-1.5b (local)"}
    answer = seen(event("message.assistant", text="Perhaps.", **local), DONE)
    assert answer.note.startswith(
        "Answered by Qwen2.5 Coder 1.5B Instruct, a small model on this machine"
    )
    assert "hermes setup" in answer.note
    own = seen(
        event("message.assistant", text="Yes.", provider="embedded", model="my.gguf"),
        DONE,
    )
    assert "by my.gguf, a small" in own.note


def test_a_model_of_a_service_needs_no_note() -> None:
    assert (
        seen(
            event("message.assistant", text="Yes.", provider="openai", model="gpt-5"),
            DONE,
        ).note
        == ""
    )
    assert seen(event("turn.ended", reason="failed")).note == ""


def checked(outcome: str) -> dict[str, Any]:
    return event(
        "turn.checked",
        ok=outcome == "passed",
        checks=[{"command": "make test", "outcome": outcome}],
    )


@pytest.mark.parametrize(
    ("outcome", "code"), [("passed", 0), ("failed", 1), ("not_run", 0)]
)
def test_a_failed_check_of_the_project_is_not_success(outcome: str, code: int) -> None:
    assert seen(checked(outcome), DONE).code == code


def test_a_check_that_passes_after_a_repair_is_success() -> None:
    answer = seen(checked("failed"), checked("passed"), DONE)
    assert (answer.code, answer.failed_checks) == (0, [])


def test_turns_about_messages_of_others_do_not_count() -> None:
    answer = Answer("s")
    answer.message = 7
    for number, text in ((5, "before"), (7, "mine"), (9, "after")):
        answer.on_event(event("turn.started", inputs=(number,)))
        answer.on_event(event("message.assistant", text=text))
        reason = "done" if number == 7 else "failed"
        answer.on_event(event("turn.ended", reason=reason))
    assert (answer.text, answer.code) == ("mine", 0)
