"""Work on the side: who is asked, who steps in, and what is said and counted, against a fake model service."""

import asyncio
import base64
import io
import logging
import random
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from tests.fakes.web_server import Page, web_server

from hermes.app import App, build
from hermes.app.agent import Agent
from hermes.core.compaction import NotCompacted
from hermes.core.ports import ToolContext
from hermes.events import Bus
from hermes.images.image_info import media_type
from hermes.schema.events import (
    AuxiliaryCalled,
    CompactionFailed,
    PictureDescribed,
    SessionCompacted,
    SessionCreated,
)
from hermes.schema.learning import LearningReviewed
from hermes.schema.messages import Image, Usage
from hermes.settings import Home, Secrets, Settings
from hermes.settings.media import MediaSettings
from hermes.settings.models import (
    AuxiliarySettings,
    BudgetSettings,
    CompressionSettings,
    CustomModel,
    CustomProvider,
    ModelSettings,
)
from hermes.settings.tools import WebSettings
from hermes.testing.model_server import ModelServer, Recorded
from hermes.testing.scripted_responses import ScriptedResponse, ServerFault

GERMAN = "## Goal\nDas Boot soll schwimmen, und der Kiel ist gelegt; die Farbe ist nicht gewählt, und das Holz ist da."
ENGLISH = "## Goal\nThe boat is to float and the keel is laid; the colour is not chosen, and the wood is in the shed."
LEFT_OUT = b"left out: this model reads only text"
DEAR = CustomModel(window=100_000, input_price=5.0, output_price=20.0)
CHEAP = CustomModel(window=100_000, input_price=0.1, output_price=0.2)
SEEING = CustomModel(window=100_000, input_price=1.0, output_price=2.0, images=True)


WORD = "xantippe-im-hafen"


def asked(request: Recorded) -> str:
    return str(msgspec.json.decode(request.body)["model"])


@asynccontextmanager
async def at_work(
    server: ModelServer, root: Path, settings: Settings, **models: CustomModel
) -> AsyncIterator[tuple[Agent, App, str]]:
    mine = CustomProvider(
        base_url=server.url,
        models={name.replace("_", "-"): facts for name, facts in models.items()},
    )
    chosen = msgspec.structs.replace(
        settings.model, provider="mine", default="dear", max_attempts=1
    )
    settings = msgspec.structs.replace(
        settings, model=chosen, custom_providers={"mine": mine}
    )
    with build(settings, Home(root / "home"), bus=Bus()) as app:
        agent = Agent(app, Secrets({}, {"BOAT_PASSWORD": WORD}))
        session = app.begin(SessionCreated(surface="test", cwd=str(root))).session
        try:
            yield agent, app, session
        finally:
            await agent.close()


async def talk(
    agent: Agent, session: str, *words: str, images: tuple[Image, ...] = ()
) -> None:
    for text in words:
        await agent.service.submit(session, text, images=images)
        await agent.service.idle(session)


def rows(app: App, session: str, kind: type) -> list[object]:
    return [
        row.event
        for row in app.store.log.every_event(session)
        if isinstance(row.event, kind)
    ]


WORDS = (
    "Bitte bau mir ein Boot, das schwimmt und nicht zu teuer ist.",
    "Und der Kiel ist mit dem Holz auf der Seite.",
)
SHORT = Settings(compression=CompressionSettings(protect_first_n=0, protect_last_n=1))


