"""The small parts around the engine: versions, words for failures, environment, handing over, litter."""

from pathlib import Path

import pytest

from hermes.codex import stray_folders
from hermes.codex.binary import parse_version, version_warning
from hermes.codex.environment import (
    child_environment,
    codex_home,
    named_variables,
    permission_profile,
)
from hermes.codex.failures import explain, is_signed_out
from hermes.codex.handover import as_items, handover, knowledge
from hermes.codex.items import PatchedFile, changes_in_words, shown_command
from hermes.core.history import Beginning
from hermes.schema.events import CodexThread
from hermes.schema.messages import (
    AssistantMessage,
    Message,
    ToolCall,
    ToolFinished,
    UserMessage,
)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("codex-cli 0.166.0\n", (0, 166, 0)),
        ("hermes/0.166.1 (Linux; x86_64) unknown (hermes; 1)", (0, 166, 1)),
        ("nothing", ()),
    ],
)
def test_versions(text: str, version: tuple[int, ...]) -> None:
    assert parse_version(text) == version


def test_versions_that_are_not_tested_are_warned_about() -> None:
    assert [
        version_warning(version) for version in ((0, 130, 0), (0, 150, 1), (0, 166, 9))
    ] == ["", "", ""]
    assert "older" in version_warning((0, 129, 0))
    assert "newer" in version_warning((1, 0, 0))
    assert "does not report" in version_warning(())


@pytest.mark.parametrize(
    ("message", "info"),
    [
        (
            "unexpected status 401 Unauthorized: Missing bearer",
            {"httpConnectionFailed": {"httpStatusCode": 401}},
        ),
        ("x", "unauthorized"),
        ("Your refresh token was revoked. Please log in again.", "other"),
        ("token refresh failed", None),
        ("Failed to refresh token: 400 Bad Request", None),
        ("error: invalid_grant", None),
        ("OAuth: token_refresh error", "other"),
        ("You are not signed in.", None),
        ("The access token has expired", None),
        ("Please re-authenticate", None),
    ],
)
def test_a_lost_sign_in_says_codex_login(message: str, info: object) -> None:
    assert is_signed_out(message, info)
    said = explain(message, info)
    assert "`codex login`" in said
    assert "/codex-runtime off" in said


def test_other_failures_keep_their_words() -> None:
    assert explain("Missing environment variable: `X`.", "other") == (
        "Codex could not finish: Missing environment variable: `X`."
        " To switch back to Hermes: /codex-runtime off, or `hermes codex off`."
    )
    assert not is_signed_out(
        "exceeded retry limit, last status: 429", {"x": {"httpStatusCode": 429}}
    )


def test_the_environment_has_what_codex_needs_and_no_other_keys() -> None:
    environ = {
        "HOME": "/home/me",
        "PATH": "/bin",
        "LC_ALL": "C",
        "ANTHROPIC_API_KEY": "a",
        "OPENAI_API_KEY": "o",
        "MY_KEY": "m",
        "HTTPS_PROXY": "https://me:pw@proxy",
        "LD_PRELOAD": "x",
    }
    given = child_environment(
        environ,
        named=("MY_KEY", "STORED_KEY"),
        secret={"STORED_KEY": "s", "OTHER": "x"}.get,
    )
    assert given == {
        "HOME": "/home/me",
        "PATH": "/bin",
        "LC_ALL": "C",
        "MY_KEY": "m",
        "STORED_KEY": "s",
    }
    assert (
        child_environment(environ, codex_home="/elsewhere")["CODEX_HOME"]
        == "/elsewhere"
    )
    assert (
        child_environment({**environ, "CODEX_HOME": "/mine"})["CODEX_HOME"] == "/mine"
    )


CODEX_CONFIG = """
{head}
[model_providers.mine]
env_key = "MINE_KEY"
env_http_headers = {{ X = "MINE_HEADER" }}
[model_providers.other]
env_key = "OTHER_KEY"
env_http_headers = {{ X = "OTHER_HEADER" }}
[profiles.work]
model_provider = "other"
[profiles.plain]
model = "m"
[mcp_servers.on]
bearer_token_env_var = "ON_TOKEN"
env_vars = ["ON_VAR"]
[mcp_servers.off]
enabled = false
bearer_token_env_var = "OFF_TOKEN"
env_http_headers = {{ X = "OFF_HEADER" }}
env_vars = ["OFF_VAR"]
"""
MINE, OTHER = {"MINE_KEY", "MINE_HEADER"}, {"OTHER_KEY", "OTHER_HEADER"}


@pytest.mark.parametrize(
    ("head", "provider"),
    [
        ("", set()),
        ('model_provider = "mine"', MINE),
        ('model_provider = "mine"\nprofile = "work"', OTHER),
        ('model_provider = "mine"\nprofile = "plain"', MINE),
        ('model_provider = "mine"\nprofile = "gone"', MINE),
        ("model_provider = 3", set()),
    ],
)
def test_only_what_codex_uses_now_is_named(
    tmp_path: Path, head: str, provider: set[str]
) -> None:
    config = tmp_path / "config.toml"
    config.write_text(CODEX_CONFIG.format(head=head))
    assert named_variables(config) == provider | {"ON_TOKEN", "ON_VAR"}


