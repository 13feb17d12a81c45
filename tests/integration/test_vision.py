"""`vision_analyze` in a conversation: who looks at the picture is chosen by the model, and said."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from tests.integration.test_documents import need_ocr
from tests.integration.test_refused_pictures import Chat, has_picture
from tests.integration.test_tools_images import png

from hermes.app import build
from hermes.app.agent import Agent
from hermes.app.image_description import SessionPictures
from hermes.app.picture_tools import NoImageSpending, PicturePorts, PictureTools
from hermes.events import Bus
from hermes.schema.events import PictureWithheld, SessionCreated, TurnEnded
from hermes.schema.messages import ToolFinished
from hermes.settings import Home, Secrets, Settings
from hermes.settings.media import MediaSettings
from hermes.settings.models import AuxiliarySettings, CustomModel, CustomProvider
from hermes.testing.model_server import ModelServer, Recorded
from hermes.testing.scripted_responses import (
    ScriptedResponse,
    ServedCall,
    ServerFault,
)
from hermes.tools.tool import FunctionTool

LOOK = ScriptedResponse(
    calls=(
        ServedCall(
            "vision_analyze", '{"image": "shot.png", "question": "Which colour?"}'
        ),
    )
)


@asynccontextmanager
async def chatting(
    folder: Path,
    server: ModelServer,
    model: str,
    media: MediaSettings | None = None,
    auxiliary: str = "own:seeing",
) -> AsyncIterator[Chat]:
    provider = CustomProvider(
        base_url=server.url,
        api="chat",
        models={"blind": CustomModel(), "seeing": CustomModel(images=True)},
    )
    settings = msgspec.convert(
        {"model": {"provider": "own", "default": model}}, Settings
    )
    settings = msgspec.structs.replace(
        settings,
        custom_providers={"own": provider},
        auxiliary=AuxiliarySettings(title="off", vision=auxiliary),
        media=media or MediaSettings(),
    )
    with build(settings, Home(folder / "home"), bus=Bus()) as app:
        agent = Agent(app, Secrets({}, {}))
        session = app.begin(SessionCreated(surface="test", cwd=str(folder))).session
        yield Chat(app, agent, session)
        await agent.close()


def asked(request: Recorded) -> str:
    return str(msgspec.json.decode(request.body)["model"])


async def test_a_model_that_sees_gets_the_pixels(tmp_path: Path) -> None:
    (tmp_path / "shot.png").write_bytes(png(4, 3))
    async with ModelServer(LOOK, "Black.") as server:
        async with chatting(tmp_path, server, "seeing") as chat:
            await chat.say("which colour is it?")
        assert [asked(post) for post in server.posts] == ["seeing", "seeing"]
        assert has_picture(server.posts[1])


async def test_for_a_blind_model_another_one_answers_the_question(
    tmp_path: Path,
) -> None:
    (tmp_path / "shot.png").write_bytes(png(4, 3))
    async with ModelServer(LOOK, "It is black.", "Black.") as server:
        async with chatting(tmp_path, server, "blind") as chat:
            await chat.say("which colour is it?")
            (withheld,) = chat.rows(PictureWithheld)
            (finished,) = chat.rows(ToolFinished)
        assert [asked(post) for post in server.posts] == ["blind", "seeing", "blind"]
        _, looked, told = server.posts
        assert has_picture(looked)
        assert b"Which colour?" in looked.body
        assert not has_picture(told)
        assert b"It is black." in told.body
    assert isinstance(withheld, PictureWithheld)
    assert "A description by another model was sent instead" in withheld.detail
    assert isinstance(finished, ToolFinished)
    assert finished.text.endswith("own:seeing looked at it.")


async def test_a_model_named_in_the_settings_looks_even_if_the_main_one_sees(
    tmp_path: Path,
) -> None:
    (tmp_path / "shot.png").write_bytes(png(4, 3))
    media = MediaSettings(vision="own:seeing")
    async with ModelServer(LOOK, "It is black.", "Black.") as server:
        async with chatting(tmp_path, server, "seeing", media) as chat:
            await chat.say("which colour is it?")
            assert not chat.rows(PictureWithheld)
        assert len(server.posts) == 3
        assert not has_picture(server.posts[2])
        assert b"It is black." in server.posts[2].body


async def test_without_a_model_ocr_reads_the_text_in_a_picture(tmp_path: Path) -> None:
    need_ocr()
    from PIL import Image, ImageDraw, ImageFont

    picture = Image.new("RGB", (640, 120), "white")
    font = ImageFont.load_default(size=48)
    ImageDraw.Draw(picture).text((20, 30), "Invoice 4711 paid", "black", font)
    picture.save(tmp_path / "shot.png")
    async with ModelServer(LOOK, "4711.") as server:
        media = MediaSettings(vision="ocr")
        async with chatting(tmp_path, server, "blind", media) as chat:
            await chat.say("which number?")
            (withheld,) = chat.rows(PictureWithheld)
        assert b"Invoice 4711 paid" in server.posts[1].body
    assert isinstance(withheld, PictureWithheld)
    assert "The text that OCR read was sent instead" in withheld.detail


async def test_a_picture_without_text_is_not_said_to_be_sent_as_text(
    tmp_path: Path,
) -> None:
    need_ocr()
    (tmp_path / "shot.png").write_bytes(png(40, 30))
    async with ModelServer(LOOK, "Nothing.") as server:
        media = MediaSettings(vision="ocr")
        async with chatting(tmp_path, server, "blind", media) as chat:
            await chat.say("which number?")
            (withheld,) = chat.rows(PictureWithheld)
        assert b"OCR found no text in it." in server.posts[1].body
    assert isinstance(withheld, PictureWithheld)
    assert "instead" not in withheld.detail


async def test_a_picture_that_nobody_could_describe_is_not_said_to_be_described(
    tmp_path: Path,
) -> None:
    picture = tmp_path / "shot.png"
    picture.write_bytes(png(4, 3))
    fault = ServerFault(status=400, message="no")

    def respond(request: Recorded) -> ScriptedResponse:
        if asked(request) == "seeing":
            return ScriptedResponse(fault=fault)
        return ScriptedResponse(text="fine")

    async with (
        ModelServer(respond=respond) as server,
        chatting(tmp_path, server, "blind", MediaSettings(vision="off")) as chat,
    ):
        await chat.say("what is it?", picture)
        (withheld,) = chat.rows(PictureWithheld)
    assert isinstance(withheld, PictureWithheld)
    assert "instead" not in withheld.detail


async def test_a_refused_picture_of_vision_analyze_does_not_poison_the_session(
    tmp_path: Path,
) -> None:
    (tmp_path / "shot.png").write_bytes(png(4, 3))
    fault = ServerFault(status=400, message="Could not process image")

    def respond(request: Recorded) -> ScriptedResponse:
        if has_picture(request):
            return ScriptedResponse(fault=fault)
        body = request.body
        return (
            LOOK
            if b"first" in body and b"tool_calls" not in body
            else ScriptedResponse(text="fine")
        )

    async with (
        ModelServer(respond=respond) as server,
        chatting(tmp_path, server, "seeing") as chat,
    ):
        await chat.say("first")
        count = len(server.posts)
        await chat.say("and now?")
        assert len(server.posts) == count + 1
        ends = chat.rows(TurnEnded)
        (withheld,) = chat.rows(PictureWithheld)
    assert [end.reason for end in ends if isinstance(end, TurnEnded)] == [
        "done",
        "done",
    ]
    assert isinstance(withheld, PictureWithheld)
    assert withheld.why == "refused"


@pytest.mark.parametrize(
    ("model", "looks", "ocr", "offered"),
    [
        ("seeing", "off", False, True),
        ("blind", "own:seeing", False, True),
        ("blind", "off", True, True),
        ("blind", "off", False, False),
    ],
)
async def test_the_tool_is_offered_only_if_anything_looks_at_pictures(
    tmp_path: Path, model: str, looks: str, ocr: bool, offered: bool
) -> None:
    async with (
        ModelServer() as server,
        chatting(tmp_path, server, model, auxiliary=looks) as chat,
    ):
        looker = SessionPictures(
            chat.agent.engine, chat.app.settings.media.vision, lambda: ocr
        )
        ports = PicturePorts(looker, NoImageSpending())
        tools = PictureTools(chat.app, Secrets({}, {}), ports, chat.session).tools()
        (look,) = tools
        assert isinstance(look, FunctionTool)
        assert look.has_joined() == offered


@pytest.mark.parametrize("served", ["seeing", "blind"])
async def test_what_is_said_of_a_picture_is_true_of_the_model_that_the_server_chose(
    tmp_path: Path, served: str
) -> None:
    picture = tmp_path / "shot.png"
    picture.write_bytes(png(4, 3))
    async with ModelServer("Black.", models=(served,)) as server:
        media = MediaSettings(vision="off")
        async with chatting(tmp_path, server, "", media, auxiliary="off") as chat:
            await chat.say("which colour is it?", picture)
            withheld = chat.rows(PictureWithheld)
        (post,) = server.posts
        assert asked(post) == served
        assert has_picture(post) == (served == "seeing")
    assert bool(withheld) == (served == "blind")
    for one in withheld:
        assert isinstance(one, PictureWithheld)
        assert "own:blind" in one.detail
