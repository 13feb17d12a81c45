"""Input that was made to do harm, or that no one thought of, as `hermes` takes it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERMES = Path(sys.executable).with_name("hermes")
NAME = "X_API_KEY"


def hermes(
    home: Path, *arguments: str | bytes, stdin: bytes = b"", **extra: str
) -> subprocess.CompletedProcess[bytes]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("HERMES_") and "KEY" not in name
    }
    environ = {**kept, "HERMES_HOME": str(home), **extra}
    return subprocess.run(
        [HERMES, *arguments],
        env=environ,
        input=stdin,
        capture_output=True,
        timeout=60,
        check=False,
    )


def test_deep_nesting_is_a_message_and_no_crash(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("- " * 20_000)
    done = hermes(tmp_path, "doctor")
    assert done.returncode == 1
    assert b"nested too deeply" in done.stdout
    (tmp_path / "config.yaml").unlink()
    for done in (
        hermes(tmp_path, "config", "set", "model.fallback", "- " * 20_000),
        hermes(tmp_path, "config", "show", HERMES_MODEL_FALLBACK="- " * 20_000),
    ):
        assert done.returncode == 1
        assert b"nested too deeply" in done.stderr


def test_a_secret_of_several_lines_is_kept_whole(tmp_path: Path) -> None:
    assert hermes(tmp_path, "config", "set", NAME, stdin=b"one\ntwo\n").returncode == 0
    assert (tmp_path / ".env").read_text() == f'{NAME}="one\\ntwo"\n'


@pytest.mark.parametrize("secret", [b"a\0b\tc\n", b"\xff\n", b"x" * 100_000])
def test_a_secret_that_can_not_be_stored_changes_nothing(
    tmp_path: Path, secret: bytes
) -> None:
    (tmp_path / ".env").write_text("A_TOKEN=1\n")
    assert hermes(tmp_path, "config", "set", NAME, stdin=secret).returncode in {1, 2}
    assert (tmp_path / ".env").read_text() == "A_TOKEN=1\n"


@pytest.mark.parametrize(
    ("name", "key"), [(".env", NAME), ("config.yaml", "model.default")]
)
def test_no_file_grows_beyond_what_is_read(tmp_path: Path, name: str, key: str) -> None:
    before = "# " + "x" * (1024 * 1024 - 1000) + "\n"
    (tmp_path / name).write_text(before)
    done = hermes(tmp_path, "config", "set", key, "y" * 2000)
    assert done.returncode == 1
    assert b"larger than 1 MiB" in done.stderr
    assert (tmp_path / name).read_text() == before


def test_get_finds_what_is_set_below_a_table(tmp_path: Path) -> None:
    assert (
        hermes(
            tmp_path,
            "config",
            "set",
            "custom_providers.mine.base_url",
            "http://host/v1",
        ).returncode
        == 0
    )
    assert (
        hermes(tmp_path, "config", "get", "custom_providers.mine.base_url").stdout
        == b"http://host/v1\n"
    )
    done = hermes(tmp_path, "config", "get", "custom_providers.other.base_url")
    assert done.returncode == 1
    assert b"is not set" in done.stderr


def test_what_is_no_text_is_named_as_that(tmp_path: Path) -> None:
    done = hermes(tmp_path / "home", "config", "set", "model.default", b"\xff")
    assert done.returncode == 2
    assert b"is not UTF-8 text" in done.stderr


def test_unset_creates_nothing(tmp_path: Path) -> None:
    assert (
        hermes(tmp_path / "home", "config", "unset", "NEVER_SET_TOKEN").returncode == 0
    )
    assert not (tmp_path / "home").exists()


def test_every_action_describes_itself(tmp_path: Path) -> None:
    for action in (
        "list",
        "show",
        "search",
        "export",
        "import",
        "rename",
        "delete",
        "prune",
        "check",
    ):
        help_text = hermes(tmp_path, "sessions", action, "--help").stdout.decode()
        assert help_text.split("\n\n")[1].endswith("."), action


def test_an_empty_search_is_wrong_usage(tmp_path: Path) -> None:
    assert hermes(tmp_path, "sessions", "search", " ").returncode == 2
