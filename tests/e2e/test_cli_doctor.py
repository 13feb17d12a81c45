"""`hermes doctor` as a user runs it: honest, harmless, and useful when things are broken."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TypedDict

import pytest

HERMES = Path(sys.executable).with_name("hermes")


class Finding(TypedDict):
    check: str
    status: str
    message: str
    to_do: str


def doctor(home: Path, *arguments: str, **extra: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HERMES_")}
    return subprocess.run(
        [HERMES, "doctor", *arguments], env={**kept, "HERMES_HOME": str(home), **extra}, capture_output=True, text=True,
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
    (tmp_path / "state.db.damaged-20260101").write_text("x")
    code, found = findings(tmp_path, HERMES_STOR="1", HERMES_BUDGET_MAX_STEPS="x")
    assert code == 1
    bad = {(finding["check"], finding["status"]) for finding in found if finding["status"] != "ok"}
    assert bad >= {
        ("home", "warn"), ("config", "fail"), ("secrets", "fail"), ("environment", "warn"), ("environment", "fail"),
        ("sessions", "fail"), ("sessions", "warn"),
    }  # fmt: skip
    assert all(finding["to_do"] for finding in found if finding["status"] != "ok")


@pytest.mark.parametrize("content", [b"", b"\x00" * 100, b"SQLite format 3\x00", b"SQLite format 3\x00" + b"\x00" * 84])
def test_the_header_of_the_database_is_looked_at(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "state.db").write_bytes(content)
    _, found = findings(tmp_path)
    status = next(finding["status"] for finding in found if finding["check"] == "sessions")
    assert status == ("ok" if len(content) in {0, 100} and content[:1] != b"\x00" else "fail")
    assert (tmp_path / "state.db").read_bytes() == content


def test_a_home_that_can_not_be_used_fails(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for home in (tmp_path / "file", tmp_path / "file" / "below", tmp_path / "link"):
        code, found = findings(home)
        assert code == 1
        assert next(finding for finding in found if finding["check"] == "home")["status"] == "fail"


def test_a_broken_config_does_not_stop_it(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").mkdir()
    done = doctor(tmp_path)
    assert done.returncode == 1
    assert "config.yaml is a folder" in done.stdout
    assert "python" in done.stdout
