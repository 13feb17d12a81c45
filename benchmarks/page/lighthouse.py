"""Lighthouse's mobile score for performance, of the chat as it is first opened."""

import asyncio
import json
import os
import re
from pathlib import Path
from urllib.parse import urlsplit

from playwright.async_api import Browser

from benchmarks.page.running_dashboard import PageHost
from hermes.settings.load import environment
from hermes.testing.chromium import installed_chromium
from hermes.testing.fetched import fetched, find_node
from hermes.tools.browser.executable import browser_environment, needs_no_sandbox

VERSION = "13.5.0"
BARS = {"Lighthouse mobile": 95.0}


async def measure_lighthouse(browser: Browser, host: PageHost) -> dict[str, float]:  # noqa: ARG001 - as the other parts
    """The score, from 0 to 100."""
    node = find_node(os.environ)
    folder = fetched(
        f"lighthouse-{VERSION}",
        lambda folder: node.install(f"lighthouse@{VERSION}", folder, os.environ),
        os.environ,
    )
    program = folder / "node_modules" / "lighthouse" / "cli" / "index.js"
    port = str(urlsplit(host.url).port)
    cookies = "; ".join(
        f"{one['name']}={one['value']}"
        for one in host.state.get("cookies", [])
        if re.search(rf"hermes(_{port})?$", one["name"])
    )
    flags = "--headless=new" + (" --no-sandbox" if needs_no_sandbox() else "")
    report = Path(host.home) / "lighthouse.json"
    process = await asyncio.create_subprocess_exec(
        node.program, str(program), host.url, "--quiet", "--output=json",
        f"--output-path={report}", "--only-categories=performance", f"--chrome-flags={flags}",
        f"--extra-headers={json.dumps({'Cookie': cookies})}",
        env={**browser_environment(environment()), "CHROME_PATH": str(installed_chromium(environment())),
             "PATH": os.environ.get("PATH", "")},
    )  # fmt: skip
    if await process.wait():
        raise SystemExit("Lighthouse failed.")
    found = json.loads(report.read_text())
    return {"Lighthouse mobile": 100 * found["categories"]["performance"]["score"]}
