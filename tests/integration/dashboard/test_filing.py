"""Filing sessions over HTTP: pins, folders, the archive, what was looked at, search by title, and documents."""

import io
import zipfile

from tests.integration.dashboard.harness import Harness

from hermes.schema.events import SessionCreated, SessionTitled
from hermes.schema.messages import AssistantMessage, UserMessage


def _session(harness: Harness, title: str) -> str:
    session = harness.app.begin(SessionCreated(surface="dashboard")).session
    harness.app.record(
        session,
        SessionTitled(title=title),
        UserMessage(text="Say <hello>"),
        AssistantMessage(text="Look:\n```python\nprint('<b>')\n```\nDone."),
    )
    return session


async def test_sessions_are_pinned_moved_and_archived_for_every_surface(
    harness: Harness,
) -> None:
    old, mid, new = (_session(harness, title) for title in ("Älteste", "mid", "new"))
    listed = await harness.call("GET", "/api/sessions")
    assert [one["id"] for one in listed["sessions"]] == [new, mid, old]
    await harness.call("POST", "/api/commands/sessions.pin", {"sessions": [old]})
    await harness.call(
        "POST", "/api/commands/sessions.move", {"sessions": [mid, new], "folder": "A b"}
    )
    await harness.call("POST", "/api/commands/sessions.archive", {"sessions": [new]})

    listed = await harness.call("GET", "/api/sessions")
    assert [one["id"] for one in listed["sessions"]] == [mid, old]  # in the same order
    assert [one["id"] for one in listed["pinned"]] == [old]
    assert listed["folders"] == ["A b"]
    inside = await harness.call("GET", "/api/sessions?folder=A%20b")
    assert [one["id"] for one in inside["sessions"]] == [mid]
    archived = await harness.call("GET", "/api/sessions?archived=true")
    assert [one["id"] for one in archived["sessions"]] == [new]
    found = await harness.call("GET", "/api/search?q=älteste")
    assert [one["id"] for one in found["sessions"]] == [old]

    info = harness.app.store.sessions.find(mid)
    await harness.call("POST", f"/api/sessions/{mid}/seen", {"messages": info.messages})
    assert harness.app.store.sessions.find(mid).seen == info.messages
    await harness.call("DELETE", f"/api/sessions/{old}")
    assert (await harness.call("GET", "/api/sessions"))["pinned"] == []


async def test_a_session_is_a_document_in_four_formats(harness: Harness) -> None:
    session = _session(harness, "Talk & more")

    async def export(kind: str) -> str:
        answer = await harness.ask("GET", f"/api/sessions/{session}/export{kind}")
        assert answer.status_code == 200
        assert "attachment" in answer.headers["content-disposition"]
        return answer.text

    assert "session.created" in await export("")
    assert "## You\n\nSay <hello>" in await export("?format=md")
    assert '"text": "Say <hello>"' in await export("?format=json")
    page = await export("?format=html")
    assert "<h1>Talk &amp; more</h1>" in page
    assert "Say &lt;hello&gt;" in page
    assert "<pre>print(&#x27;&lt;b&gt;&#x27;)\n</pre>" in page
    other = _session(harness, "Other")
    answer = await harness.ask("GET", f"/api/exports?sessions={session},{other}")
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        names = archive.namelist()
    assert names == [f"session_{session}.md", f"session_{other}.md"]
