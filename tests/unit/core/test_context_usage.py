"""What making room would do, without doing it."""

from hermes.core.context_usage import CompactionPreview, preview_compaction
from hermes.schema.messages import (
    AssistantMessage,
    Message,
    ToolCall,
    ToolFinished,
    UserMessage,
)


def turn(number: int, size: int) -> list[Message]:
    call = ToolCall(id=f"c{number}", name="terminal", arguments="{}")
    return [
        UserMessage(text=f"question {number}"),
        AssistantMessage(tool_calls=(call,)),
        ToolFinished(call_id=call.id, name="terminal", text=f"{number}" * size),
        AssistantMessage(text="done"),
    ]


def test_a_short_conversation_loses_nothing() -> None:
    assert preview_compaction(turn(1, 10), first=3, last=20) == CompactionPreview(
        0, 0, 0, 0
    )


def test_old_results_become_pointers_and_the_middle_a_summary() -> None:
    messages = [message for number in range(9) for message in turn(number, 9_000)]
    ahead = preview_compaction(messages, first=3, last=8)
    assert (ahead.pointers, ahead.freed) == (7, 7 * 3_000)
    assert ahead.summarised == len(messages) - 3 - 8
    assert ahead.replaced > 6 * 2_000
