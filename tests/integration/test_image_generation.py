"""`image_generate` with every backend: the fakes speak each API's real shape, the command really runs in the sandbox."""

import base64
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.fakes.image_services import FakeFal, FakeImageApi, reply
from tests.fakes.web_server import WebServer, web_server
from tests.integration.test_tools_images import png
from tests.integration.test_vision import chatting

from hermes.core.ports import ToolContext
from hermes.errors import HermesError, MediaError, MediaErrorKind
from hermes.media.image_backends import ImageSettings, build_backend, chosen_backend
from hermes.media.image_generation import (
    ImageBackend,
    ImageGenerator,
    ImageRequest,
    ImageTool,
    ReferencePicture,
)
from hermes.schema.events import AuxiliaryCalled
from hermes.schema.messages import ToolFinished, Usage
from hermes.settings import Secrets, Settings
from hermes.settings.load import environment
from hermes.settings.media import MediaSettings
from hermes.testing.model_server import ModelServer
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall

PICTURE = png(4, 3)
REFERENCE = ReferencePicture(png(2, 2), "image/png")


def read(source: str) -> bytes:
    return Path(source).read_bytes()


def given(secrets: dict[str, str] | None = None, **settings: Any) -> ImageSettings:
    return ImageSettings(
        msgspec.convert(settings, Settings),
        Secrets(secrets or {}, {}),
        environment(),
        Path("/nonexistent"),
    )


