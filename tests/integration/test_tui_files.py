"""What the chat keeps and reads on disk: the input's history, drafts, pictures."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from hermes.settings.home import Home
from hermes.surfaces.tui.drafts import Drafts
from hermes.surfaces.tui.file_list import FileList
from hermes.surfaces.tui.input_history import InputHistory
from hermes.surfaces.tui.pastes import Pastes

PNG = b"\x89PNG\r\n\x1a\n" + bytes(16)


def test_history_is_private_and_there_in_the_next_chat(tmp_path: Path) -> None:
    path = tmp_path / "history"
    history = InputHistory(path)
    for text in ("first", "two\nlines", "two\nlines", " not this"):
        history.append_string(text)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_bytes(path.read_bytes() + b'"cut sho')
    assert list(InputHistory(path).load_history_strings()) == ["two\nlines", "first"]


def test_history_that_can_not_be_written_or_read_stops_nothing_and_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    InputHistory(tmp_path / "missing" / "history").append_string("x")
    assert "cannot write the input history" in caplog.text
    (tmp_path / "history").write_text('"first"\n"cut o\n"last"\n')
    assert list(InputHistory(tmp_path / "history").load_history_strings()) == [
        "last",
        "first",
    ]
    assert "skipping an unreadable line" in caplog.text
    caplog.clear()
    assert list(InputHistory(tmp_path / "none").load_history_strings()) == []
    assert caplog.text == ""


def test_a_draft_of_a_dead_process_is_found_in_its_folder_only(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    code = (
        "import sys; from pathlib import Path; from hermes.settings.home import Home\n"
    )
    code += "from hermes.surfaces.tui.drafts import Drafts\n"
    code += "Drafts(Home(Path(sys.argv[1])), Path('/somewhere')).save('half a thought')"
    subprocess.run([sys.executable, "-c", code, str(home.root)], check=True)
    assert Drafts(home, Path("/elsewhere")).recover() == ""
    mine = Drafts(home, Path("/somewhere"))
    assert mine.recover() == "half a thought"
    assert [path.name for path in (home.root / "drafts").iterdir()] == [
        f"{os.getpid()}.json"
    ]
    mine.save("")
    assert list((home.root / "drafts").iterdir()) == []


def test_a_draft_of_a_living_process_is_its_own(tmp_path: Path) -> None:
    home = Home(tmp_path)
    (tmp_path / "drafts").mkdir()
    (tmp_path / "drafts" / f"{os.getppid()}.json").write_text(
        '{"text": "theirs", "folder": "/somewhere"}'
    )
    assert Drafts(home, Path("/somewhere")).recover() == ""


def test_completion_does_not_offer_what_git_ignores(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("*.log\nbuild/\n")
    (tmp_path / "build").mkdir()
    for name in ("app.py", "app.log", "build/app.py"):
        (tmp_path / name).write_text("")
    assert FileList(tmp_path).find("app") == ["app.py"]


def test_the_path_of_a_picture_becomes_the_picture(tmp_path: Path) -> None:
    picture = tmp_path / "shot one.png"
    picture.write_bytes(PNG)
    for written in (
        f"'{picture}'",
        str(picture).replace(" ", "\\ "),
        f"file://{picture}".replace(" ", "%20"),
    ):
        pastes = Pastes()
        mark = pastes.insert(written)
        assert mark == "[picture shot one.png]"
        assert [image.source for image in pastes.pictures(f"look: {mark}")] == [
            str(picture)
        ]
        assert pastes.pictures("look") == ()
