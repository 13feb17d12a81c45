"""ShareGPT: one conversation per line, in the shape of Hermes Agent's trajectory files.

Reasoning is in `<think>`, calls in `<tool_call>`, results in `<tool_response>`, and the system turn lists the tools in
`<tools>`. Each reply begins with `<think>`, even without reasoning, so that all have the same shape.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from hermes.schema.messages import AssistantMessage, ToolCall, ToolFinished, UserMessage
from hermes.trajectories.trajectory import (
    Trajectory,
    iso_time,
    parsed_arguments,
    parsed_result,
)

_FORMAT = (
    "The functions that you may call are listed between <tools> and </tools>. A call is a JSON object with `name` and "
    "`arguments` between <tool_call> and </tool_call>; its result follows between <tool_response> and </tool_response>. "
    "Reasoning stands between <think> and </think>."
)


def sharegpt(trajectory: Trajectory) -> dict[str, Any]:
    """Returns the trajectory as a line of a ShareGPT file."""
    document: dict[str, Any] = {
        "conversations": [_system(trajectory), *_turns(trajectory)],
        "timestamp": iso_time(trajectory.ended),
        "model": trajectory.model,
        "completed": trajectory.is_finished,
        "session_id": trajectory.session,
        **trajectory.label,
    }
    if trajectory.score is not None:
        document["score"] = trajectory.score
    return document


def _system(trajectory: Trajectory) -> dict[str, str]:
    tools = [
        {
            "name": one.name,
            "description": one.description,
            "parameters": one.parameters,
            "required": None,
        }
        for one in trajectory.tools
    ]
    listed = f"{_FORMAT}\n<tools>\n{_json(tools)}\n</tools>"
    return {"from": "system", "value": "\n\n".join((*trajectory.system, listed))}


def _turns(trajectory: Trajectory) -> Iterator[dict[str, str]]:
    """Yields the turns. All results of one reply form one turn."""
    results: list[ToolFinished] = []
    for one in trajectory.messages:
        message = one.message
        if isinstance(message, ToolFinished):
            results.append(message)
            continue
        if results:
            yield _results(results)
            results = []
        if isinstance(message, UserMessage):
            yield {"from": "human", "value": message.text}
        else:
            yield {"from": "gpt", "value": _reply(message)}
    if results:
        yield _results(results)


def _reply(message: AssistantMessage) -> str:
    parts = [f"<think>\n{message.reasoning.strip()}\n</think>"]
    if message.text.strip():
        parts.append(message.text.strip())
    parts += [_call(call) for call in message.tool_calls]
    return "\n".join(parts)


def _call(call: ToolCall) -> str:
    content = {"name": call.name, "arguments": parsed_arguments(call)}
    return f"<tool_call>\n{_json(content)}\n</tool_call>"


def _results(results: list[ToolFinished]) -> dict[str, str]:
    texts: list[str] = []
    for one in results:
        content = parsed_result(one.text)
        answer = {"tool_call_id": one.call_id, "name": one.name, "content": content}
        texts.append(f"<tool_response>\n{_json(answer)}\n</tool_response>")
    return {"from": "tool", "value": "\n".join(texts)}


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