async def test_a_summary_is_written_by_the_cheapest_model_and_goes_to_no_other_when_it_is_good(
    tmp_path: Path,
) -> None:
    async with ModelServer("ja", "gut", GERMAN) as server:
        async with at_work(
            server, tmp_path, SHORT, dear=DEAR, cheap=CHEAP, tiny=CustomModel(window=10)
        ) as (
            agent,
            app,
            session,
        ):
            await talk(agent, session, *WORDS)
            row = await agent.compress(session)
            assert (row.model, row.summary) == ("cheap", GERMAN)
            assert rows(app, session, AuxiliaryCalled) == []
            usage = {one.model: one.calls for one in app.store.sessions.usage()}
            assert usage == {"dear": 2, "cheap": 1}
        assert [asked(request) for request in server.posts] == ["dear", "dear", "cheap"]


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (ScriptedResponse(text=""), "0 characters"),
        (ScriptedResponse(text=ENGLISH), "it is in english, the user writes german"),
        (
            ScriptedResponse(text="## Goal\n" + "x" * 100_000, chunk=10_000),
            "100,008 characters",
        ),
        (
            ScriptedResponse(
                text="I can't help with that, and I will not say why not."
            ),
            "none of the headings",
        ),
        (ScriptedResponse(text=GERMAN, finish="length"), "cut off"),
        (ScriptedResponse(fault=ServerFault(status=500, message="on fire")), "on fire"),
        (
            ScriptedResponse(fault=ServerFault(status=404, message="no such model")),
            "no such model",
        ),
        (
            ScriptedResponse(fault=ServerFault(hang="head")),
            "in time|timeout|no answer|seconds",
        ),
    ],
    ids=[
        "nothing",
        "wrong language",
        "100 kB",
        "refusal",
        "cut off",
        "error",
        "unknown model",
        "timeout",
    ],
)
async def test_when_the_own_model_fails_the_main_one_writes_it_and_that_is_said(
    bad: ScriptedResponse, why: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with ModelServer("ja", "gut", bad, GERMAN, "weiter", GERMAN) as server:
        patience = 2.0 if bad.fault and bad.fault.hang else 60.0
        settings = msgspec.structs.replace(
            SHORT, model=ModelSettings(first_byte_timeout=patience)
        )
        async with at_work(server, tmp_path, settings, dear=DEAR, cheap=CHEAP) as (
            agent,
            app,
            session,
        ):
            await talk(agent, session, *WORDS)
            with caplog.at_level(logging.WARNING, "hermes.app"):
                row = await agent.compress(session)
                await talk(agent, session, "Und weiter mit der Farbe.")
                again = await agent.compress(session)
            assert (row.model, again.model) == ("dear", "dear")
            (called,) = rows(app, session, AuxiliaryCalled)
            assert isinstance(called, AuxiliaryCalled)
            assert (called.task, called.provider, called.model) == (
                "summary",
                "mine",
                "cheap",
            )
            assert re.search(why, called.failure)
            assert caplog.text.count("the model for summary (mine:cheap) failed") == 1
        assert [asked(request) for request in server.posts][2:] == [
            "cheap",
            "dear",
            "dear",
            "dear",
        ]


async def test_a_secret_of_the_users_is_neither_read_nor_written_by_the_model_on_the_side(
    tmp_path: Path,
) -> None:
    async with (
        ModelServer("ja", "gut", f"{GERMAN}\n{WORD}") as server,
        at_work(server, tmp_path, SHORT, dear=DEAR, cheap=CHEAP) as (agent, _, session),
    ):
        await talk(agent, session, f"Das Passwort ist {WORD}, bitte.", WORDS[1])
        assert (await agent.compress(session)).summary == f"{GERMAN}\n********"
        assert WORD.encode() not in server.posts[-1].body


async def test_when_both_fail_nothing_is_removed_and_it_can_be_forced_at_once(
    tmp_path: Path,
) -> None:
    async with (
        ModelServer("ja", "gut", "", "", GERMAN) as server,
        at_work(server, tmp_path, SHORT, dear=DEAR, cheap=CHEAP) as (
            agent,
            app,
            session,
        ),
    ):
        await talk(agent, session, *WORDS)
        with pytest.raises(NotCompacted):
            await agent.compress(session)
        assert rows(app, session, SessionCompacted) == []
        assert (await agent.compress(session)).summary == GERMAN


async def test_a_request_that_is_too_long_makes_room_and_is_asked_once_more(
    tmp_path: Path,
) -> None:
    too_long = ScriptedResponse(
        fault=ServerFault(
            status=400, message="prompt is too long", code="context_length_exceeded"
        )
    )
    async with ModelServer("ja", "gut", too_long, GERMAN, "fertig") as server:
        async with at_work(server, tmp_path, SHORT, dear=DEAR) as (agent, app, session):
            await talk(agent, session, *WORDS, "Und nun?")
            assert len(rows(app, session, SessionCompacted)) == 1
            assert rows(app, session, CompactionFailed) == []
        assert "Das Boot soll schwimmen" in server.posts[-1].body.decode()
    async with ModelServer("ja", "gut", too_long, GERMAN, too_long) as server:
        async with at_work(server, tmp_path / "two", SHORT, dear=DEAR) as (
            agent,
            app,
            session,
        ):
            await talk(agent, session, *WORDS, "Und nun?")
        assert len(server.posts) == 5


@pytest.mark.parametrize(
    "dearest",
    [
        CustomModel(window=100_000, input_price=1_000.0, output_price=100_000.0),
        CustomModel(window=100_000),
    ],
    ids=["dearer", "unknown price"],
)
async def test_a_cap_in_dollars_holds_for_a_model_on_the_side(
    dearest: CustomModel, tmp_path: Path
) -> None:
    settings = Settings(
        auxiliary=AuxiliarySettings(title="dearest"),
        budget=BudgetSettings(per_day="$0.5"),
    )
    async with (
        ModelServer("ja", "Ein Titel") as server,
        at_work(server, tmp_path, settings, dear=DEAR, dearest=dearest) as (
            agent,
            app,
            session,
        ),
    ):
        noted: asyncio.Queue[object] = asyncio.Queue()
        app.bus.subscribe("agent.auxiliary.called", noted.put_nowait)
        await talk(agent, session, "hallo")
        for _ in range(2):
            await asyncio.wait_for(noted.get(), 20)
        calls = [
            one
            for one in rows(app, session, AuxiliaryCalled)
            if isinstance(one, AuxiliaryCalled)
        ]
        assert [(one.model, bool(one.failure)) for one in calls] == [
            ("dearest", True),
            ("dear", False),
        ]
        assert [asked(request) for request in server.posts] == ["dear", "dear"]


async def test_the_window_of_the_summarising_model_is_what_its_requests_keep_to(
    tmp_path: Path,
) -> None:
    settings = msgspec.structs.replace(
        SHORT, auxiliary=AuxiliarySettings(summary="mine:narrow")
    )
    narrow = CustomModel(window=4_500)
    words = [
        f"Wunsch {number}: " + "ein Boot und das Holz, " * 110 for number in range(3)
    ]
    async with (
        ModelServer(*("ja" for _ in words), *(GERMAN for _ in words)) as server,
        at_work(server, tmp_path, settings, dear=DEAR, narrow=narrow) as (
            agent,
            _,
            session,
        ),
    ):
        await talk(agent, session, *words)
        assert (await agent.compress(session)).model == "narrow"
        summaries = [request for request in server.posts if asked(request) == "narrow"]
        assert len(summaries) >= 2
        assert all(len(request.body) < 3 * 4_500 for request in summaries)
        assert server.left == len(words) - len(summaries)


async def test_with_nobody_else_to_ask_a_summary_in_another_language_is_better_than_none(
    tmp_path: Path,
) -> None:
    async with (
        ModelServer("ja", "gut", ENGLISH) as server,
        at_work(server, tmp_path, SHORT, dear=DEAR) as (agent, _, session),
    ):
        await talk(agent, session, *WORDS)
        assert (await agent.compress(session)).summary == ENGLISH


async def test_a_model_that_is_set_wrongly_is_said_and_the_main_one_does_it(
    tmp_path: Path,
) -> None:
    settings = msgspec.structs.replace(
        SHORT, auxiliary=AuxiliarySettings(summary="openai:gpt-5-mini")
    )
    async with (
        ModelServer("ja", "gut", GERMAN) as server,
        at_work(server, tmp_path, settings, dear=DEAR) as (agent, app, session),
    ):
        await talk(agent, session, *WORDS)
        assert (await agent.compress(session)).model == "dear"
        (called,) = rows(app, session, AuxiliaryCalled)
        assert isinstance(called, AuxiliaryCalled)
        assert "OPENAI_API_KEY is not set" in called.failure


async def test_looking_whether_there_is_room_leaves_a_running_turn_its_budget(
    tmp_path: Path,
) -> None:
    settings = Settings(budget=BudgetSettings(per_turn="10k tokens"))
    async with (
        ModelServer() as server,
        at_work(server, tmp_path, settings, dear=DEAR) as (agent, app, session),
    ):
        spending = agent._parts.spending
        running = spending.budget(session)
        spending.check(session, 100)
        assert spending._budgets[session] is running
        spending.spend(session, Usage(input_tokens=500))
        assert running._caps[0].used == 500
        child = app.begin(
            SessionCreated(surface="test", kind="child", parent=session, root=session)
        ).session
        running._caps[0].used = 9_950
        assert spending.budget(child)._caps is running._caps
        with pytest.raises(Exception, match="cap per turn"):
            spending.check(session, 100)


async def test_a_review_by_a_model_that_fails_is_done_by_the_main_one(
    tmp_path: Path,
) -> None:
    broken = ScriptedResponse(fault=ServerFault(status=403, message="not for you"))
    settings = Settings(auxiliary=AuxiliarySettings(review="cheap"))
    async with (
        ModelServer("ja", broken, "done", "done") as server,
        at_work(server, tmp_path, settings, dear=DEAR, cheap=CHEAP) as (
            agent,
            app,
            session,
        ),
    ):
        await talk(agent, session, "hallo")
        for _ in range(2):
            reviewed = await agent.learner.review(session)
            assert isinstance(reviewed, LearningReviewed)
            assert reviewed.failure == ""
        calls = [
            one
            for one in rows(app, session, AuxiliaryCalled)
            if isinstance(one, AuxiliaryCalled)
        ]
        assert [(one.task, one.model, bool(one.failure)) for one in calls] == [
            ("review", "cheap", True),
            ("review", "dear", False),
            ("review", "dear", False),
        ]
        assert [asked(request) for request in server.posts] == [
            "dear",
            "cheap",
            "dear",
            "dear",
        ]


async def fetched(
    server: ModelServer, root: Path, page: str
) -> tuple[str, list[object]]:
    """What web_fetch shows of a page, and what was noted of work on the side."""
    async with web_server(
        lambda asked: Page(page.encode(), headers={"Content-Type": "text/plain"})
    ) as web:
        settings = Settings(
            auxiliary=AuxiliarySettings(search="cheap"),
            web=WebSettings(allow_hosts=(f"127.0.0.1:{web.port}",)),
        )
        async with at_work(server, root, settings, dear=DEAR, cheap=CHEAP) as (
            agent,
            app,
            session,
        ):
            context = ToolContext("c", session, root, lambda text: None)
            url = f"http://127.0.0.1:{web.port}/page"
            result = await agent.tools(session)["web_fetch"].run({"url": url}, context)
            return result.text, rows(app, session, AuxiliaryCalled)


async def test_a_long_page_is_shown_as_a_digest_and_kept_whole(tmp_path: Path) -> None:
    page = "the beginning of it\n" + "a line of a long page\n" * 3_000
    async with ModelServer("What matters.") as server:
        text, noted = await fetched(server, tmp_path, page)
        assert text.startswith("What matters.")
        kept = re.search(r"is in (\S+\.md)\]", text)
        assert kept
        assert page.strip() in await asyncio.to_thread(Path(kept[1]).read_text)
        assert [
            (one.task, one.model) for one in noted if isinstance(one, AuxiliaryCalled)
        ] == [("search", "cheap")]
        assert b"a line of a long page" in server.posts[0].body


async def test_a_page_whose_digest_fails_is_shown_from_its_beginning_and_a_short_one_as_it_is(
    tmp_path: Path,
) -> None:
    broken = ScriptedResponse(fault=ServerFault(status=500, message="no digest today"))
    async with ModelServer(broken, broken) as server:
        text, noted = await fetched(
            server,
            tmp_path / "one",
            "the beginning\n" + "a line of a long page\n" * 3_000,
        )
        assert text.startswith("the beginning")
        assert [one.model for one in noted if isinstance(one, AuxiliaryCalled)] == [
            "cheap",
            "dear",
        ]
        assert (await fetched(server, tmp_path / "two", "short"))[0] == "short"


def photo(folder: Path, width: int = 60, height: int = 40) -> Image:
    pillow = pytest.importorskip("PIL.Image")
    place = io.BytesIO()
    pillow.frombytes(
        "RGB", (width, height), random.Random(3).randbytes(width * height * 3)
    ).save(place, "PNG")
    (folder / "photo.png").write_bytes(place.getvalue())
    return Image(source=str(folder / "photo.png"), media_type="image/png")


async def test_a_model_that_sees_describes_a_picture_once_for_one_that_reads_only_text(
    tmp_path: Path,
) -> None:
    async with ModelServer("A red boat.", "ein Boot", "ja") as server:
        async with at_work(server, tmp_path, Settings(), dear=DEAR, seeing=SEEING) as (
            agent,
            app,
            session,
        ):
            await talk(agent, session, "was ist das?", images=(photo(tmp_path),))
            await talk(agent, session, "sicher?")
            (row,) = rows(app, session, PictureDescribed)
            (called,) = rows(app, session, AuxiliaryCalled)
            assert isinstance(row, PictureDescribed)
            assert isinstance(called, AuxiliaryCalled)
            assert (row.text, called.task, called.model) == (
                "A red boat.",
                "vision",
                "seeing",
            )
        looked, first, second = server.posts
        assert b"data:image/png;base64," in looked.body
        assert b"A red boat." in first.body
        assert b"base64" not in first.body
        messages = [
            msgspec.json.decode(request.body)["messages"] for request in (first, second)
        ]
        assert messages[1][: len(messages[0])] == messages[0]


@pytest.fixture
def no_ocr(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the extra `ocr` were not installed."""
    monkeypatch.setitem(sys.modules, "rapidocr", None)


@pytest.mark.usefixtures("no_ocr")
async def test_a_picture_that_could_not_be_described_is_left_out_for_good(
    tmp_path: Path,
) -> None:
    async with ModelServer(
        ScriptedResponse(fault=ServerFault(status=500, message="blind")), "nichts", "ja"
    ) as server:
        async with at_work(server, tmp_path, Settings(), dear=DEAR, seeing=SEEING) as (
            agent,
            _,
            session,
        ):
            await talk(agent, session, "was ist das?", images=(photo(tmp_path),))
            await talk(agent, session, "sicher?")
        assert [asked(request) for request in server.posts] == [
            "seeing",
            "dear",
            "dear",
        ]
        assert b"could not be described" in server.posts[1].body


@pytest.mark.usefixtures("no_ocr")
@pytest.mark.parametrize("wanted", ["auto", "off"])
async def test_without_a_model_that_sees_nothing_is_asked(
    wanted: str, tmp_path: Path
) -> None:
    models = {"dear": DEAR} if wanted == "auto" else {"dear": DEAR, "seeing": SEEING}
    async with ModelServer("nichts") as server:
        settings = Settings(auxiliary=AuxiliarySettings(vision=wanted))
        async with at_work(server, tmp_path, settings, **models) as (agent, _, session):
            await talk(agent, session, "was ist das?", images=(photo(tmp_path),))
        (request,) = server.posts
        assert LEFT_OUT in request.body


async def test_without_vision_a_picture_is_left_out(tmp_path: Path) -> None:
    async with ModelServer("nichts") as server:
        settings = Settings(media=MediaSettings(vision="off"))
        async with at_work(server, tmp_path, settings, dear=DEAR, seeing=SEEING) as (
            agent,
            _,
            session,
        ):
            await talk(agent, session, "was ist das?", images=(photo(tmp_path),))
        (request,) = server.posts
        assert LEFT_OUT in request.body


async def test_a_picture_too_large_for_the_provider_is_sent_smaller(
    tmp_path: Path,
) -> None:
    async with ModelServer("Rauschen") as server:
        async with at_work(
            server,
            tmp_path,
            Settings(),
            dear=msgspec.structs.replace(DEAR, images=True),
        ) as (
            agent,
            _,
            session,
        ):
            await talk(
                agent, session, "was ist das?", images=(photo(tmp_path, 9_000, 20),)
            )
        content = msgspec.json.decode(server.posts[0].body)["messages"][-1]["content"]
        head, _, data = content[-1]["image_url"]["url"].partition(",")
        sent = base64.b64decode(data)
        assert head == f"data:{media_type(sent[:16])};base64"
        with pytest.importorskip("PIL.Image").open(io.BytesIO(sent)) as picture:
            assert picture.width == 8_000
