"""The files of the page over HTTP: few, small, and asked for once."""

import gzip
import re
from pathlib import Path

import pytest
from tests.integration.dashboard.harness import Harness

from hermes.surfaces import dashboard
from hermes.surfaces.dashboard.bundles import BundleError, ModuleBundles
from hermes.surfaces.web.endpoint import MIN_GZIP_BYTES

_STATIC = Path(dashboard.__file__).with_name("static")
_STATIC_IMPORT = re.compile(r'^import\b[^"]*"([^"]+)";', re.MULTILINE)


async def test_the_page_needs_few_and_small_files_that_a_browser_keeps(
    harness: Harness,
) -> None:
    async def get(path: str, **headers: str) -> bytes:
        answer = await harness.client.get(
            path, headers={**harness.bearer("observe"), **headers}
        )
        assert answer.status_code in {200, 304}, path
        return answer.content

    page = (await get("/")).decode()
    addresses = set(re.findall(r'(?:href|src)="(/static/[^"]+)"', page))
    sent = 0
    for path in addresses:
        first = await harness.ask("GET", path, scope="observe")
        assert "immutable" in first.headers["cache-control"], path
        is_compressed = first.headers.get("content-encoding") == "gzip"
        assert is_compressed or len(first.content) < MIN_GZIP_BYTES
        sent += len(gzip.compress(first.content, 9))
        assert await get(path, **{"if-none-match": first.headers["etag"]}) == b""
    assert len(addresses) <= 10
    assert sent <= 80_000
    # Nothing that a module of the page imports is missing among the preloads.
    main = (await get(re.findall(r'src="([^"]+main\.js)"', page)[0])).decode()
    assert set(_STATIC_IMPORT.findall(main)) <= addresses


async def test_a_module_under_its_own_path_is_the_one_of_the_bundle(
    harness: Harness,
) -> None:
    text = (await harness.ask("GET", "/static/app/ui.js", scope="observe")).text
    (bundle,) = _STATIC_IMPORT.findall(text)
    assert bundle.endswith("/main.js")
    assert "useStore" in text
    assert "createElement" not in text
    other = bundle.replace("/v/", "/v/0")
    assert (await harness.ask("GET", other, scope="observe")).status_code == 404


async def test_what_an_installed_app_needs_is_open_and_the_rest_is_not(
    harness: Harness,
) -> None:
    manifest = (await harness.client.get("/manifest.webmanifest")).json()
    for icon in manifest["icons"]:
        assert (await harness.client.get(icon["src"])).status_code == 200
    for path in ("/service-worker.js", "/static/app/ui.js", "/api/sessions"):
        assert (await harness.client.get(path)).status_code == 401


async def test_long_answers_of_the_api_are_compressed_for_those_who_read_it(
    harness: Harness,
) -> None:
    headers = harness.bearer("observe")
    wanted = await harness.client.get("/api/settings", headers=headers)
    assert wanted.headers["content-encoding"] == "gzip"
    plain = await harness.client.get(
        "/api/settings", headers={**headers, "accept-encoding": "identity"}
    )
    assert "content-encoding" not in plain.headers
    assert plain.json() == wanted.json()


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ('import { a } from "./b.js";\nexport const c = 1;\n', "each other"),
        ("export let a = 1;\n", "can't be bundled"),
        ('import { a } from "./gone.js";\n', "no app/gone.js"),
    ],
)
def test_modules_that_would_break_in_a_bundle_are_refused(
    module: str, said: str
) -> None:
    sources = {
        "app/main.js": module,
        "app/b.js": 'import { c } from "./main.js";\nexport const a = c;\n',
        "views/chat.js": "",
    }
    with pytest.raises(BundleError, match=said):
        ModuleBundles(sources, "/static/v/1")


def _page_bundles() -> tuple[dict[str, str], ModuleBundles]:
    sources = {
        path.relative_to(_STATIC).as_posix(): path.read_text()
        for path in _STATIC.rglob("*.js")
    }
    return sources, ModuleBundles(sources, "/static/v/1")


def test_a_new_chat_does_not_load_what_only_replies_need() -> None:
    _, bundles = _page_bundles()
    main, session = bundles.bundle("main"), bundles.bundle("session_chat")
    parts = ("app/parts/markdown.js", "app/parts/diff.js")
    views = ("items", "transcript", "conversation", "header")
    for name in (*parts, *(f"views/chat/{view}.js" for view in views)):
        assert f'modules["{name}"] ??=' not in main
        assert f'modules["{name}"] ??=' in session
    assert not [path for path in bundles.vendored if "marked" in path]


def test_a_module_that_passes_others_on_still_has_its_own_address() -> None:
    _, bundles = _page_bundles()
    text = bundles.stand_in("app/parts.js")
    assert text is not None
    assert 'export { Button as Button } from "/static/app/parts/basics.js";\n' in text


def test_every_module_of_the_page_is_in_a_bundle() -> None:
    sources, bundles = _page_bundles()
    own = {path for path in sources if path.startswith(("app/", "views/"))}
    alone = {
        "app/initial_theme.js",
        "app/service_worker.js",
        "app/diagram_frame.js",
    }
    assert {path for path in own if bundles.stand_in(path) is None} == alone
