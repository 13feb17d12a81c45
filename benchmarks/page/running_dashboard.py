"""The installed `hermes dashboard`, with a scripted model, for as long as a part of the benchmark takes."""

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from playwright.async_api import Browser, StorageState

from hermes.testing.installed import InstalledHermes
from hermes.testing.model_server import ModelServer, Recorded
from hermes.testing.scripted_responses import ScriptedResponse

SETTINGS = 'model:\n  default: gpt-5\nlearning:\n  mode: "off"\n'


class PageHost(NamedTuple):
    """A running dashboard, and a browser's cookies that are signed in to it."""

    url: str
    state: StorageState
    home: Path


@asynccontextmanager
async def running_dashboard(
    browser: Browser,
    folder: Path,
    respond: Callable[[Recorded], ScriptedResponse],
    prepare: Callable[[Path], None] | None = None,
) -> AsyncIterator[PageHost]:
    """Runs it until the end of the block. `prepare` fills its home first."""
    async with ModelServer(respond=respond) as model:
        hermes = InstalledHermes(folder, model.url)
        hermes.home.mkdir()
        (hermes.home / "config.yaml").write_text(SETTINGS)
        if prepare is not None:
            prepare(hermes.home)
        process = await hermes.start("dashboard", "--port", "0", "--no-open")
        if process.stdout is None:
            raise SystemExit("the dashboard has no output")
        try:
            said = ""
            while "code=" not in said:
                line = (await process.stdout.readline()).decode()
                if not line:
                    raise SystemExit("the dashboard did not start")
                said += line
            (url,) = re.findall(r"Hermes is at (\S+)", said)
            (link,) = re.findall(r"(\S+/login\?code=\S+)", said)
            context = await browser.new_context()
            await (await context.new_page()).goto(link)
            state = await context.storage_state()
            await context.close()
            yield PageHost(f"{url}/", state, hermes.home)
        finally:
            process.terminate()
            await process.communicate()
