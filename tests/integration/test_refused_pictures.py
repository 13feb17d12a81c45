"""A picture that a provider refuses, or that the model can't see, is said, and the session goes on."""

import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from tests.integration.test_documents import need_ocr
from tests.integration.test_tools_images import png

from hermes.app import App, build
from hermes.app.agent import Agent
from hermes.events import Bus
from hermes.schema.events import (
    PictureReduced,
    PictureWithheld,
    SessionCreated,
    TurnEnded,
)
from hermes.schema.messages import Image
from hermes.settings import Home, Secrets, Settings
from hermes.settings.media import MediaSettings
from hermes.settings.models import AuxiliarySettings, ModelSettings
from hermes.testing.formats import Format
from hermes.testing.model_server import ModelServer, Recorded
from hermes.testing.scripted_responses import ScriptedResponse, ServerFault

PICTURE_DATA = (b"image/png", b"image/jpeg")


class Chat:
    """A session in which pictures are sent."""

    def __init__(self, app: App, agent: Agent, session: str) -> None:
        self.app = app
        self.agent = agent
        self.session = session

    async def say(self, text: str, *pictures: Path) -> None:
        images = tuple(
            Image(source=str(path), media_type="image/png") for path in pictures
        )
        await self.agent.service.submit(self.session, text, images=images)
        await self.agent.service.idle(self.session)

    def rows(self, *kinds: type) -> list[object]:
        rows = self.app.store.log.events(self.session)
        return [row.event for row in rows if isinstance(row.event, kinds)]


