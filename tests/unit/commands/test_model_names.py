"""Which names a service that lists its models is taken to know."""

import pytest

from hermes.commands.model_names import is_listed, near_names

LISTED = [
    "qwen3:latest",
    "z-ai/glm-5",
    "models/gemini-3-pro",
    "claude-sonnet-5-20260101",
    "fake-1",
]


@pytest.mark.parametrize(
    "name",
    ["fake-1", "qwen3", "glm-5", "z-ai/glm-5:free", "gemini-3-pro", "claude-sonnet-5"],
)
def test_a_name_may_leave_out_what_the_service_adds(name: str) -> None:
    assert is_listed(name, LISTED)


@pytest.mark.parametrize("name", ["fake", "fake-2", "nope", "glm", "qwen"])
def test_another_name_is_not_listed(name: str) -> None:
    assert not is_listed(name, LISTED)


def test_near_names_are_offered() -> None:
    assert near_names("fake-2", LISTED) == ["fake-1"]
    assert near_names("gemini", LISTED) == ["models/gemini-3-pro"]
    assert near_names("nope", LISTED) == []
