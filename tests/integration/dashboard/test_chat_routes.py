"""What the chat needs of the server: pictures that the log names, skills by their command, who asks for whom."""

import base64
from pathlib import Path

import pytest
from tests.integration.dashboard.harness import Harness, opened

from hermes.app.typed_part import typed_part
from hermes.schema.events import ApprovalRequested, SessionCreated, TurnStarted
from hermes.schema.messages import Image, ToolFinished, UserMessage
from hermes.settings import Secrets, Settings
from hermes.settings.models import ModelSettings

HEIC = Path(__file__).parents[2] / "data" / "blue_and_red.heic"
DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def _shown(harness: Harness, *sources: Path) -> tuple[str, int]:
    """A session with a message of pictures; its seq."""
    session = harness.app.begin(SessionCreated(surface="dashboard")).session
    images = tuple(
        Image(source=str(source), media_type="image/png") for source in sources
    )
    (row,) = harness.app.record(session, UserMessage(text="look", images=images))
    return session, row.seq


async def test_a_picture_of_a_message_is_handed_out(
    harness: Harness, tmp_path: Path
) -> None:
    (tmp_path / "dot.png").write_bytes(DOT)
    session, seq = _shown(harness, tmp_path / "dot.png")
    answer = await harness.ask(
        "GET", f"/api/sessions/{session}/pictures/{seq}/0", scope="observe"
    )
    assert (answer.status_code, answer.content, answer.headers["content-type"]) == (
        200,
        DOT,
        "image/png",
    )
    (row,) = harness.app.record(
        session,
        ToolFinished(
            call_id="c",
            name="vision_analyze",
            images=(Image(source=str(tmp_path / "dot.png"), media_type="image/png"),),
        ),
    )
    answer = await harness.ask(
        "GET", f"/api/sessions/{session}/pictures/{row.seq}/0", scope="observe"
    )
    assert answer.content == DOT


async def test_a_photo_of_a_phone_is_shown_as_what_browsers_show(
    harness: Harness,
) -> None:
    pytest.importorskip("pi_heif")
    session, seq = _shown(harness, HEIC)
    answer = await harness.ask(
        "GET", f"/api/sessions/{session}/pictures/{seq}/0", scope="observe"
    )
    assert answer.headers["content-type"] == "image/jpeg"
    assert answer.content.startswith(b"\xff\xd8\xff")


async def test_a_document_that_comes_with_a_message_is_read(
    harness: Harness, tmp_path: Path
) -> None:
    canvas = pytest.importorskip("reportlab.pdfgen.canvas")
    page = canvas.Canvas(str(tmp_path / "bill.pdf"))
    page.drawString(100, 700, "The bill is 4711 euros.")
    page.save()
    data = base64.b64encode((tmp_path / "bill.pdf").read_bytes()).decode()
    session = harness.app.begin(SessionCreated(surface="dashboard")).session
    answer = await harness.ask(
        "POST",
        f"/api/sessions/{session}/messages",
        {"text": "how much?", "files": [{"name": "../../bill.pdf", "data": data}]},
        scope="chat",
    )
    assert answer.status_code == 200, answer.text
    said = harness.app.store.log.messages(session)[0]
    folder = harness.app.home.media / session
    (saved,) = folder.rglob("*.pdf")
    assert saved.name == "bill.pdf"
    assert said.text.startswith(f'how much?\n\n<attached path="{saved}">')
    assert "The bill is 4711 euros." in said.text
    assert typed_part(said.text) == "how much?"


async def test_an_edited_message_takes_along_what_the_earlier_one_had(
    harness: Harness, tmp_path: Path
) -> None:
    (tmp_path / "dot.png").write_bytes(DOT)
    block = '\n\n<attached path="{}">\n{}\n</attached>'
    text = (
        "both" + block.format("/media/a.txt", "heron") + block.format("b.txt", "egret")
    )
    session = harness.app.begin(SessionCreated(surface="dashboard")).session
    image = Image(source=str(tmp_path / "dot.png"), media_type="image/png")
    message = UserMessage(text=text, images=(image,), recordings=("/media/said.ogg",))
    (row,) = harness.app.record(session, message)
    for seq, expected in ((row.seq, message), (row.seq + 50, UserMessage(text=""))):
        earlier = {
            "session": session,
            "seq": seq,
            "images": [0, 7],
            "files": ["/media/a.txt", "/etc/passwd"],
            "recordings": [0],
        }
        sent = await harness.call(
            "POST",
            f"/api/sessions/{session}/messages",
            {"text": "again", "earlier": earlier},
            scope="chat",
        )
        (found,) = harness.app.store.log.events(session, after=sent["seq"] - 1, limit=1)
        assert isinstance(found.event, UserMessage)
        assert found.event.images == expected.images
        assert found.event.recordings == expected.recordings
        assert found.event.text.startswith("again")
        assert ("heron" in found.event.text) is bool(expected.text)
        assert "egret" not in found.event.text


async def test_nothing_else_is_handed_out_as_a_picture(
    harness: Harness, tmp_path: Path
) -> None:
    """Not a file that is no picture, whatever the log calls it; not what no row names; not an address elsewhere."""
    (tmp_path / "key.png").write_text("-----BEGIN PRIVATE KEY-----")
    (tmp_path / "drawing.png").write_text(
        '<svg xmlns="http://www.w3.org/2000/svg"><script>1</script></svg>'
    )
    session, seq = _shown(
        harness,
        tmp_path / "key.png",
        tmp_path / "drawing.png",
        tmp_path / "gone.png",
        tmp_path,
        Path("https://x.example/a"),
    )
    for path in [
        *(f"{seq}/{number}" for number in range(6)),
        f"{seq + 1}/0",
        f"{seq - 1}/0",
        "0/0",
    ]:
        answer = await harness.ask(
            "GET", f"/api/sessions/{session}/pictures/{path}", scope="observe"
        )
        assert (answer.status_code, "PRIVATE" in answer.text) == (404, False), path


