"""`hermes doctor` as a user runs it: honest, harmless, and useful when things are broken."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TypedDict

import pytest

from hermes.schema.events import SessionCreated
from hermes.schema.messages import UserMessage
from hermes.store import open_store

HERMES = Path(sys.executable).with_name("hermes")


class Finding(TypedDict):
    check: str
    status: str
    message: str
    to_do: str


def doctor(
    home: Path, *arguments: str, **extra: str
) -> subprocess.CompletedProcess[str]:
    return doctor_of([str(HERMES)], home, *arguments, **extra)


def doctor_of(
    program: list[str], home: Path, *arguments: str, **extra: str
) -> subprocess.CompletedProcess[str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("HERMES_")
    }
    return subprocess.run(
        [*program, "doctor", *arguments], env={**kept, "HERMES_HOME": str(home), **extra}, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip


def findings(home: Path, **extra: str) -> tuple[int, list[Finding]]:
    done = doctor(home, "--json", **extra)
    report = json.loads(done.stdout)
    assert report["ok"] is (done.returncode == 0)
    return done.returncode, report["findings"]


def test_a_fresh_machine_is_in_order_and_nothing_is_created(tmp_path: Path) -> None:
    done = doctor(tmp_path / "home")
    assert done.returncode == 0, done.stdout
    assert "fail" not in done.stdout
    assert not (tmp_path / "home").exists()


def test_every_finding_that_is_not_ok_says_what_to_do(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "config.yaml").write_text("stor: 1\n")
    (tmp_path / ".env").write_text("A=1\n")
    (tmp_path / ".env").chmod(0o644)
    (tmp_path / "state.db").write_text("hello")
    for part in ("", "-wal", "-shm"):  # one finding
        (tmp_path / f"state.db.damaged-20260101{part}").write_text("x")
    code, found = findings(tmp_path, HERMES_STOR="1", HERMES_BUDGET_MAX_STEPS="x")
    assert code == 1
    bad = {
        (finding["check"], finding["status"])
        for finding in found
        if finding["status"] != "ok"
    }
    assert bad >= {
        ("home", "warn"), ("config", "fail"), ("secrets", "fail"), ("environment", "warn"), ("environment", "fail"),
        ("sessions", "fail"), ("sessions", "warn"),
    }  # fmt: skip
    assert all(finding["to_do"] for finding in found if finding["status"] != "ok")
    assert sum("was kept" in finding["message"] for finding in found) == 1


def database(folder: Path, *statements: str) -> bytes:
    import apsw

    path = folder / "state.db"
    connection = apsw.Connection(str(path))
    for statement in (
        "PRAGMA application_id = 0x48524D53",
        "CREATE TABLE a (b)",
        "PRAGMA user_version = 1",
        *statements,
    ):
        connection.execute(statement)
    connection.close()
    path.chmod(0o600)
    return path.read_bytes()


def about_state(home: Path) -> Finding:
    return next(
        finding for finding in findings(home)[1] if finding["check"] == "sessions"
    )


def test_a_sound_database_is_in_order_and_one_open_to_others_is_not(
    tmp_path: Path,
) -> None:
    open_store(tmp_path / "state.db").close()
    assert about_state(tmp_path)["status"] == "ok"
    (tmp_path / "state.db").chmod(0o644)
    found = about_state(tmp_path)
    assert found["status"] == "warn"
    assert found["to_do"].startswith("Run: chmod 600")


@pytest.mark.parametrize(
    ("statement", "start", "end", "message"),
    [
        ("", 0, 0, "is empty"),
        ("", 0, 50, "is not a database"),
        ("", 1, None, "is not a database"),
        ("PRAGMA application_id = 7", 0, None, "another program"),
        ("PRAGMA user_version = 9999", 0, None, "newer Hermes"),
        ("", 0, -4096, "bytes instead of"),
    ],
)
def test_a_database_that_would_be_refused_or_rebuilt_fails(
    tmp_path: Path, statement: str, start: int, end: int | None, message: str
) -> None:
    content = database(tmp_path, statement)[start:end]
    (tmp_path / "state.db").write_bytes(content)
    found = about_state(tmp_path)
    assert found["status"] == "fail"
    assert message in found["message"]
    assert found["to_do"]
    assert (tmp_path / "state.db").read_bytes() == content


def test_a_database_whose_header_alone_is_sound_fails(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with open_store(path) as store:
        store.log.create("s", SessionCreated(cwd="/a/folder/of/mine"))
        store.log.append(
            "s", UserMessage(text="more than opening it checks " * 200_000)
        )
    path.write_bytes(
        content := path.read_bytes().replace(b"/a/folder/of/mine", b"/a/folder/of/hers")
    )
    before = set(tmp_path.iterdir())
    found = about_state(tmp_path)
    assert found["status"] == "fail"
    assert "is damaged" in found["message"]
    assert "hermes sessions check" in found["to_do"]
    assert path.read_bytes() == content
    assert set(tmp_path.iterdir()) == before


def test_a_home_that_can_not_be_used_fails(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for home in (tmp_path / "file", tmp_path / "file" / "below", tmp_path / "link"):
        code, found = findings(home)
        assert code == 1
        assert (
            next(finding for finding in found if finding["check"] == "home")["status"]
            == "fail"
        )


def test_a_broken_config_does_not_stop_it(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").mkdir()
    done = doctor(tmp_path)
    assert done.returncode == 1
    assert "config.yaml is a folder" in done.stdout
    assert "python" in done.stdout


def test_a_name_that_is_too_long_is_a_finding(tmp_path: Path) -> None:
    code, found = findings(tmp_path / ("x" * 300))
    assert code == 1
    home = next(finding for finding in found if finding["check"] == "home")
    assert "file name too long" in home["message"]
    assert "python" in {finding["check"] for finding in found}


def powerless(*command: str | Path, home: Path) -> subprocess.CompletedProcess[str]:
    """Run as somebody to whom permissions apply, even where the tests run as root."""
    drop = (
        ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
        if os.geteuid() == 0
        else []
    )
    if drop and shutil.which("setpriv") is None:
        pytest.skip("permissions do not apply to root")
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("HERMES_")
    }
    return subprocess.run(
        [*drop, *command], env={**kept, "HERMES_HOME": str(home)}, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip


@pytest.mark.parametrize("below", ["", "below", "below/it"])
def test_a_closed_folder_is_named_and_the_other_checks_run(
    tmp_path: Path, below: str
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    closed.chmod(0)
    try:
        if (
            powerless("cat", closed / "x", home=closed).stderr.find("Permission denied")
            < 0
        ):
            pytest.skip("permissions do not apply here")
        done = powerless(HERMES, "doctor", home=closed / below)
        shown = powerless(HERMES, "config", "show", home=closed / below)
        stored = powerless(
            HERMES, "config", "set", "display.color", "never", home=closed / below
        )
    finally:
        closed.chmod(0o700)
    assert done.returncode == shown.returncode == stored.returncode == 1
    assert "unexpected" not in done.stderr + shown.stderr + stored.stderr
    assert "python" in done.stdout
    assert f"chmod u+{'x' if below else 'rwx'} '{closed}'" in done.stdout
    assert f"chmod u+x '{closed}'" in shown.stderr
    assert str(closed) in stored.stderr


def test_the_sandbox_is_told_and_what_would_be_better(tmp_path: Path) -> None:
    _, found = findings(tmp_path / "home")
    (sandbox,) = [finding for finding in found if finding["check"] == "sandbox"]
    assert sandbox["message"].startswith(
        ("bubblewrap: ", "Landlock confines commands", "commands are not confined")
    )
    (without,) = [
        finding
        for finding in findings(
            tmp_path / "home", PATH="/nonexistent", HOME=str(tmp_path)
        )[1]
        if finding["check"] == "sandbox"
    ]
    if not any(
        Path(folder, "bwrap").exists()
        for folder in ("/usr/bin", "/bin", "/usr/local/bin")
    ):
        assert without["status"] == "warn"
        assert "bubblewrap is not installed." in without["message"]
        assert "Install bubblewrap" in without["to_do"]


@pytest.mark.parametrize(
    ("key", "status"), [("sk-test-0000000000000000", "ok"), ("", "warn")]
)
def test_the_model_that_answers_is_named_and_whether_it_can_be_asked(
    tmp_path: Path, key: str, status: str
) -> None:
    (tmp_path / "config.yaml").write_text("model:\n  provider: anthropic\n")
    found = json.loads(doctor(tmp_path, "--json", ANTHROPIC_API_KEY=key).stdout)[
        "findings"
    ]
    (model,) = [one for one in found if one["check"] == "model"]
    assert model["status"] == status
    assert "anthropic claude" in model["message"]
    assert key == "" or key not in model["message"]


def test_hooks_that_do_not_run_and_webhooks_without_a_key_are_named(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    for name in ("good", "new", "bad"):
        (home / "hooks" / name).mkdir(parents=True)
        (home / "hooks" / name / "handler.py").write_text(
            "def handle(event_type, context): pass\n"
        )
        (home / "hooks" / name / "HOOK.yaml").write_text(
            f"name: {name}\nevents: [agent:end]\n"
        )
    (home / "hooks" / "bad" / "HOOK.yaml").write_text("name: bad\n")
    (home / "config.yaml").write_text(
        "webhooks:\n  mine: {url: 'https://example.org/in', secret: MINE_SECRET}\n"
        "  theirs: {url: 'https://example.org/in', secret: THEIR_SECRET}\n"
    )
    subprocess.run(
        [HERMES, "hooks", "trust", "good"],
        env={**os.environ, "HERMES_HOME": str(home)},
        check=True,
    )
    (home / "hooks" / "good" / "more.py").write_text("x = 1\n")
    code, found = findings(home, MINE_SECRET="signed")  # noqa: S106 - of this test
    assert code == 1
    told = {(one["check"], one["status"], one["message"].split()[0]) for one in found}
    assert told >= {
        ("hooks", "warn", "good"), ("hooks", "ok", "new"), ("hooks", "warn", "bad"),
        ("webhooks", "ok", "mine"), ("webhooks", "fail", "theirs"),
    }  # fmt: skip
    assert all(finding["to_do"] for finding in found if finding["status"] != "ok")


def test_git_is_told_or_missed(tmp_path: Path) -> None:
    def told(path: str) -> tuple[str, str, str]:
        found = next(
            one
            for one in findings(tmp_path / "home", PATH=path)[1]
            if one["check"] == "git"
        )
        return found["status"], found["message"], found["to_do"]

    programs = tmp_path / "programs"
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    programs.mkdir()
    for folder in (programs, tmp_path / "venv" / "bin"):
        (folder / "git").touch(mode=0o755)
    (tmp_path / "venv" / "pyvenv.cfg").touch()
    assert told(f"{programs}:/nonexistent") == ("ok", f"{programs}/git", "")
    status, message, to_do = told("/nonexistent")
    assert (status, "can't be undone" in message, "Install git" in to_do) == (
        "warn",
        True,
        True,
    )
    assert (
        f"{tmp_path}/venv/bin/git is not used"
        in told(str(tmp_path / "venv" / "bin"))[1]
    )


def test_a_relative_python_path_is_warned_of_where_python_uses_it(
    tmp_path: Path,
) -> None:
    for value, warnings in ((".", 1), (f"{tmp_path}:", 1), (str(tmp_path), 0)):
        for program, expected in (
            ([sys.executable, "-m", "hermes"], warnings),
            ([str(HERMES)], 0),
        ):
            done = doctor_of(program, tmp_path / "home", "--json", PYTHONPATH=value)
            found = json.loads(done.stdout)["findings"]
            told = [one for one in found if "PYTHONPATH" in one["message"]]
            assert [one["status"] for one in told] == ["warn"] * expected
