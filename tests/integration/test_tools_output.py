"""Long output: bounded in memory, kept in files, and those bounded too."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.tools.process.long_output import MAX_SHOWN_BYTES, OutputFolder, is_binary


def test_short_output_needs_no_file(tmp_path: Path) -> None:
    capture = OutputFolder(tmp_path / "out").capture("x")
    capture.feed(b"a" * (MAX_SHOWN_BYTES - 1))
    capture.feed(b"b")
    assert capture.text() == "a" * (MAX_SHOWN_BYTES - 1) + "b"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("piece", [1, 7, 4096, 65536, 10**6])
def test_pieces_of_any_size_give_the_same_text(tmp_path: Path, piece: int) -> None:
    data = "".join(f"zeile {number} é\n" for number in range(4000)).encode()
    capture = OutputFolder(tmp_path).capture("x")
    for start in range(0, len(data), piece):
        capture.feed(data[start : start + piece])
    text = capture.text()
    (kept,) = tmp_path.iterdir()
    assert kept.read_bytes() == data
    head, note, tail = text.partition(f"; all of it is in {kept}]")
    assert head.startswith("zeile 0 é\nzeile 1 é\n")
    assert note
    assert tail.endswith("zeile 3999 é\n")
    assert "\ufffd" not in text
    lines, left_out, whole = (
        int(word.replace(",", ""))
        for word in head.rpartition("[")[2].split()
        if word[0].isdigit()
    )
    begin, end = head.rpartition("\n[")[0], tail.removeprefix("\n")
    shown = len(begin.encode()) + len(end.encode())
    assert (left_out, whole) == (len(data) - shown, len(data))
    assert lines == 4000 - len(begin.splitlines()) - len(end.splitlines())


def test_old_files_make_place(tmp_path: Path) -> None:
    folder = OutputFolder(tmp_path)
    for number in range(60):
        (tmp_path / f"{number}.txt").touch()
        os.utime(tmp_path / f"{number}.txt", (2_000_000_000 + number,) * 2)
    (tmp_path / "ancient.txt").touch()
    os.utime(tmp_path / "ancient.txt", (1, 1))
    capture = folder.capture("new")
    capture.feed(b"x" * (MAX_SHOWN_BYTES + 1))
    capture.close()
    names = {path.name for path in tmp_path.iterdir()}
    assert len(names) == 50
    assert "59.txt" in names
    assert not names & {"ancient.txt", "0.txt", "10.txt"}


@given(st.binary(max_size=200))
def test_text_is_never_taken_for_binary(data: bytes) -> None:
    text = data.decode("latin-1").replace("\0", "").encode()
    assert not is_binary(text)
