"""`hermes config` as a user runs it."""

import json
import os
import pty
import select
import stat
import subprocess
import sys
from pathlib import Path

import pytest

HERMES = Path(sys.executable).with_name("hermes")
KEY = "sk-" + "abcdefghijklmnop1234"


def environ(home: Path, **extra: str) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("HERMES_") and "KEY" not in name
    }
    return {**kept, "HERMES_HOME": str(home), **extra}


def config(
    home: Path, *arguments: str, stdin: str = "", **extra: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [HERMES, "config", *arguments], env=environ(home, **extra), input=stdin, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def editor(tmp_path: Path, script: str) -> str:
    path = tmp_path / "editor.py"
    path.write_text(
        f"import sys, pathlib\npath = pathlib.Path(sys.argv[1])\n{script}\n"
    )
    return f"'{sys.executable}' '{path}'"


def test_path_prints_the_file_and_creates_nothing(home: Path) -> None:
    assert config(home, "path").stdout == f"{home}/config.yaml\n"
    assert not home.exists()


def test_set_get_and_unset_keep_the_rest_of_the_file(home: Path) -> None:
    home.mkdir()
    file = home / "config.yaml"
    file.write_text("# mine\nstore:\n    busy_timeout: 5   # short\n\n# end\n")
    assert (
        config(home, "set", "store.busy_timeout", "7").stdout
        == "store.busy_timeout = 7.0\n"
    )
    assert (
        file.read_text() == "# mine\nstore:\n    busy_timeout: 7.0   # short\n\n# end\n"
    )
    assert config(home, "get", "store.busy_timeout").stdout == "7.0\n"
    assert (
        config(home, "unset", "store.busy_timeout").stdout
        == "store.busy_timeout = 30.0 (default)\n"
    )
    assert file.read_text() == "# mine\nstore:\n\n# end\n"
    assert config(home, "get", "store.busy_timeout").stdout == "30.0\n"


def test_set_creates_a_private_home(home: Path) -> None:
    assert config(home, "set", "display.color", "never").returncode == 0
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert stat.S_IMODE((home / "config.yaml").stat().st_mode) == 0o600
    assert config(home, "get", "display.color").stdout == "never\n"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["get", "store.busy_timout"], 2, "Did you mean store.busy_timeout?"),
        (["get", "store"], 2, "is a section"),
        (["set", "store.busy_timeout", "soon"], 1, "expected a number from 0 to 3600"),
        (["set", "store.busy_timeout"], 2, "a value is missing"),
        (["set", "openai_key", "x"], 2, "There is no setting called openai_key"),
        (["get", "OPENAI_API_KEY"], 2, "never printed"),
        (["set", "display.color", KEY], 2, "looks like a secret"),
    ],
)
def test_a_wrong_key_or_value_changes_nothing(
    home: Path, arguments: list[str], code: int, message: str
) -> None:
    done = config(home, *arguments)
    assert done.returncode == code
    assert message in done.stderr
    assert KEY not in done.stderr + done.stdout
    assert not home.exists()


def test_show_says_where_each_value_comes_from(home: Path) -> None:
    home.mkdir()
    (home / "config.yaml").write_text("# c\nstore:\n  busy_timeout: 5\n")
    (home / ".env").write_text(f"OPENAI_API_KEY={KEY}\n")
    done = config(home, "show", HERMES_BUDGET_MAX_STEPS="9", GROQ_API_KEY=KEY)
    rows = [line.split() for line in done.stdout.splitlines()]
    assert ["store.busy_timeout", "5.0", "config.yaml:3"] in rows
    assert ["budget.max_steps", "9", "HERMES_BUDGET_MAX_STEPS"] in rows
    assert ["display.color", "auto", "default"] in rows
    assert ["OPENAI_API_KEY", "********", ".env"] in rows
    assert ["GROQ_API_KEY", "********", "environment"] in rows
    assert KEY not in done.stdout + done.stderr
    shown = json.loads(config(home, "show", "--json").stdout)
    assert {
        "key": "store.busy_timeout",
        "value": 5.0,
        "origin": "config.yaml:3",
    } in shown["settings"]
    assert shown["secrets"] == [{"name": "OPENAI_API_KEY", "origin": ".env"}]


