"""ATIF, the Agent Trajectory Interchange Format of Harbor and Terminal-Bench.

A step is the system prompt, a user's message, or a reply with the results of its calls. Step ids count from 1.
"""

from collections.abc import Iterator
from typing import Any

from hermes import __version__
from hermes.schema.messages import AssistantMessage, ToolFinished, Usage
from hermes.trajectories.openai_messages import function_tool
from hermes.trajectories.trajectory import (
    TimedMessage,
    Trajectory,
    iso_time,
    parsed_arguments,
)

SCHEMA_VERSION = "ATIF-v1.5"  # the first with `tool_definitions`


def atif(trajectory: Trajectory) -> dict[str, Any]:
    """Returns the trajectory as an ATIF document."""
    steps = [{"step_id": number, **one} for number, one in enumerate(_steps(trajectory), 1)]  # fmt: skip
    agent: dict[str, Any] = {"name": "hermes", "version": __version__}
    if trajectory.model:
        agent["model_name"] = trajectory.model
    if trajectory.tools:
        agent["tool_definitions"] = list(map(function_tool, trajectory.tools))
    extra: dict[str, Any] = {"ending": trajectory.ending, **trajectory.label}
    if trajectory.score is not None:
        extra["score"] = trajectory.score
    return {
        "schema_version": SCHEMA_VERSION,
        "session_id": trajectory.session,
        "agent": agent,
        "steps": steps,
        "final_metrics": _final_metrics(trajectory.usage, len(steps)),
        "extra": extra,
    }


def _steps(trajectory: Trajectory) -> Iterator[dict[str, Any]]:
    if trajectory.system:
        yield {"source": "system", "message": "\n\n".join(trajectory.system)}
    step: dict[str, Any] = {}
    for one in trajectory.messages:
        if isinstance(one.message, ToolFinished):
            results = step.setdefault("observation", {"results": []})["results"]
            results.append(_result(one.message, step))
            continue
        if step:
            yield step
        step = _step(one)
    if step:
        yield step


def _result(result: ToolFinished, step: dict[str, Any]) -> dict[str, Any]:
    calls = {call["tool_call_id"] for call in step.get("tool_calls", ())}
    source = result.call_id if result.call_id in calls else None
    return {"source_call_id": source, "content": result.text}


def _step(one: TimedMessage) -> dict[str, Any]:
    message = one.message
    is_reply = isinstance(message, AssistantMessage)
    step: dict[str, Any] = {"source": "agent" if is_reply else "user"}
    if one.ts:
        step["timestamp"] = iso_time(one.ts)
    step["message"] = message.text
    if not is_reply:
        return step
    if message.model:
        step["model_name"] = message.model
    if message.reasoning:
        step["reasoning_content"] = message.reasoning
    if message.tool_calls:
        step["tool_calls"] = [
            {
                "tool_call_id": call.id,
                "function_name": call.name,
                "arguments": parsed_arguments(call),
            }
            for call in message.tool_calls
        ]
    if message.usage is not None:
        step["metrics"] = _metrics(message.usage)
    return step


def _metrics(usage: Usage) -> dict[str, Any]:
    metrics: dict[str, Any] = {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "cached_tokens": usage.cache_read_tokens,
    }
    if usage.cost_usd is not None:
        metrics["cost_usd"] = usage.cost_usd
    return metrics


def _final_metrics(usage: Usage, steps: int) -> dict[str, Any]:
    totals = {f"total_{name}": value for name, value in _metrics(usage).items()}
    return {**totals, "total_steps": steps}
