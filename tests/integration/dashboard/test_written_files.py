"""Files that a session wrote: handed out by the turn that wrote them, and nothing else is."""

from pathlib import Path
from urllib.parse import quote

import httpx2
import pytest
from tests.integration.dashboard.harness import Harness

from hermes.app.undo import shadows_of
from hermes.schema.events import SessionCreated, TurnEnded, TurnStarted
from hermes.schema.messages import UserMessage

PNG = b"\x89PNG\r\n\x1a\n" + bytes(24)


class Writer:
    """A session whose turns write files, as tools do."""

    def __init__(self, harness: Harness, work: Path) -> None:
        self._harness = harness
        self._shadow = shadows_of(harness.app).at(work)
        self.work = work
        created = SessionCreated(surface="dashboard", cwd=str(work))
        self.session = harness.app.begin(created).session

    def turn(self, name: str, files: dict[str, bytes]) -> None:
        """A turn that writes these files."""
        app = self._harness.app
        said = app.record(self.session, UserMessage(text="write"))
        app.record(self.session, TurnStarted(inputs=(said[-1].seq,)), turn=name)
        paths = [self.work / one for one in files]
        self._shadow.keep_files(
            self.session, name, [bytes(path) for path in paths], late=False
        )
        for path, content in zip(paths, files.values(), strict=True):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        self._shadow.end(name)
        app.record(self.session, TurnEnded(reason="done"), turn=name)

    async def ask(self, path: str, turn: str, kind: str = "") -> httpx2.Response:
        address = f"/api/sessions/{self.session}/written{kind}?path={quote(path, safe='')}&turn={turn}"
        return await self._harness.ask("GET", address, scope="observe")


@pytest.fixture
def writer(harness: Harness, tmp_path: Path) -> Writer:
    work = tmp_path / "work"
    work.mkdir()
    return Writer(harness, work)


async def test_what_a_turn_wrote_can_be_read_and_downloaded(writer: Writer) -> None:
    writer.turn("t1", {"a/b ü.html": b"<h1>hi</h1>", "p.png": PNG, "data.bin": b"\0x"})
    shown = (await writer.ask("a/b ü.html", "t1")).json()
    assert shown == {
        "path": "a/b ü.html",
        "bytes": 11,
        "kind": "text",
        "text": "<h1>hi</h1>",
        "is_cut": False,
    }
    assert (await writer.ask("p.png", "t1")).json()["kind"] == "picture"
    assert (await writer.ask("data.bin", "t1")).json()["kind"] == "other"
    saved = await writer.ask("a/b ü.html", "t1", "/download")
    assert saved.content == b"<h1>hi</h1>"
    # Never as a page of our own origin.
    assert saved.headers["content-type"] == "application/octet-stream"
    assert saved.headers["content-disposition"].startswith("attachment")
    assert saved.headers["x-content-type-options"] == "nosniff"
    picture = await writer.ask("p.png", "t1", "/download")
    assert picture.headers["content-type"] == "image/png"


async def test_nothing_else_is_handed_out(writer: Writer, tmp_path: Path) -> None:
    (tmp_path / "outside.txt").write_text("private")
    (writer.work / "other.txt").write_text("nobody wrote this")
    writer.turn("t1", {"a.txt": b"a", ".env": b"KEY=secret"})
    writer.turn("t2", {"b.txt": b"b", "link.txt": b"x", "d/f.txt": b"x"})
    writer.turn("t3", {"c.txt": b"c"})
    (writer.work / "c.txt").unlink()
    (writer.work / "c.txt").symlink_to("other.txt")
    (writer.work / "e").mkdir()
    (writer.work / "e" / "f.txt").write_text("nobody wrote this")
    (writer.work / "d" / "f.txt").unlink()
    (writer.work / "d").rmdir()
    (writer.work / "d").symlink_to("e")
    (writer.work / "link.txt").unlink()
    (writer.work / "link.txt").symlink_to(tmp_path / "outside.txt")
    refused = [
        ("other.txt", "t1"),
        ("b.txt", "t1"),  # of another turn
        ("../outside.txt", "t1"),
        ("a/../../outside.txt", "t1"),
        (str(tmp_path / "outside.txt"), "t1"),
        ("/etc/passwd", "t1"),
        ("a.txt\0", "t1"),
        ("a.txt", "nosuch"),
        ("a.txt", "../t1"),
        ("link.txt", "t2"),  # it leads outside now
        ("c.txt", "t3"),  # it leads to a file that no turn wrote
        ("d/f.txt", "t2"),  # so does its folder
        (".", "t1"),
    ]
    for path, turn in refused:
        for kind in ("", "/download"):
            answer = await writer.ask(path, turn, kind)
            assert answer.status_code == 404, (path, turn, kind, answer.text)
    assert (await writer.ask(".env", "t1")).status_code == 403
    (writer.work / "a.txt").unlink()
    gone = await writer.ask("a.txt", "t1")
    assert (gone.status_code, "no longer exists" in gone.text) == (404, True)


async def test_a_turn_of_another_session_opens_nothing(
    harness: Harness, writer: Writer
) -> None:
    other = Writer(harness, writer.work)
    other.turn("theirs", {"theirs.txt": b"x"})
    writer.turn("t1", {"a.txt": b"a"})
    assert (await writer.ask("theirs.txt", "theirs")).status_code == 404
    assert (await other.ask("theirs.txt", "theirs")).status_code == 200


async def test_the_files_of_a_session_are_listed_with_their_turns(
    writer: Writer, harness: Harness
) -> None:
    writer.turn("t1", {"a.txt": b"a", "d/b.txt": b"b"})
    writer.turn("t2", {"a.txt": b"again"})
    (writer.work / "d" / "b.txt").unlink()
    address = f"/api/sessions/{writer.session}/changed"
    listed = (await harness.ask("GET", address, scope="observe")).json()["files"]
    assert [
        (one["path"], one["is_there"], [turn["turn"] for turn in one["turns"]])
        for one in listed
    ] == [("a.txt", True, ["t2", "t1"]), ("d/b.txt", False, ["t1"])]
    assert listed[0]["turns"][0]["text"] == "write"


async def test_a_session_without_changes_has_no_files(
    writer: Writer, harness: Harness
) -> None:
    address = f"/api/sessions/{writer.session}/changed"
    listed = await harness.ask("GET", address, scope="observe")
    assert listed.json() == {"files": []}
