"""`--profile NAME` on any command line."""

import pytest

from hermes.errors import UsageError
from hermes.surfaces.cli.profile_option import split_profile


@pytest.mark.parametrize(
    ("line", "name", "rest"),
    [
        ("--profile work sessions list", "work", "sessions list"),
        ("sessions list --profile=work", "work", "sessions list"),
        ("--continue --profile work hello", "work", "--continue hello"),
        ("mcp add x -- run --profile other", None, "mcp add x -- run --profile other"),
        ("-z --profile", None, "-z --profile"),
        ("--profile a --profile b x", "b", "x"),
    ],
)
def test_the_profile_is_taken_out_of_the_arguments(
    line: str, name: str | None, rest: str
) -> None:
    assert split_profile(line.split()) == (name, rest.split())


def test_a_profile_needs_a_name() -> None:
    with pytest.raises(UsageError, match="needs a name"):
        split_profile(["sessions", "--profile"])
