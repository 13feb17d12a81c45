"""Which variables a command gets."""

from pathlib import Path

import pytest

from hermes.tools.process.environment import command_environment, confined_environment

TEMPORARY = Path("/t")


@pytest.mark.parametrize(
    "name",
    [
        "PATH",
        "HOME",
        "LANG",
        "LC_TIME",
        "GOPATH",
        "CARGO_HOME",
        "VIRTUAL_ENV",
        "http_proxy",
    ],
)
def test_what_programs_need_is_passed_on(name: str) -> None:
    assert confined_environment({name: "x"}, TEMPORARY)[name] == "x"


@pytest.mark.parametrize(
    "name",
    ["SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "MY_THING", "AWS_PROFILE", "LD_PRELOAD", "BASH_ENV", "ENV",
     "NPM_TOKEN", "UV_PUBLISH_PASSWORD", "CARGO_REGISTRY_TOKEN", "PIP_SECRET", "HERMES_HOME"],
)  # fmt: skip
def test_nothing_else_is_confined_with_a_command(name: str) -> None:
    assert name not in confined_environment({name: "x"}, TEMPORARY)


def test_values_that_are_secrets_are_left_out_whatever_they_are_called() -> None:
    given = {
        "http_proxy": "http://me:secret@proxy:1",
        "GOFLAGS": "ghp_0123",
        "PIP_INDEX_URL": "https://u:p@host/x",
    }
    assert not given.keys() & confined_environment(given, TEMPORARY).keys()
    assert not given.keys() & command_environment(given).keys()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("BUNDLE_GEMS__EXAMPLE__COM", "user:hunter2"),
        ("PIP_INDEX_URL", "https://hunter2@pypi.example/simple"),
        ("GOPROXY", "https://hunter2@x"),
        ("JAVA_TOOL_OPTIONS", "-Ddb.password=hunter2"),
        ("GRADLE_OPTS", "-PnexusPassword=hunter2"),
        ("MAVEN_ARGS", "-Dclient.secret=hunter2"),
        ("NODE_OPTIONS", "--token hunter2"),
    ],
)
def test_a_secret_within_a_value_is_left_out(name: str, value: str) -> None:
    assert name not in confined_environment({name: value}, TEMPORARY)
    assert name not in command_environment({name: value})


@pytest.mark.parametrize(
    "name", ["PATH", "PYTHONPATH", "HOME", "VIRTUAL_ENV", "CARGO_HOME", "PWD"]
)
def test_a_folder_may_be_called_like_a_secret(name: str) -> None:
    assert (
        confined_environment({name: "/home/me/tokenizers"}, TEMPORARY)[name]
        == "/home/me/tokenizers"
    )


def test_caches_are_where_a_confined_command_can_write() -> None:
    got = confined_environment(
        {"XDG_CACHE_HOME": "/home/me/.cache", "TMPDIR": "/tmp"},  # noqa: S108
        TEMPORARY,  # noqa: RUF100, S108
    )
    assert (got["XDG_CACHE_HOME"], got["TMPDIR"]) == ("/t/cache", "/t")
