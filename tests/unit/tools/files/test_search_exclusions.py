"""What a search leaves out, by name and place alone."""

from pathlib import Path

import pytest

from hermes.tools.files.search_tools import SearchExclusions
from hermes.tools.sensitive import Guard

EXCLUSIONS = SearchExclusions(Guard(Path("/work/project/home")), Path("/work/project"))


@pytest.mark.parametrize(
    "path",
    [".env", "a/b/.env.local", "keys/server.pem", ".ssh/config", "home/state.db"],
)
def test_what_may_hold_secrets_is_left_out(path: str) -> None:
    assert EXCLUSIONS.holds(path)


@pytest.mark.parametrize(
    "path", ["main.py", ".env.example", "src/environment.py", "homes/state.db"]
)
def test_the_rest_is_searched(path: str) -> None:
    assert not EXCLUSIONS.holds(path)


def test_what_is_left_out_is_named_up_to_a_few() -> None:
    assert EXCLUSIONS.note(["main.py"]) == ""
    assert (
        EXCLUSIONS.note(["b.pem", "a.py", "a.pem"])
        == "[not searched, as they may hold secrets: a.pem, b.pem]"
    )
    assert EXCLUSIONS.note(f"{n}.pem" for n in range(9)).endswith(
        "0.pem, 1.pem, 2.pem, 3.pem, 4.pem and 4 more]"
    )
