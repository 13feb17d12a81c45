"""Replacing a file in one step."""

from pathlib import Path

from hermes.settings.edit import set_secret


def test_what_a_killed_writer_left_is_taken_away(tmp_path: Path) -> None:
    (tmp_path / "..env.new").write_text("OLD_TOKEN=1\n")
    set_secret(tmp_path / ".env", "A_TOKEN", "2")
    assert not (tmp_path / "..env.new").exists()
    assert (tmp_path / ".env").read_text() == "A_TOKEN=2\n"
