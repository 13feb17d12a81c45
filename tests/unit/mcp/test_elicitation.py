"""Questions of a server, put to the user."""

from typing import Any

import pytest

from hermes.errors import ToolFailed
from hermes.mcp.elicitation import answer


class User:
    """Answers from a list; nobody when it is empty."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, tuple[str, ...]]] = []

    async def ask(self, question: str, options: tuple[str, ...]) -> str:
        self.asked.append((question, options))
        if not self.answers:
            raise ToolFailed("Nobody can be asked here.")
        return self.answers.pop(0)


def form(required: tuple[str, ...] = ("x",), **properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return {"mode": "form", "message": "Well?", "requestedSchema": schema}


async def given(field: dict[str, Any], *answers: str) -> Any:
    result = await answer("s", form(x=field), User(*answers).ask)
    return result["content"]["x"] if result["action"] == "accept" else result["action"]


@pytest.mark.parametrize(
    ("field", "answers", "value"),
    [
        ({"type": "string"}, ("  words ",), "words"),
        ({"type": "string", "minLength": 3}, ("ab", "abc"), "abc"),
        ({"type": "integer"}, ("1.5", "2"), 2),
        ({"type": "number", "maximum": 1}, ("3", "0.5"), 0.5),
        ({"type": "boolean"}, ("maybe", "No"), False),
        ({"type": "string", "enum": ["Red", "blue"]}, ("green", "RED"), "Red"),
        ({"type": "string", "oneOf": [{"const": "a", "title": "A"}]}, ("a",), "a"),
        (
            {"type": "array", "items": {"type": "string", "enum": ["a", "b", "c"]}},
            ("a, C",),
            ["a", "c"],
        ),
        ({"type": "integer"}, ("x", "y", "z", "4"), "decline"),
        ({"type": "string"}, ("decline",), "decline"),
        ({"type": "string"}, (), "decline"),
    ],
)
async def test_an_answer_is_what_the_field_wants(
    field: dict[str, Any], answers: tuple[str, ...], value: Any
) -> None:
    assert await given(field, *answers) == value


async def test_an_optional_field_may_be_left_empty() -> None:
    user = User("", "")
    result = await answer(
        "s", form((), x={"type": "string"}, y={"type": "integer"}), user.ask
    )
    assert result == {"action": "accept", "content": {}}
    assert user.asked[0] == (
        "The MCP server s asks: Well?\nx (may be left empty)",
        ("Decline",),
    )
    assert user.asked[1][0] == "The MCP server s also asks:\ny (may be left empty)"


async def test_a_form_without_fields_is_a_yes_or_no() -> None:
    assert await answer("s", form(()), User("yes").ask) == {
        "action": "accept",
        "content": {},
    }
    assert await answer("s", form(()), User("Decline").ask) == {"action": "decline"}


async def test_an_endless_form_is_declined_without_asking() -> None:
    user = User("a")
    endless = form((), **{f"f{number}": {"type": "string"} for number in range(100)})
    assert await answer("s", endless, user.ask) == {"action": "decline"}
    assert not user.asked


async def test_what_the_server_writes_can_not_drive_the_terminal() -> None:
    user = User("x")
    await answer(
        "s",
        {
            **form(x={"type": "string", "title": "\x1b[2Jt\u202e"}),
            "message": "\x1b]0;x\x07hi",
        },
        user.ask,
    )
    assert user.asked[0][0] == "The MCP server s asks: hi\nt"


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "javascript:alert(1)",
        "https://a b",
        "https://a\u202eb",
        "",
    ],
)
async def test_only_an_address_of_the_web_is_shown(url: str) -> None:
    user = User("Done")
    assert await answer("s", {"mode": "url", "message": "m", "url": url}, user.ask) == {
        "action": "decline"
    }
    assert not user.asked
