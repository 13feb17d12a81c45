"""What codex's own file says of a command."""

import json
from pathlib import Path
from typing import Any

import pytest

from hermes.codex.thread_file import Output, find_output


def line(call_id: str, output: Any, kind: str = "function_call_output") -> str:
    return json.dumps(
        {
            "type": "response_item",
            "payload": {"type": kind, "call_id": call_id, "output": output},
        }
    )


HEAD = "Chunk ID: 1\nWall time: 0.1 seconds\n{how}\nOriginal token count: 1\nOutput:\n"


@pytest.mark.parametrize(
    ("output", "found"),
    [
        (
            HEAD.format(how="Process exited with code 3") + "one\nOutput:\ntwo\n",
            Output("one\nOutput:\ntwo\n", 3),
        ),
        (HEAD.format(how="Process exited with code 0"), Output("", 0)),
        (
            HEAD.format(how="Process running with session ID 7") + "tick\n",
            Output("tick\n", None),
        ),
        ("plain words", Output("plain words", None)),
        ([{"type": "input_text", "text": "x"}], Output("", None)),
    ],
)
def test_the_output_and_how_it_ended(
    tmp_path: Path, output: Any, found: Output
) -> None:
    file = tmp_path / "rollout.jsonl"
    file.write_text(
        "\n".join(
            [line("c1", "older"), line("c1", output), line("c2", "other"), '{"cut off']
        )
        + "\n"
    )
    assert find_output(str(file), "c1") == found


def test_what_is_not_there_is_nothing(tmp_path: Path) -> None:
    file = tmp_path / "rollout.jsonl"
    file.write_text(
        line("c1", "x", "function_call")
        + "\n"
        + line("c2", "mentions c1 and function_call_output")
        + "\n"
    )
    assert find_output(str(file), "c1") is None
    assert find_output(str(tmp_path / "none"), "c1") is None
    assert find_output("", "c1") is None