@pytest.mark.parametrize(
    "arguments", [["set", "OPENAI_API_KEY", KEY], ["set", "OPENAI_API_KEY"]]
)
def test_a_secret_goes_to_the_env_file_and_is_never_echoed(
    home: Path, arguments: list[str]
) -> None:
    done = config(home, *arguments, stdin=f"{KEY}\n")
    assert done.returncode == 0
    assert KEY not in done.stdout + done.stderr
    assert (home / ".env").read_text() == f"OPENAI_API_KEY={KEY}\n"
    assert stat.S_IMODE((home / ".env").stat().st_mode) == 0o600
    assert not (home / "config.yaml").exists()
    assert config(home, "unset", "OPENAI_API_KEY").returncode == 0
    assert (home / ".env").read_text() == ""


def test_a_secret_without_a_value_is_refused(home: Path) -> None:
    assert config(home, "set", "OPENAI_API_KEY").returncode == 2
    assert not home.exists()


def test_a_secret_typed_at_the_terminal_is_not_shown(home: Path) -> None:
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [HERMES, "config", "set", "OPENAI_API_KEY"],
        env=environ(home), stdin=follower, stdout=follower, stderr=follower, start_new_session=True,
    )  # fmt: skip
    os.close(follower)
    screen = read_until(leader, b"(not shown): ")
    os.write(leader, f"{KEY}\n".encode())
    screen += read_until(leader, b"stored in")
    assert process.wait(timeout=30) == 0
    os.close(leader)
    assert KEY.encode() not in screen
    assert (home / ".env").read_text() == f"OPENAI_API_KEY={KEY}\n"


def read_until(terminal: int, expected: bytes) -> bytes:
    screen = b""
    while expected not in screen:
        assert select.select([terminal], [], [], 30)[0], screen
        screen += os.read(terminal, 4096)
    return screen


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            b"store:\n  busy_timeout: 1\n  busy_timeout: 2\n",
            "config.yaml:3: store.busy_timeout: duplicate key",
        ),
        (b"store:\n\tbusy_timeout: 1\n", "config.yaml:2: a tab in the indentation"),
        (b"\xff\xfe\x00binary", "not UTF-8 text"),
        (f"api_key: {KEY}\n".encode(), "a secret does not belong in config.yaml"),
    ],
)
def test_a_broken_file_stops_every_command_and_stays_as_it_is(
    home: Path, content: bytes, message: str
) -> None:
    home.mkdir()
    (home / "config.yaml").write_bytes(content)
    for arguments in (
        ["check"],
        ["show"],
        ["get", "display.color"],
        ["set", "display.color", "never"],
    ):
        done = config(home, *arguments)
        assert done.returncode == 1
        assert message in done.stdout + done.stderr
        assert KEY not in done.stdout + done.stderr
        assert "Traceback" not in done.stderr
    assert (home / "config.yaml").read_bytes() == content


def test_a_folder_and_a_huge_file_are_refused(home: Path) -> None:
    (home / "config.yaml").mkdir(parents=True)
    assert "config.yaml is a folder" in config(home, "show").stderr
    (home / "config.yaml").rmdir()
    with (home / "config.yaml").open("wb") as file:
        file.truncate(100 * 1024**2)
    assert "too large: 100.0 MiB" in config(home, "check").stdout


