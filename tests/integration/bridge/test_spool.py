"""The spool on a real disk: order, bounds, damage, and what a process leaves behind."""

import os
from pathlib import Path

import pytest

from hermes.bridge.spool import (
    MAX_SEGMENT_BYTES,
    Spool,
    SpoolTaken,
    left_behind,
    thin_out,
)

_HEADER = 16


def _all(spool: Spool) -> list[tuple[int, bytes]]:
    found: list[tuple[int, bytes]] = []
    while records := spool.read(10_000):
        found += records
    return found


def _fresh(folder: Path) -> Spool:
    """Opened again, as by a process that comes after one that was killed."""
    return Spool(folder)


def _kill(spool: Spool) -> None:
    """Lets go of the lock without tidying up."""
    os.close(spool._file_lock.fd)
    os.close(spool._handle)
    spool._file_lock.fd = spool._handle = -1


def test_records_come_back_in_order_until_they_are_acknowledged(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "a")
    for number in range(50):
        spool.add(b"%d" % number)
    assert _all(spool) == [(number + 1, b"%d" % number) for number in range(50)]
    assert spool.read(100) == []
    spool.ack(20)
    spool.rewind()
    assert [number for number, _ in _all(spool)] == list(range(21, 51))
    spool.ack(50)
    assert spool.waiting == 0
    spool.close()
    spool.close()
    assert not (tmp_path / "a").exists()