@asynccontextmanager
async def chatting(
    folder: Path,
    server: ModelServer,
    model: str = "gpt-5",
    api: Format = "chat",
    vision: str = "off",
) -> AsyncIterator[Chat]:
    chosen = msgspec.convert({"default": model, "api": api}, ModelSettings)
    settings = Settings(
        model=chosen,
        auxiliary=AuxiliarySettings(title="off"),
        media=MediaSettings(vision=vision),
    )
    secrets = Secrets({}, {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-test"})
    with build(settings, Home(folder / "home"), bus=Bus()) as app:
        agent = Agent(app, secrets)
        session = app.begin(SessionCreated(surface="test", cwd=str(folder))).session
        yield Chat(app, agent, session)
        await agent.close()


def has_picture(request: Recorded) -> bool:
    return any(kind in request.body for kind in PICTURE_DATA)


def refusing(
    when: Callable[[Recorded], bool], fault: ServerFault
) -> Callable[[Recorded], ScriptedResponse]:
    return lambda request: (
        ScriptedResponse(fault=fault)
        if when(request)
        else ScriptedResponse(text="fine")
    )


FAULTS = [
    ServerFault(status=400, message="Could not process image"),
    ServerFault(status=400, message="something is wrong with the request"),
    ServerFault(status=413, message="Request Entity Too Large"),
    ServerFault(status=404, message="No endpoints found that support image input"),
    ServerFault(
        status=500, message="image input is not supported - hint: provide the mmproj"
    ),
    ServerFault(
        status=400, message="the picture was flagged", code="content_policy_violation"
    ),
]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("api", ["chat", "anthropic"])
async def test_a_refused_picture_is_left_out_and_every_later_turn_works(
    tmp_path: Path, fault: ServerFault, api: Format
) -> None:
    picture = tmp_path / "shot.png"
    picture.write_bytes(png(40, 30))
    async with (
        ModelServer(respond=refusing(has_picture, fault)) as server,
        chatting(tmp_path, server, api=api) as chat,
    ):
        await chat.say("what is this?", picture)
        asked = len(server.posts)
        await chat.say("and now?")
        assert len(server.posts) == asked + 1
        ends = chat.rows(TurnEnded)
        (withheld,) = chat.rows(PictureWithheld)
    assert [end.reason for end in ends if isinstance(end, TurnEnded)] == [
        "done",
        "done",
    ]
    assert isinstance(withheld, PictureWithheld)
    assert (withheld.why, withheld.sources) == ("refused", (str(picture),))
    assert fault.message in withheld.detail
    assert "hermes model" in withheld.detail
    assert b"a picture was left out: it was not accepted" in server.posts[-1].body


async def test_a_refused_picture_without_text_is_not_said_to_be_described(
    tmp_path: Path,
) -> None:
    need_ocr()
    picture = tmp_path / "dot.png"
    picture.write_bytes(png(4, 3))
    fault = ServerFault(status=400, message="image input is not supported")
    async with (
        ModelServer(respond=refusing(has_picture, fault)) as server,
        chatting(tmp_path, server, vision="auto") as chat,
    ):
        await chat.say("what is this?", picture)
        (withheld,) = chat.rows(PictureWithheld)
    assert b"OCR found no text in it." in server.posts[-1].body
    assert isinstance(withheld, PictureWithheld)
    assert "instead" not in withheld.detail


async def test_a_picture_that_is_too_large_is_sent_smaller_once(tmp_path: Path) -> None:
    from PIL import Image as pillow  # noqa: N813

    picture = tmp_path / "photo.png"
    noise = random.Random(1).randbytes(1200 * 900 * 3)
    pillow.frombytes("RGB", (1200, 900), noise).save(picture)
    fault = ServerFault(status=400, message="image exceeds 2 MB maximum")
    respond = refusing(lambda request: len(request.body) > 2_000_000, fault)
    async with (
        ModelServer(respond=respond) as server,
        chatting(tmp_path, server) as chat,
    ):
        await chat.say("what is this?", picture)
        await chat.say("and now?")
        assert len(server.posts) == 3
        (reduced,) = chat.rows(PictureReduced)
        assert not chat.rows(PictureWithheld)
    assert isinstance(reduced, PictureReduced)
    assert "smaller" in reduced.detail
    assert all(has_picture(post) for post in server.posts)


async def test_a_picture_that_was_accepted_stays_when_a_later_one_is_refused(
    tmp_path: Path,
) -> None:
    for name in ("good", "bad"):
        (tmp_path / f"{name}.png").write_bytes(png(40, 30, color=len(name)))
    respond = refusing(
        lambda request: request.body.count(b"image/") > 1,
        ServerFault(status=400, message="bad image"),
    )
    async with (
        ModelServer(respond=respond) as server,
        chatting(tmp_path, server) as chat,
    ):
        await chat.say("one", tmp_path / "good.png")
        await chat.say("two", tmp_path / "bad.png")
        (withheld,) = chat.rows(PictureWithheld)
    assert isinstance(withheld, PictureWithheld)
    assert withheld.sources == (str(tmp_path / "bad.png"),)
    assert has_picture(server.posts[-1])


async def test_a_failure_that_pictures_have_nothing_to_do_with_is_told_as_it_is(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.png").write_bytes(png(40, 30))
    fault = ServerFault(status=401, message="no such key")
    async with (
        ModelServer(ScriptedResponse(fault=fault), repeat=True) as server,
        chatting(tmp_path, server) as chat,
    ):
        await chat.say("one", tmp_path / "a.png")
        assert not chat.rows(PictureReduced, PictureWithheld)
    assert len(server.posts) == 1


async def test_a_model_that_is_not_known_to_see_is_said_once_with_how_to_change_it(
    tmp_path: Path,
) -> None:
    picture = tmp_path / "a.png"
    picture.write_bytes(png(40, 30))
    async with (
        ModelServer("one", "two") as server,
        chatting(tmp_path, server, "plain-text-1") as chat,
    ):
        await chat.say("what is this?", picture)
        await chat.say("and now?")
        (withheld,) = chat.rows(PictureWithheld)
    assert isinstance(withheld, PictureWithheld)
    assert withheld.why == "text_only"
    assert "openai-compatible:plain-text-1" in withheld.detail
    assert (
        "set images: true for it in custom_providers.openai-compatible.models"
        in withheld.detail
    )
    assert not any(has_picture(post) for post in server.posts)


async def test_a_picture_stays_when_leaving_it_out_does_not_help(
    tmp_path: Path,
) -> None:
    picture = tmp_path / "a.png"
    picture.write_bytes(png(40, 30))
    fault = ServerFault(status=400, message="invalid value for temperature")
    answers = iter([ScriptedResponse(fault=fault)] * 3)
    async with (
        ModelServer(
            respond=lambda _: next(answers, ScriptedResponse(text="fine"))
        ) as server,
        chatting(tmp_path, server) as chat,
    ):
        await chat.say("what is this?", picture)
        assert not chat.rows(PictureReduced, PictureWithheld)
        await chat.say("and now?")
        ends = chat.rows(TurnEnded)
    assert [end.reason for end in ends if isinstance(end, TurnEnded)] == [
        "failed",
        "done",
    ]
    assert has_picture(server.posts[-1])


async def test_the_name_of_the_model_says_nothing_about_pictures(
    tmp_path: Path,
) -> None:
    picture = tmp_path / "a.png"
    picture.write_bytes(png(40, 30))
    model = "gpt-5-vision-image"
    fault = ServerFault(status=400, message=f"{model}: invalid value for temperature")
    answers = iter([ScriptedResponse(text="one"), ScriptedResponse(fault=fault)])
    async with (
        ModelServer(
            respond=lambda _: next(answers, ScriptedResponse(text="fine"))
        ) as server,
        chatting(tmp_path, server, model) as chat,
    ):
        await chat.say("what is this?", picture)
        await chat.say("and now?")
        assert not chat.rows(PictureReduced, PictureWithheld)
    assert [has_picture(post) for post in server.posts] == [True, True]
