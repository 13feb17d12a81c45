"""The installed `hermes`: version, help, errors and exit codes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hermes.commands.table import TOPICS

HERMES = Path(sys.executable).with_name("hermes")
FORBIDDEN_AT_VERSION = {
    "signal",
    "enum",
    "argparse",
    "asyncio",
    "msgspec",
    "re",
    "typing",
    "pathlib",
    "apsw",
    "ruamel",
    "yaml12",
    "json",
}
FORBIDDEN_IN_COMMANDS = {
    "asyncio",
    "rich",
    "httpx2",
    "dataclasses",
    "prompt_toolkit",
    "ruamel.yaml",
}


def environ(home: Path, **extra: str) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("HERMES_")
    }
    return {**kept, "HERMES_HOME": str(home), **extra}


def hermes(
    home: Path, *arguments: str, **extra: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [HERMES, *arguments], env=environ(home, **extra), capture_output=True, text=True, timeout=60, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


def modules_after(arguments: list[str], home: Path) -> set[str]:
    code = f"""
import sys
sys.path[:0] = {sys.path!r}
from hermes.surfaces.cli import main
code = main(sys.argv[1:])
print(code, *sys.modules, file=sys.stderr)
"""
    command = [sys.executable, "-S", "-c", code, *arguments]
    done = subprocess.run(
        command,
        env=environ(home),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    status, *modules = done.stderr.split()
    assert status == "0"
    return set(modules)


def test_the_first_garbage_collection_sets_aside_what_the_start_loaded(
    tmp_path: Path,
) -> None:
    code = f"""
import gc, os, sys
sys.path[:0] = {sys.path!r}
from hermes.surfaces.cli import program
leave = os._exit
def collect(code):
    before = gc.get_freeze_count() > 1000, gc.get_threshold()[0]
    gc.collect()
    print(*before, gc.get_freeze_count() > 1000, gc.get_threshold()[0], gc.callbacks, flush=True)
    leave(code)