async def test_what_waits_names_the_session_it_is_for(harness: Harness) -> None:
    parent = harness.app.begin(SessionCreated(surface="dashboard")).session
    child = harness.app.begin(
        SessionCreated(surface="delegate", kind="child", parent=parent, root=parent)
    ).session
    branch = harness.app.begin(
        SessionCreated(surface="dashboard", kind="branch", parent=parent, root=parent)
    ).session
    asked = ApprovalRequested(
        call_id="c1", name="terminal", arguments="{}", summary="ls"
    )
    harness.app.record(child, asked)
    harness.app.record(branch, asked)
    waiting = (await harness.call("GET", "/api/approvals"))["waiting"]
    assert {
        (one["session_id"], one["root_session_id"], one["kind"]) for one in waiting
    } == {
        (child, parent, "approval"),
        (branch, "", "approval"),
    }


async def test_a_skill_is_called_by_its_name(harness: Harness) -> None:
    folder = harness.app.home.root / "skills" / "brew-tea"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(
        "---\nname: brew-tea\ndescription: How tea is made.\n---\n\nWarm the pot first.\n"
    )
    session = harness.app.begin(SessionCreated(surface="dashboard")).session
    for text in ("/brew-tea for two", "/no-such-thing"):
        await harness.call(
            "POST", f"/api/sessions/{session}/messages", {"text": text}, scope="chat"
        )
    said = [
        message["text"]
        for message in (await harness.call("GET", f"/api/sessions/{session}/messages"))[
            "messages"
        ]
        if message["role"] == "user"
    ]
    assert said[0].startswith('/brew-tea for two\n\n<skill name="brew-tea">')
    assert "Warm the pot first." in said[0]
    assert said[1] == "/no-such-thing"


async def _said(harness: Harness, session: str) -> list[str]:
    messages = (await harness.call("GET", f"/api/sessions/{session}/messages"))[
        "messages"
    ]
    return [message["text"] for message in messages if message["role"] == "user"]


async def test_a_named_file_goes_along_from_the_sessions_folder_alone(
    harness: Harness, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "notes.md").write_text("Water first.\n")
    (work / ".env").write_text("KEY=1")
    (tmp_path / "other.md").write_text("not yours")
    session = harness.app.begin(
        SessionCreated(surface="dashboard", cwd=str(work))
    ).session
    body = {"text": "read @notes.md, @.env and @../other.md"}
    taken = await harness.call(
        "POST", f"/api/sessions/{session}/messages", body, scope="chat"
    )
    assert await _said(harness, session) == [
        f'{body["text"]}\n\n<attached path="notes.md">\nWater first.\n</attached>'
    ]
    assert taken["remarks"] == [
        "Only the path of .env is sent, not its content: it may hold secrets.",
        "There is no file ../other.md here; your message is sent unchanged.",
    ]


async def test_less_asking_needs_the_right_to_approve(harness: Harness) -> None:
    session = harness.app.begin(SessionCreated(surface="dashboard")).session
    path = f"/api/sessions/{session}"
    for mode in ("auto-edit", "full"):
        refused = await harness.ask(
            "POST", f"{path}/messages", {"text": "go", "approvals": mode}, scope="chat"
        )
        assert (refused.status_code, "approve" in refused.json()["error"]) == (
            403,
            True,
        )
        refused = await harness.ask(
            "PUT", f"{path}/mode", {"approvals": mode}, scope="chat"
        )
        assert (refused.status_code, "approve" in refused.json()["error"]) == (
            403,
            True,
        )
    assert await _said(harness, session) == []
    assert (await harness.call("GET", path))["approvals"] == "ask"
    await harness.call("PUT", f"{path}/mode", {"approvals": "auto-edit"})
    assert (await harness.call("GET", path))["approvals"] == "auto-edit"
    await harness.call("PUT", f"{path}/mode", {"approvals": "ask"}, scope="chat")
    assert (await harness.call("GET", path))["approvals"] == "ask"
    await harness.call(
        "POST", f"{path}/messages", {"text": "strict", "approvals": "ask"}, scope="chat"
    )
    assert await _said(harness, session) == ["strict"]
    wrong = await harness.ask(
        "POST", f"{path}/messages", {"text": "go", "approvals": "everything"}
    )
    assert wrong.status_code == 422


async def test_what_fills_the_window_is_told(tmp_path: Path) -> None:
    settings = Settings(model=ModelSettings(default="gpt-5"))
    async with opened(
        tmp_path, settings, Secrets({"OPENAI_API_KEY": "sk-none"}, {})
    ) as harness:
        session = harness.app.begin(SessionCreated(surface="dashboard")).session
        (row,) = harness.app.record(session, UserMessage(text="word " * 300))
        harness.app.record(session, TurnStarted(inputs=(row.seq,)))
        filling = await harness.call(
            "GET", f"/api/sessions/{session}/context", scope="observe"
        )
    (words,) = filling["parts"]
    assert (
        words["name"],
        words["count"],
        filling["used"] == words["tokens"] > 200,
    ) == ("your words", 1, True)
    assert (filling["counted"], filling["window"] > filling["full"] > 0) == (
        False,
        True,
    )
    assert filling["next"]["summarised"] == 0