def test_check_prints_every_problem(home: Path) -> None:
    assert config(home, "check").returncode == 0
    home.mkdir()
    (home / "config.yaml").write_text("stor: 1\ndisplay:\n  color: 3\n")
    (home / ".env").write_text("what\n")
    (home / ".env").chmod(0o644)
    done = config(
        home, "check", HERMES_STORE_BUSY_TIMOUT="3", HERMES_BUDGET_MAX_STEPS="x"
    )
    assert done.returncode == 1
    for message in (
        "config.yaml:1: stor: unknown key; did you mean store?",
        "config.yaml:3: display.color: expected one of auto, always, never, got 3",
        ".env:1: expected NAME=VALUE",
        f"run: chmod 600 '{home}/.env'",
        "HERMES_BUDGET_MAX_STEPS: expected a whole number from 1 to 10000",
        "HERMES_STORE_BUSY_TIMOUT: Hermes has no such variable; did you mean HERMES_STORE_BUSY_TIMEOUT?",
    ):
        assert message in done.stdout


def test_a_home_that_can_not_be_made_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for home in (
        tmp_path / "file",
        tmp_path / "file" / "home",
        Path("/proc/hermes/home"),
    ):
        done = config(home, "set", "display.color", "never")
        assert done.returncode == 1
        assert "HERMES_HOME" in done.stderr
        assert "Traceback" not in done.stderr


def test_edit_installs_a_sound_draft(home: Path, tmp_path: Path) -> None:
    write = editor(
        tmp_path, "path.write_text(path.read_text() + 'display:\\n  color: never\\n')"
    )
    done = config(home, "edit", VISUAL=write, EDITOR="false")
    assert done.returncode == 0, done.stderr
    assert config(home, "get", "display.color").stdout == "never\n"
    assert "#   busy_timeout: 30.0" in (home / "config.yaml").read_text()
    assert not list(home.glob("*draft*"))


def test_edit_keeps_a_broken_draft_and_goes_on_with_it(
    home: Path, tmp_path: Path
) -> None:
    home.mkdir()
    (home / "config.yaml").write_text("# mine\n")
    done = config(
        home, "edit", EDITOR=editor(tmp_path, "path.write_text('colour: 1\\n')")
    )
    assert done.returncode == 1
    (draft,) = home.glob("config.draft-*.yaml")
    assert f"{draft.name}:1: colour: unknown key" in done.stderr
    assert str(draft) in done.stderr
    assert (home / "config.yaml").read_text() == "# mine\n"
    mend = editor(
        tmp_path,
        "assert 'colour' in path.read_text(); path.write_text('budget: {max_steps: 3}\\n')",
    )
    assert config(home, "edit", EDITOR=mend).returncode == 0
    assert (home / "config.yaml").read_text() == "budget: {max_steps: 3}\n"
    assert not list(home.glob("*draft*"))


def test_edit_discards_a_draft_when_asked(home: Path, tmp_path: Path) -> None:
    config(home, "edit", EDITOR=editor(tmp_path, "path.write_text('colour: 1\\n')"))
    done = config(
        home,
        "edit",
        "--discard",
        EDITOR=editor(tmp_path, "pathlib.Path(path.parent, 'opened').touch()"),
    )
    assert (done.returncode, done.stdout) == (0, "The draft is discarded.\n")
    assert not list(home.glob("*draft*"))
    assert not (home / "opened").exists()


def test_edit_does_not_undo_a_change_made_meanwhile(home: Path, tmp_path: Path) -> None:
    home.mkdir()
    file = home / "config.yaml"
    file.write_text("# mine\n")
    meanwhile = f"path.write_text('budget: {{max_steps: 3}}\\n'); pathlib.Path('{file}').write_text('# theirs\\n')"
    done = config(home, "edit", EDITOR=editor(tmp_path, meanwhile))
    assert done.returncode == 1
    assert "was changed while you edited" in done.stderr
    assert file.read_text() == "# theirs\n"
    assert config(home, "edit", "--continue", EDITOR="true").returncode == 0
    assert file.read_text() == "budget: {max_steps: 3}\n"


def test_edit_without_a_working_editor_says_so(home: Path) -> None:
    assert (
        "can't be started: /nonexistent"
        in config(home, "edit", EDITOR="/nonexistent").stderr
    )
    assert "ended with code 1" in config(home, "edit", EDITOR="false").stderr
