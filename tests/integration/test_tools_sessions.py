"""`session_search` over a real store: hits with what is around them, in any language, and reading on."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.app.past_sessions import StoreRecall
from hermes.core.ports import ToolContext
from hermes.errors import ToolFailed
from hermes.schema.events import SessionCreated, SessionTitled
from hermes.schema.messages import AssistantMessage, ToolCall, ToolFinished, UserMessage
from hermes.schema.tool_spec import ToolResult
from hermes.store import Store, open_store
from hermes.tools.session_search import SessionSearchTool


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "state.db") as opened:
        yield opened


async def search(store: Store, **arguments: object) -> ToolResult:
    context = ToolContext("c", "now", Path("/"), lambda text: None)
    return await SessionSearchTool(StoreRecall(lambda: store)).session_search.run(
        arguments, context
    )


def fill(store: Store) -> None:
    store.log.create("garden", SessionCreated())
    store.log.append(
        "garden",
        SessionTitled(title="The garden", by="user"),
        UserMessage(text="When do I plant leeks?"),
    )
    store.log.append("garden", AssistantMessage(text="In April."))
    store.log.append(
        "garden",
        UserMessage(text="明日の天気はどうですか"),
        AssistantMessage(text="\x1b[31m晴れです"),
    )
    store.log.create("code", SessionCreated())
    call = ToolCall(id="1", name="terminal", arguments='{"command": "make leeks"}')
    store.log.append(
        "code", UserMessage(text="go"), AssistantMessage(text="", tool_calls=(call,))
    )
    store.log.append(
        "code", ToolFinished(call_id="1", name="terminal", text="built\n" * 2000)
    )
    store.log.create("now", SessionCreated())
    store.log.append("now", UserMessage(text="what did I say about leeks?"))


async def test_hits_come_with_what_is_around_them(store: Store) -> None:
    fill(store)
    result = await search(store, query="leeks")
    assert result.source == "past sessions"
    code, garden, now = result.text.split("\n\n")
    assert garden.startswith("session garden 'The garden', ")
    assert garden.splitlines()[1:] == [
        "> 3 user: When do I plant leeks?",
        "4 assistant: In April.",
    ]
    assert '> 3 assistant: terminal {"command": "make leeks"}' in code
    assert "2 user: go" in code
    assert "(11,999 characters)" in code
    assert now.startswith("session now"), "this one comes last"


async def test_what_this_session_no_longer_shows_is_found(store: Store) -> None:
    fill(store)
    call = ToolCall(id="1", name="session_search", arguments='{"query": "needle"}')
    store.log.append(
        "now",
        ToolFinished(
            call_id="0", name="read_file", text="hay\n" * 900 + "the needle\n"
        ),
    )
    store.log.append("now", AssistantMessage(text="", tool_calls=(call,)))
    for arguments in ({"query": "needle"}, {"query": "needle", "session": "this"}):
        text = (await search(store, **arguments)).text
        assert text.count("session now") == 1
        assert "> 3 tool:" in text
    assert (
        "the needle" in (await search(store, session="this", around=3)).text
        or "hay" in text
    )
    assert (
        "session garden"
        not in (await search(store, query="leeks", session="this")).text
    )


async def test_any_language_is_found_and_escapes_are_gone(store: Store) -> None:
    fill(store)
    text = (await search(store, query="天気")).text
    assert "> 5 user: 明日の天気はどうですか" in text
    assert "6 assistant: 晴れです" in text
    assert "\x1b" not in text


async def test_a_session_can_be_named_and_read_on(store: Store) -> None:
    fill(store)
    assert "session now" in (await search(store, query="leeks", session="now")).text
    page = (await search(store, session="garden", around=4, limit=1)).text
    assert page.splitlines() == [
        "3 user: When do I plant leeks?",
        "4 assistant: In April.",
        "5 user: 明日の天気はどうですか",
        "[earlier: around=3; later: around=5]",
    ]
    assert "nothing in session garden" not in page


async def test_a_long_session_is_read_in_pages_that_fit(store: Store) -> None:
    store.log.create("long", SessionCreated())
    store.log.append(
        "long",
        *(UserMessage(text=f"{number} " + "word " * 1000) for number in range(300)),
    )
    page = (await search(store, session="long", around=150, limit=20)).text
    assert len(page) < 26_000
    assert "150 user: 148 word" in page
    assert "more; narrow" in (await search(store, query="word")).text


async def test_what_can_not_be_answered_is_said(store: Store) -> None:
    fill(store)
    assert (await search(store, query="zebra")).text.startswith("Nothing was found.")
    wrong: list[tuple[dict[str, object], str]] = [
        ({}, "nothing to search for"),
        ({"query": "!!"}, "Nothing to search for"),
        ({"query": "x", "session": "missing"}, "missing"),
        ({"session": "missing", "around": 3}, "missing"),
    ]
    for arguments, message in wrong:
        with pytest.raises(ToolFailed, match=message):
            await search(store, **arguments)