def test_segments_that_were_acknowledged_are_removed_and_large_records_pass(
    tmp_path: Path,
) -> None:
    spool = Spool(tmp_path / "a")
    large = b"x" * (MAX_SEGMENT_BYTES // 2)
    for _ in range(7):
        spool.add(large)
    assert len(list((tmp_path / "a").glob("*.log"))) > 2
    assert [len(data) for _, data in _all(spool)] == [len(large)] * 7
    spool.ack(6)
    assert len(list((tmp_path / "a").glob("*.log"))) == 1
    assert spool.size < MAX_SEGMENT_BYTES + len(large)
    spool.add(b"next")
    assert _all(spool) == [(8, b"next")]


def test_what_was_all_acknowledged_takes_no_room(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "a")
    for _ in range(20):
        for _ in range(10):
            spool.add(b"y" * 10_000)
        spool.ack(_all(spool)[-1][0])
    assert spool.size < 200_000
    spool.add(b"z")
    assert [data for _, data in _all(spool)] == [b"z"]


@pytest.mark.parametrize("bound", [{"max_records": 10}, {"max_bytes": 11_000}])
def test_a_full_spool_counts_exactly_and_says_what_is_missing(
    tmp_path: Path, bound: dict[str, int]
) -> None:
    spool = Spool(tmp_path / "a", gap=lambda missing: b"gap %d" % missing, **bound)
    for _ in range(30):
        spool.add(b"v" * 1000)
    kept = spool.last
    assert 8 <= kept <= 10
    assert spool.dropped == 30 - kept
    spool.ack(kept)
    _all(spool)
    spool.add(b"after")
    spool.add(b"more")
    assert [data for _, data in _all(spool)] == [
        b"gap %d" % (30 - kept),
        b"after",
        b"more",
    ]
    assert spool.dropped == 30 - kept


def test_a_torn_tail_is_cut_and_counted(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "a")
    for number in range(10):
        spool.add(b"record %d" % number)
    (path,) = (tmp_path / "a").glob("*.log")
    _kill(spool)
    os.truncate(path, path.stat().st_size - 3)
    again = _fresh(tmp_path / "a")
    assert again.torn == 1
    assert [number for number, _ in _all(again)] == list(range(1, 10))
    again.add(b"new")
    assert _all(again) == [(10, b"new")]


def test_a_damaged_byte_is_never_sent(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "a")
    for number in range(10):
        spool.add(b"record %d" % number)
    (path,) = (tmp_path / "a").glob("*.log")
    _kill(spool)
    content = bytearray(path.read_bytes())
    content[5 * (_HEADER + 8) + _HEADER + 2] ^= 1
    path.write_bytes(content)
    again = _fresh(tmp_path / "a")
    assert again.torn >= 1
    assert [data for _, data in _all(again)] == [
        b"record %d" % number for number in range(5)
    ]


def test_another_process_takes_over_what_is_left_and_nothing_that_is_in_use(
    tmp_path: Path,
) -> None:
    spool = Spool(tmp_path / "a")
    for number in range(10):
        spool.add(b"%d" % number)
    spool.ack(4)
    assert list(left_behind(tmp_path)) == [tmp_path / "a"]
    with pytest.raises(SpoolTaken):
        Spool(tmp_path / "a")
    _kill(spool)
    heir = Spool(tmp_path / "a")
    assert [number for number, _ in _all(heir)] == [5, 6, 7, 8, 9, 10]


def test_a_record_added_in_the_middle_of_adding_one_comes_after_it(
    tmp_path: Path,
) -> None:
    nested: list[Spool] = []

    class Reentrant(bytes):
        # pyrefly: ignore[missing-override-decorator]
        def __len__(self) -> int:
            if nested:
                nested.pop().add(b"inner")
            return super().__len__()

    spool = Spool(tmp_path / "a")
    nested.append(spool)
    spool.add(Reentrant(b"outer"))
    assert _all(spool) == [(1, b"outer"), (2, b"inner")]


def test_a_disk_that_is_full_costs_the_record_and_nothing_else(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "a", gap=lambda missing: b"gap %d" % missing)
    spool.add(b"one")
    good, spool._handle = spool._handle, os.open("/dev/full", os.O_RDWR)
    spool.add(b"two")
    os.close(spool._handle)
    spool._handle = good
    spool.add(b"three")
    assert spool.dropped == 1
    assert [data for _, data in _all(spool)] == [b"one", b"gap 1", b"three"]


def test_a_mark_that_is_damaged_costs_nothing_but_sending_again(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "a")
    for number in range(5):
        spool.add(b"%d" % number)
    spool.ack(2)
    _kill(spool)
    (tmp_path / "a" / "lock").write_bytes(b"\xff" * 12)
    again = _fresh(tmp_path / "a")
    assert [number for number, _ in _all(again)] == [1, 2, 3, 4, 5]
    assert again.torn == 0


def test_what_is_missing_in_the_middle_is_counted_exactly(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "a")
    record = b"x" * (MAX_SEGMENT_BYTES // 4 - 100)
    for _ in range(12):
        spool.add(record)
    first, *_ = sorted((tmp_path / "a").glob("*.log"))
    _kill(spool)
    content = bytearray(first.read_bytes())
    content[2 * (_HEADER + len(record)) + _HEADER] ^= (
        1  # the third of the records in there
    )
    first.write_bytes(content)
    again = _fresh(tmp_path / "a")
    found = [number for number, _ in _all(again)]
    assert found[:2] == [1, 2]
    assert again.torn == 12 - len(found)


def test_other_files_in_its_folder_are_left_alone(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "a")
    spool.add(b"one")
    _kill(spool)
    (tmp_path / "a" / "notes.log").write_text("somebody put this here")
    assert _all(_fresh(tmp_path / "a")) == [(1, b"one")]
    assert (tmp_path / "a" / "notes.log").exists()


def test_room_is_made_also_when_a_full_disk_takes_no_mark(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "a")
    for _ in range(7):
        spool.add(b"x" * (MAX_SEGMENT_BYTES // 2))
    good, spool._file_lock.fd = spool._file_lock.fd, os.open("/dev/full", os.O_RDWR)
    spool.ack(6)
    os.close(spool._file_lock.fd)
    spool._file_lock.fd = good
    assert len(list((tmp_path / "a").glob("*.log"))) == 1
    assert spool.waiting == 1


def test_of_too_many_that_were_left_behind_the_oldest_go_and_are_counted(
    tmp_path: Path,
) -> None:
    mine = Spool(tmp_path / "0")
    mine.add(b"in use")
    for number in range(1, 6):
        spool = Spool(tmp_path / str(number))
        spool.add(b"one")
        spool.add(b"two")
        _kill(spool)
    assert thin_out(tmp_path, 10) == 0
    assert thin_out(tmp_path, 3) == 4
    assert [folder.name for folder in left_behind(tmp_path)] == ["0", "3", "4", "5"]
    mine.ack(1)
    mine.close()