def openai_at(server: WebServer, **more: Any) -> ImageBackend:
    secrets = {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": f"{server.url}/v1"}
    return build_backend(given(secrets, media={"image_generation": "openai", **more}))


async def test_openai_makes_and_changes_pictures() -> None:
    api = FakeImageApi(PICTURE)
    async with web_server(api) as server:
        backend = openai_at(server, images={"model": "gpt-image-2"})
        made = await backend.make(ImageRequest("a cat", "portrait"))
        assert made.data == PICTURE
        assert made.usage == Usage(input_tokens=12, output_tokens=1_056)
        changed = ImageRequest("now a dog", "square", (REFERENCE, REFERENCE))
        assert (await backend.make(changed)).data == PICTURE
    first, second = api.made
    assert first == {
        "path": "/v1/images/generations",
        "model": "gpt-image-2",
        "prompt": "a cat",
        "size": "1024x1536",
    }
    assert second["path"] == "/v1/images/edits"
    assert (second["prompt"], second["size"]) == ("now a dog", "1024x1024")
    assert second["files"] == [("image[]", "image/png", png(2, 2))] * 2


async def test_the_fake_speaks_what_the_official_library_understands() -> None:
    import openai  # takes a second

    api = FakeImageApi(PICTURE)
    async with (
        web_server(api) as server,
        openai.AsyncOpenAI(api_key="sk-test", base_url=f"{server.url}/v1") as client,
    ):
        made = await client.images.generate(model="gpt-image-2", prompt="a cat")
        assert made.data
        assert base64.b64decode(made.data[0].b64_json or "") == PICTURE
        await client.images.edit(
            model="gpt-image-2", prompt="a dog", image=("1.png", PICTURE, "image/png")
        )
    assert api.made[1]["files"] == [("image", "image/png", PICTURE)]


async def test_xai_gets_a_ratio_and_edits_as_json() -> None:
    api = FakeImageApi(PICTURE, "xai-test")
    async with web_server(api) as server:
        secrets = {"XAI_API_KEY": "xai-test", "XAI_BASE_URL": f"{server.url}/v1"}
        backend = build_backend(given(secrets, media={"image_generation": "xai"}))
        await backend.make(ImageRequest("a cat"))
        made = await backend.make(ImageRequest("a dog", "square", (REFERENCE,)))
    assert made.data == PICTURE
    first, second = api.made
    assert (first["model"], first["aspect_ratio"]) == ("grok-imagine-image", "3:2")
    assert second["path"] == "/v1/images/edits"
    assert second["image"]["url"].startswith("data:image/png;base64,")


async def test_fal_waits_in_the_queue_and_fetches_the_picture() -> None:
    fal = FakeFal(PICTURE)
    async with web_server(fal) as server:
        fal.address = server.url
        backend = build_backend(
            given(
                {"FAL_KEY": "fal-test", "FAL_BASE_URL": server.url},
                media={"image_generation": "fal"},
                web={"allow_hosts": [f"127.0.0.1:{server.port}"]},
            )
        )
        assert (await backend.make(ImageRequest("a cat"))).data == PICTURE
        await backend.make(ImageRequest("a dog", "square", (REFERENCE,)))
    first, second = fal.made
    assert (first["path"], first["image_size"]) == (
        "/fal-ai/flux-2-dev",
        "landscape_4_3",
    )
    assert second["path"] == "/fal-ai/flux-2-dev/edit"
    assert second["image_urls"][0].startswith("data:image/png;base64,")


async def test_a_provider_of_the_users_own_has_openais_api() -> None:
    api = FakeImageApi(PICTURE, "mine")
    async with web_server(api) as server:
        own = {"base_url": f"{server.url}/v1", "key_env": "MY_KEY"}
        backend = build_backend(
            given(
                {"MY_KEY": "mine"},
                custom_providers={"studio": own},
                media={"image_generation": "studio", "images": {"model": "sdxl"}},
            )
        )
        assert (await backend.make(ImageRequest("a cat"))).data == PICTURE
    assert (backend.name, api.made[0]["model"]) == ("studio", "sdxl")


async def test_a_command_runs_in_the_sandbox_and_writes_a_file(tmp_path: Path) -> None:
    script = f"""[ "$2" = fail ] && echo no such style >&2 && exit 1
    case "$2" in -*) exit 9;; esac
    [ "$2" = escape ] && {{ touch {tmp_path}/escaped || exit 7; }}
    echo "$2 $3"; cp "$4" "$1\""""
    command = ["sh", "-c", script, "draw", "{output}", "{prompt}"]
    command += ["{width}x{height}", "{references}"]
    settings = given(media={"images": {"command": command}})
    assert chosen_backend(settings) == "command"
    backend = build_backend(settings)
    made = await backend.make(ImageRequest("a {output} cat", "square", (REFERENCE,)))
    assert made.data == png(2, 2)
    await backend.make(ImageRequest("--model=/other", "square", (REFERENCE,)))
    with pytest.raises(MediaError, match=r"exit code 1\. no such style"):
        await backend.make(ImageRequest("fail", "square", (REFERENCE,)))
    with pytest.raises(MediaError, match="exit code 7"):
        await backend.make(ImageRequest("escape", "square", (REFERENCE,)))
    assert not (tmp_path / "escaped").exists()


@pytest.mark.parametrize(
    ("status", "content", "kind", "words"),
    [
        (
            400,
            {"error": {"message": "Your request was rejected by the safety system."}},
            MediaErrorKind.REFUSED,
            "refused the request (Your request was rejected by the safety system)",
        ),
        (413, {"error": "too big"}, MediaErrorKind.TOO_LARGE, "got too much (too big)"),
        (500, "oops", MediaErrorKind.NETWORK, "failed with 500 (oops)"),
        (404, {}, MediaErrorKind.NOT_SUPPORTED, "does not offer this"),
        (200, {"data": []}, MediaErrorKind.REFUSED, "sent no picture"),
        (
            200,
            {"data": [{"b64_json": "%"}]},
            MediaErrorKind.NOT_SUPPORTED,
            "can't be read",
        ),
    ],
)
async def test_what_a_service_answers_is_said_in_one_taxonomy(
    status: int, content: object, kind: MediaErrorKind, words: str
) -> None:
    api = FakeImageApi(PICTURE)
    api.refusal = reply(content, status)
    async with web_server(api) as server:
        with pytest.raises(MediaError) as caught:
            await openai_at(server).make(ImageRequest("a cat"))
    assert caught.value.kind is kind
    assert words in caught.value.message


async def test_a_wrong_key_and_a_dead_service_are_told_apart() -> None:
    async with web_server(FakeImageApi(PICTURE, "sk-other")) as server:
        backend = openai_at(server)
        with pytest.raises(MediaError, match="rejected the API key") as refused:
            await backend.make(ImageRequest("a cat"))
    assert refused.value.kind is MediaErrorKind.REFUSED
    assert "OPENAI_API_KEY" in refused.value.hint
    with pytest.raises(MediaError, match="can't be reached") as dead:
        await backend.make(ImageRequest("a cat"))
    assert dead.value.kind is MediaErrorKind.NETWORK


@pytest.mark.parametrize(
    ("secrets", "media", "name"),
    [
        ({}, {}, ""),
        ({"OPENAI_API_KEY": "k"}, {}, "openai"),
        ({"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}, {}, ""),
        ({"FAL_KEY": "k", "XAI_API_KEY": "k"}, {}, "xai"),
        ({"FAL_KEY": "k"}, {}, "fal"),
        ({"OPENAI_API_KEY": "k"}, {"image_generation": "off"}, ""),
        ({"OPENAI_API_KEY": "k"}, {"images": {"command": ["draw"]}}, "command"),
    ],
)
def test_auto_takes_what_is_set_up(
    secrets: dict[str, str], media: dict[str, Any], name: str
) -> None:
    assert chosen_backend(given(secrets, media=media)) == name


def test_a_backend_without_a_key_says_what_to_do() -> None:
    with pytest.raises(MediaError) as caught:
        build_backend(given(media={"image_generation": "fal"}))
    assert caught.value.kind is MediaErrorKind.NOT_CONFIGURED
    assert caught.value.hint == "Set it: hermes config set FAL_KEY"


class Spent:
    """A budget that keeps what it is told."""

    def __init__(self, refusal: str = "") -> None:
        self.notes: list[tuple[Usage | None, str]] = []
        self._refusal = refusal

    def check(self, session: str, price_usd: float | None) -> None:
        if self._refusal:
            raise HermesError(self._refusal)

    async def note(
        self, session: str, backend: ImageBackend, usage: Usage | None, failure: str
    ) -> None:
        self.notes.append((usage, failure))


async def test_a_picture_is_a_file_before_it_is_told_and_its_price_is_counted(
    tmp_path: Path,
) -> None:
    spent, api = Spent(), FakeImageApi(PICTURE)
    context = ToolContext("c", "s1", tmp_path, lambda text: None)
    async with web_server(api) as server:
        backend = openai_at(server)
        tool = ImageTool(
            ImageGenerator(backend, partial(Path, tmp_path, "media"), spent, 0.04)
        ).image_generate
        result = await tool.run({"prompt": "A cat, on a mat!"}, context)
        (image,) = result.images
        assert Path(image.source).parent == tmp_path / "media" / "s1"
        assert Path(image.source).name.startswith("a-cat-on-a-mat-")
        assert read(image.source) == PICTURE
        assert image.withheld  # the model gets words, the person the picture
        assert spent.notes[0][0] == Usage(
            input_tokens=12, output_tokens=1_056, cost_usd=0.04
        )
        broke = ImageTool(ImageGenerator(backend, Path, Spent("the cap is reached")))
        with pytest.raises(MediaError, match="the cap is reached"):
            await broke.image_generate.run({"prompt": "a dog"}, context)
        assert len(api.made) == 1


async def test_a_conversation_makes_a_picture_and_the_log_says_what_it_cost(
    tmp_path: Path,
) -> None:
    call = ServedCall("image_generate", '{"prompt": "a cat", "aspect_ratio": "square"}')
    draw = f"echo {base64.b64encode(PICTURE).decode()} | base64 -d >$0"
    media = msgspec.convert(
        {"images": {"command": ["sh", "-c", draw, "{output}"], "price": 0.5}},
        MediaSettings,
    )
    async with ModelServer(ScriptedResponse(calls=(call,)), "Here it is.") as server:
        async with chatting(tmp_path, server, "blind", media) as chat:
            await chat.say("draw a cat")
            (finished,) = chat.rows(ToolFinished)
            (called,) = chat.rows(AuxiliaryCalled)
            usage = chat.app.store.sessions.usage(session=chat.session)
        assert b"The picture that you made." in server.posts[1].body
    assert isinstance(finished, ToolFinished)
    assert read(finished.images[0].source) == PICTURE
    assert isinstance(called, AuxiliaryCalled)
    assert (called.task, called.provider, called.model) == ("image", "command", "sh")
    assert sum(row.cost_usd for row in usage if row.provider == "command") == 0.5