os._exit = collect
sys.argv = ["hermes", "--version"]
program()
"""
    out = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env=environ(tmp_path), capture_output=True, text=True, timeout=60, check=True,
    ).stdout  # fmt: skip
    assert out.splitlines()[1] == "False 120000 True 10000 []"


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_the_version_loads_almost_nothing(tmp_path: Path, option: str) -> None:
    assert hermes(tmp_path, option).stdout.startswith("hermes 0.")
    assert not modules_after([option], tmp_path) & FORBIDDEN_AT_VERSION


@pytest.mark.parametrize(
    "arguments", [["--help"], ["config", "show"], ["config", "path"]]
)
def test_small_commands_load_no_heavy_library(
    tmp_path: Path, arguments: list[str]
) -> None:
    assert not modules_after(arguments, tmp_path) & FORBIDDEN_IN_COMMANDS


def test_the_version_costs_little_more_than_python_itself(tmp_path: Path) -> None:
    def cost(command: list[str | Path]) -> float:
        costs: list[float] = []
        for _ in range(7):
            before = os.times()
            subprocess.run(
                command,
                env=environ(tmp_path),
                capture_output=True,
                timeout=60,
                check=True,
            )
            after = os.times()
            costs.append(
                after.children_user
                + after.children_system
                - before.children_user
                - before.children_system
            )
        return min(costs)

    # os.times counts in hundredths of a second, so the margin is a few of those.
    assert (
        cost([HERMES, "--version"]) <= cost([sys.executable, "-c", "import re"]) + 0.03
    )


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["help"]])
def test_the_overview_is_printed(tmp_path: Path, arguments: list[str]) -> None:
    done = hermes(tmp_path, *arguments)
    assert done.returncode == 0
    assert "Usage: hermes" in done.stdout
    assert "config" in done.stdout
    assert not list(tmp_path.iterdir())


def test_help_of_a_command_has_two_spellings(tmp_path: Path) -> None:
    assert (
        hermes(tmp_path, "help", "doctor").stdout
        == hermes(tmp_path, "doctor", "--help").stdout
        != ""
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["confg"],
            "hermes: There is no command 'confg'.\nDid you mean: hermes config? To ask it as a question: hermes -z confg\n",
        ),
        (
            ["--verson"],
            "hermes: There is no option '--verson'.\nDid you mean: hermes --version?\n",
        ),
        (
            ["-p", "hello"],
            "hermes: There is no option '-p'.\nDid you mean: hermes --prompt?\n",
        ),
        (
            ["config"],
            "hermes: the following arguments are required: ACTION\nSee: hermes config --help\n",
        ),
        (  # the text is optional: it may be piped
            ["send"],
            "hermes: the following arguments are required: TARGET\nSee: hermes send --help\n",
        ),
    ],
)
def test_wrong_usage_exits_2_with_a_suggestion(
    tmp_path: Path, arguments: list[str], message: str
) -> None:
    done = hermes(tmp_path, *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", message)


def test_an_argument_can_not_drive_the_terminal(tmp_path: Path) -> None:
    assert "\x1b" not in hermes(tmp_path, "--\x1b[31mred").stderr
    assert "\x1b" not in hermes(tmp_path, "config", "get", "\x1b[31mred").stderr


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["config", "show"]])
def test_a_reader_that_went_away_is_no_error(
    tmp_path: Path, arguments: list[str]
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [HERMES, *arguments],
        env=environ(tmp_path),
        stdout=writer,
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("arguments", [["--version"], ["config", "show"]])
def test_output_that_can_not_be_written_fails(
    tmp_path: Path, arguments: list[str]
) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [HERMES, *arguments], env=environ(tmp_path), stdout=full, stderr=subprocess.PIPE, text=True, timeout=60,
            check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert (
        done.stderr
        == "hermes: The output can't be written (no space left on device).\n"
    )


def with_closed(tmp_path: Path, command: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["sh", "-c", f'exec "{HERMES}" {command}'],
        env=environ(tmp_path),
        capture_output=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("command", ["config show", "--version", "sessions list"])
def test_output_to_a_closed_stdout_is_not_lost_without_a_word(
    tmp_path: Path, command: str
) -> None:
    done = with_closed(tmp_path, f"{command} >&-")
    assert (done.returncode, done.stderr) == (
        1,
        b"hermes: The output can't be written (it is closed).\n",
    )


@pytest.mark.parametrize(
    "command", ["config set X_API_KEY", "sessions import -", "config edit"]
)
def test_a_closed_stdin_is_an_empty_one(tmp_path: Path, command: str) -> None:
    closed, empty = (
        with_closed(tmp_path, f"{command} <&-"),
        with_closed(tmp_path, f"{command} </dev/null"),
    )
    assert b"unexpected" not in closed.stderr
    assert (closed.returncode, closed.stderr) == (empty.returncode, empty.stderr)


def test_colour_is_for_those_who_want_it(tmp_path: Path) -> None:
    assert "\x1b" not in hermes(tmp_path, "--help").stdout
    assert "\x1b[1m" in hermes(tmp_path, "--help", HERMES_DISPLAY_COLOR="always").stdout
    assert "\x1b" in hermes(tmp_path, "confg", HERMES_DISPLAY_COLOR="always").stderr
    (tmp_path / "config.yaml").write_text("display: {color: always}\n")
    assert "\x1b[1m" in hermes(tmp_path, "--help").stdout


@pytest.mark.parametrize(
    ("before", "extra"), [([], {}), (["--debug"], {}), ([], {"HERMES_DEBUG": "1"})]
)
def test_an_unexpected_error_is_short_unless_asked(
    tmp_path: Path, before: list[str], extra: dict[str, str]
) -> None:
    broken = tmp_path / "broken"
    (broken / "ruamel").mkdir(parents=True)
    (broken / "ruamel" / "__init__.py").write_text("raise ZeroDivisionError('boom')\n")
    (tmp_path / "config.yaml").write_text("nope: 1\n")
    command = [sys.executable, "-m", "hermes", *before, "config", "check"]
    done = subprocess.run(
        command, env=environ(tmp_path, PYTHONPATH=str(broken), **extra),
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert (
        "hermes: Something unexpected went wrong: ZeroDivisionError: boom"
        in done.stderr
    )
    assert ("Traceback" in done.stderr) is bool(before or extra)


@pytest.mark.parametrize(
    "arguments",
    [["-z", "hi"], ["hi"], ["dashboard", "--no-open"], ["policy", "check", "ls"], ["cron", "add", "at 9", "hi"],
     ["mcp", "serve-tools"], ["--cwd", "relative", "hello"]],
)  # fmt: skip
def test_a_deleted_folder_is_said_with_what_to_do(
    tmp_path: Path, arguments: list[str]
) -> None:
    done = in_a_deleted_folder(tmp_path, *arguments)
    assert (done.returncode, done.stdout) == (1, "")
    said = [
        line for line in done.stderr.splitlines() if "getcwd()" not in line
    ]  # the shell's own
    assert said == [
        "hermes: The folder you are in no longer exists.", "Change to one that does (cd ~) and run the command again."
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["doctor"], 0),
        (["sessions", "list"], 0),
        (["gateway", "run"], 2),
        (["--cwd", "/", "--continue", "hi"], 1),
    ],
)
def test_what_needs_no_folder_works_in_a_deleted_one(
    tmp_path: Path, arguments: list[str], code: int
) -> None:
    done = in_a_deleted_folder(tmp_path, *arguments)
    assert done.returncode == code, done.stderr
    assert "no longer exists" not in done.stderr
    assert "bug in Hermes" not in done.stderr


@pytest.mark.parametrize(
    "options", [["-z", "hi", "--cwd"], ["skills", "check"], ["backup"]]
)
def test_a_name_that_no_file_can_have_is_no_bug(
    tmp_path: Path, options: list[str]
) -> None:
    done = hermes(tmp_path, *options, "a" * 5000)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "hermes: A file can't have a name this long.\n"


def in_a_deleted_folder(
    tmp_path: Path, *arguments: str
) -> subprocess.CompletedProcess[str]:
    gone = tmp_path / "gone"
    gone.mkdir()
    command = [
        "/bin/sh",
        "-c",
        'rmdir "$0" && exec "$@"',
        str(gone),
        str(HERMES),
        *arguments,
    ]
    return subprocess.run(
        command, cwd=gone, env=environ(tmp_path / "home"), capture_output=True, text=True, timeout=60, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


def test_a_command_loads_only_its_own_module(tmp_path: Path) -> None:
    for arguments, module in (
        (["config", "path"], "hermes.commands.config"),
        (["sessions", "list"], "hermes.commands.sessions"),
        (["policy", "show"], "hermes.commands.policy"),
    ):
        loaded = modules_after(arguments, tmp_path)
        topics = {one for topic in TOPICS for one in topic.modules}
        assert loaded & topics == {module}


def test_a_mistake_in_ones_own_texts_is_said_once(tmp_path: Path) -> None:
    (tmp_path / "locales").mkdir()
    (tmp_path / "locales" / "en.po").write_text('msgid "broken\n', "utf-8")
    done = hermes(tmp_path, "sessions", "list", LC_ALL="C")
    assert done.returncode == 0
    said = done.stderr.splitlines()
    assert sum("en.po: line 1" in one for one in said) == 1
    assert "Your own texts" in done.stderr


def test_the_doctor_names_every_file_of_ones_own_texts_that_is_broken(
    tmp_path: Path,
) -> None:
    (tmp_path / "locales").mkdir()
    for name in ("de.po", "en.po"):
        (tmp_path / "locales" / name).write_text('msgid "broken\n', "utf-8")
    done = hermes(tmp_path, "doctor", LC_ALL="C")
    assert done.stdout.count("de.po: line 1") == 1
    assert done.stdout.count("en.po: line 1") == 1
    assert "Your own texts" not in done.stderr
