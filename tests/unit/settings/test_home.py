"""The paths of a home."""

from pathlib import Path

import pytest

from hermes.settings import Home, find_home


def test_every_part_has_its_place() -> None:
    home = Home(Path("/h"))
    parts = [
        home.config,
        home.env_file,
        home.policy,
        home.state,
        home.memories,
        home.skills,
        home.plugins,
        home.hooks,
    ]
    parts += [home.logs, home.cache, home.sessions]
    assert [path.name for path in parts] == [
        *(
            "config.yaml",
            ".env",
            "policy.yaml",
            "state.db",
            "memories",
            "skills",
            "plugins",
            "hooks",
        ),
        *("logs", "cache", "sessions"),
    ]
    assert {path.parent for path in parts} == {Path("/h")}


@pytest.mark.parametrize(
    ("environ", "root"),
    [
        ({"HOME": "/u"}, "/u/.hermes"),
        ({"HOME": "/u", "HERMES_HOME": ""}, "/u/.hermes"),
        ({"HOME": "/u", "HERMES_HOME": "/other"}, "/other"),
        ({"HOME": "/u", "HERMES_HOME": "~/mine"}, "/u/mine"),
        ({"HOME": "/u", "HERMES_HOME": "~"}, "/u"),
    ],
)
def test_the_environment_says_where_the_home_is(
    environ: dict[str, str], root: str
) -> None:
    assert find_home(environ).root == Path(root)


def test_a_relative_home_is_made_absolute() -> None:
    assert find_home({"HOME": "/u", "HERMES_HOME": "here"}).root == Path.cwd() / "here"