def test_where_codex_keeps_its_files() -> None:
    assert codex_home({"HOME": "/home/me"}) == Path("/home/me/.codex")
    assert codex_home({"HOME": "/home/me", "CODEX_HOME": "/mine"}) == Path("/mine")
    assert codex_home({"HOME": "/home/me", "CODEX_HOME": "/mine"}, "/own") == Path(
        "/own"
    )


SAID: list[Message] = [
    UserMessage(text="one"),
    AssistantMessage(text="first"),
    UserMessage(text="two"),
    AssistantMessage(text="second"),
]


def thread(known: list[Message], **more: str) -> CodexThread:
    return CodexThread(
        thread="t",
        owner=more.get("owner", "s"),
        known=knowledge(known),
        turn=more.get("turn", ""),
    )


def test_a_thread_goes_on_where_it_fits_and_is_told_what_it_missed() -> None:
    assert handover(thread(SAID), "s", SAID) == handover(thread(SAID), "s", SAID)
    assert handover(thread(SAID), "s", SAID).missing == ()
    way = handover(thread(SAID[:2]), "s", SAID)
    assert (way.thread, list(way.missing)) == ("t", SAID[2:])


def test_a_thread_that_knows_another_conversation_is_left() -> None:
    undone = SAID[:2]
    assert handover(thread(SAID), "s", undone).thread == ""
    assert list(handover(thread(SAID), "s", undone).missing) == undone
    assert handover(thread(SAID, owner="parent"), "s", SAID).thread == ""
    assert handover(None, "s", SAID).thread == ""
    planned = handover(thread(SAID), "s", SAID, permissions=":read-only")
    assert planned.thread == ""
    assert list(planned.missing) == SAID


def test_what_a_turn_did_that_was_cut_off_is_known_to_its_thread() -> None:
    turns = [
        Beginning(1, "a", 0, frozenset()),
        Beginning(9, "b", 2, frozenset()),
        Beginning(20, "c", 4, frozenset()),
    ]
    way = handover(thread(SAID[:2], turn="b"), "s", SAID, turns)
    assert (way.thread, way.missing) == ("t", ())


def test_earlier_calls_are_told_in_words() -> None:
    call = ToolCall(id="1", name="read_file", arguments='{"path":"a"}')
    messages = [
        AssistantMessage(text="I look.", tool_calls=(call,)),
        ToolFinished(call_id="1", name="read_file", text="A" * 9000),
    ]
    first, second = as_items(messages)
    assert first["role"] == "assistant"
    assert (
        first["content"][0]["text"] == 'I look.\n\n[called read_file with {"path":"a"}]'
    )
    assert second["role"] == "user"
    assert "[... shortened ...]" in second["content"][0]["text"]


def test_a_patch_in_words() -> None:
    changes = [
        PatchedFile("/w/a.py", {"type": "add"}),
        PatchedFile("/w/b.py", {"type": "update"}),
        PatchedFile("/x/c.py", {"type": "update", "move_path": "/w/d.py"}),
    ]
    assert changes_in_words(changes[:2], "/w") == "1 add, 1 update: a.py, b.py"
    assert (
        changes_in_words(changes, "/w")
        == "1 add, 2 update: a.py, b.py, /x/c.py -> d.py"
    )
    many = [PatchedFile(f"/w/{name}.py", "update") for name in "abcdef"]
    assert changes_in_words(many, "/w") == "6 update: a.py, b.py, c.py, +3 more"
    assert changes_in_words(many[:3], "/w") == "3 update: a.py, b.py, c.py"
    assert changes_in_words([]) == "no changes"


@pytest.mark.parametrize(
    ("mode", "profile"),
    [
        ("", ""),
        ("auto", ":workspace"),
        ("approval-required", ":read-only"),
        ("unrestricted", ":danger-full-access"),
        ("YOLO", ":danger-full-access"),
        ("unrestrictd", ":read-only"),
    ],
)
def test_the_permission_profile_follows_the_security_mode(
    mode: str, profile: str
) -> None:
    assert permission_profile({"HERMES_TERMINAL_SECURITY_MODE": mode}) == profile


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("/bin/bash -lc 'echo \"a b\"'", 'echo "a b"'),
        ("/usr/bin/zsh -c ls", "ls"),
        ("bash -lc 'ls -la'", "ls -la"),
        (
            "/ws/node_modules/.bin/bash -lc 'ls -la'",
            "/ws/node_modules/.bin/bash -lc 'ls -la'",
        ),
        ("./sh -c ls", "./sh -c ls"),
        ("/bin/../ws/bash -c ls", "/bin/../ws/bash -c ls"),
        ("python -c 'print(1)'", "python -c 'print(1)'"),
        ("echo 'unclosed", "echo 'unclosed"),
    ],
)
def test_commands_are_shown_as_they_were_written(command: str, shown: str) -> None:
    assert shown_command(command) == shown


def test_only_empty_folders_that_were_not_there_are_litter(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    absent = stray_folders.possible_folders([tmp_path])
    for name in (".codex", ".agents", ".aws"):
        (tmp_path / name).mkdir()
    (tmp_path / ".aws" / "config").touch()
    stray_folders.sweep(absent)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".aws", ".git"]
