"""OpenAI's chat format: `messages` and `tools`, as in fine-tuning files and Hermes Agent's session files."""

from typing import Any

from hermes.schema.messages import AssistantMessage, Message, ToolFinished
from hermes.schema.tool_spec import ToolSpec
from hermes.trajectories.trajectory import Trajectory, iso_time


def openai_messages(trajectory: Trajectory) -> dict[str, Any]:
    """Returns the trajectory as a line of a fine-tuning file. `metadata` identifies it among the others."""
    metadata: dict[str, Any] = {
        "session_id": trajectory.session,
        "model": trajectory.model,
        "ending": trajectory.ending,
        **trajectory.label,
    }
    if trajectory.score is not None:
        metadata["score"] = trajectory.score
    return {
        "messages": [_system(trajectory), *map(_message, _messages(trajectory))],
        "tools": list(map(function_tool, trajectory.tools)),
        "metadata": metadata,
    }


def session_file(trajectory: Trajectory, base_url: str = "") -> dict[str, Any]:
    """Returns the trajectory as a session file of Hermes Agent (`sessions/session_<id>.json`).

    `base_url` is the address of the service that answered last.
    """
    messages = list(map(_message, _messages(trajectory)))
    return {
        "session_id": trajectory.session,
        "model": trajectory.model,
        "base_url": base_url,
        "platform": trajectory.surface,
        "session_start": iso_time(trajectory.started),
        "last_updated": iso_time(trajectory.ended),
        "system_prompt": "\n\n".join(trajectory.system),
        "tools": list(map(function_tool, trajectory.tools)),
        "message_count": len(messages),
        "messages": messages,
    }


def function_tool(tool: ToolSpec) -> dict[str, Any]:
    """Returns a tool in OpenAI's format."""
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    }
    return {"type": "function", "function": function}


def _messages(trajectory: Trajectory) -> list[Message]:
    return [one.message for one in trajectory.messages]


def _system(trajectory: Trajectory) -> dict[str, Any]:
    return {"role": "system", "content": "\n\n".join(trajectory.system)}


def _message(message: Message) -> dict[str, Any]:
    if isinstance(message, ToolFinished):
        return {
            "role": "tool",
            "tool_call_id": message.call_id,
            "content": message.text,
        }
    if not isinstance(message, AssistantMessage):
        return {"role": "user", "content": message.text}
    made: dict[str, Any] = {"role": "assistant", "content": message.text}
    if message.reasoning:
        made["reasoning_content"] = message.reasoning
    if message.tool_calls:
        made["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in message.tool_calls
        ]
    return made
