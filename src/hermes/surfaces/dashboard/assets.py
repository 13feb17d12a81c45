"""The files of the page: under versioned addresses, compressed, and the modules joined into bundles.

`/static/v/VERSION/...` never changes, so a browser keeps it; VERSION is a hash of all files. The page at `/` names
the version, and is the only file that a browser requests again. When a file changes on disk, the version changes.
"""

import asyncio
import gzip
import hashlib
import importlib.resources
import mimetypes
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from starlette.responses import Response

from hermes.surfaces.dashboard.access_control import SANDBOX_POLICY
from hermes.surfaces.dashboard.bundles import MAIN, ModuleBundles
from hermes.surfaces.dashboard.page_language import (
    FOLDER,
    PageSentences,
    direction,
    page_sentences,
)
from hermes.surfaces.web.endpoint import (
    MIN_GZIP_BYTES,
    Endpoint,
    EndpointCall,
    accepts_gzip,
    find_file,
)
from hermes.surfaces.web.errors import Refusal
from hermes.text.translation import (
    current_language,
    current_sentences,
    to_translate,
    translator,
)

t = translator(__name__)


_CACHE_FOREVER = "private, max-age=31536000, immutable"  # not translated: a header
"""For vendored files and versioned addresses, whose content never changes."""
_REVALIDATE = "no-cache"
_VERSIONED = "v/"
_OPEN_FILES = ("favicon.svg", "icon-192.png", "icon-512.png", "manifest.webmanifest")
"""Fetched without the cookie when the page is installed as an app; they hold nothing private."""
_SHEET_LINK = re.compile(
    r'<link rel="stylesheet" href="\{files\}/(style/[\w-]+\.css)">'
)
_THEME_SCRIPT = "app/initial_theme.js"
_INLINE_SCRIPT = '<script src="{files}/app/initial_theme.js"></script>'
_STYLE_IMPORT = re.compile(rb'^@import url\("([\w-]+\.css)"\);$', re.MULTILINE)
_OLD_VERSION = to_translate("The page was updated. Reload it.")


class _Asset(NamedTuple):
    content: bytes
    kind: str | None
    etag: str

    @property
    def is_text(self) -> bool:
        kind = self.kind or ""
        return kind.startswith("text/") or kind.endswith(("json", "svg+xml"))


class _Release:
    """One state of the files: the bundles and the page, made when they are first asked for."""

    def __init__(self, top: Path, state: tuple[str, ...]) -> None:
        self._top = top
        self.state = state
        """The paths with their sizes and times, to notice a change."""
        texts = {
            path.relative_to(top).as_posix(): path.read_bytes()
            for path in _files(top)
            if "vendor" not in path.relative_to(top).parts
        }
        digest = hashlib.sha256()
        for name, content in sorted(texts.items()):
            digest.update(f"{name} {len(content)}\n".encode() + content)
        self.version = digest.hexdigest()[:16]
        self.files = f"/static/{_VERSIONED}{self.version}"
        modules = {
            name: content.decode()
            for name, content in texts.items()
            if name.endswith(".js")
        }
        self._bundles = ModuleBundles(modules, self.files)

    def page(self, language: str, sentences: PageSentences | None) -> bytes:
        """index.html with the addresses of this version, in a language."""
        preloads = [f"{self.files}/{MAIN}.js"]
        preloads += [f"/static/{path}" for path in self._bundles.vendored]
        links = "\n".join(
            f'<link rel="modulepreload" href="{address}">'  # not translated
            for address in preloads
        )
        text = (self._top / "index.html").read_text()
        text = _SHEET_LINK.sub(self._inline_sheet, text)
        text = text.replace(_INLINE_SCRIPT, self._inline_script())
        text = text.replace("<!-- preloads -->", links)
        text = text.replace(
            'lang="en"', f'lang="{language}" dir="{direction(language)}"', 1
        )
        script = f"{self.files}/{sentences.name}" if sentences else ""
        tag = f'<script src="{script}"></script>' if script else ""
        text = text.replace("<!-- sentences -->", tag)
        return text.replace("{files}", self.files).encode()

    def _inline_sheet(self, found: re.Match[str]) -> str:
        """A style sheet in the page itself: nothing is painted before it is there, so it must not be waited for."""
        return f"<style>\n{(self._top / found[1]).read_text()}</style>"

    def _inline_script(self) -> str:
        """The script that sets the theme, in the page itself for the same reason. The policy has its hash."""
        return f"<script>{(self._top / _THEME_SCRIPT).read_text()}</script>"

    def bundle(self, name: str) -> bytes | None:
        stem = name.removesuffix(".js")
        is_bundle = name.endswith(".js") and stem in self._bundles.names
        return self._bundles.bundle(stem).encode() if is_bundle else None

    def stand_in(self, name: str) -> bytes | None:
        text = self._bundles.stand_in(name)
        return None if text is None else text.encode()


class Assets:
    """Serves the files from memory."""

    def __init__(self) -> None:
        self._top = Path(
            str(importlib.resources.files("hermes.surfaces.dashboard") / "static")
        ).resolve()
        self._release: _Release | None = None
        self._cached: dict[tuple[str, str], _Asset] = {}
        self._compressed: dict[str, bytes] = {}

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint("GET", "/", "observe", self._page, answer=None, is_page=True),
            Endpoint("GET", "/preview", "observe", self._preview, answer=None),
            Endpoint("GET", "/service-worker.js", "observe", self._worker, answer=None),
            *(
                Endpoint("GET", f"/{name}", "open", self._open_file(name), answer=None)
                for name in _OPEN_FILES
            ),
            Endpoint(
                "GET", "/static/{file:path}", "observe", self._static, answer=None
            ),
        ]

    async def _page(self, call: EndpointCall) -> Response:
        """The page."""
        release = await asyncio.to_thread(self._current)
        language, sentences = current_language(), current_sentences()
        script = await asyncio.to_thread(page_sentences, sentences)
        key = f"page {language} {script.name if script else ''}"
        page = self._cache(key, lambda: release.page(language, script), "page.html")
        return await self._send(call, page, varies="accept-encoding, accept-language")

    async def _preview(self, call: EndpointCall) -> Response:
        """An empty document in a sandbox, which shows what the page gives it. It holds nothing private."""
        asset = self._cache("preview", self.preview_document, "preview.html")
        response = await self._send(call, asset)
        response.headers["content-security-policy"] = SANDBOX_POLICY
        return response

    def inline_script(self) -> bytes:
        """The script in the page itself. The policy names it by its hash, so a changed one runs after a restart."""
        return (self._top / _THEME_SCRIPT).read_bytes()

    def preview_document(self) -> bytes:
        return (self._top / "preview.html").read_bytes()

    async def _worker(self, call: EndpointCall) -> Response:
        """The service worker, which must lie at the top to serve the page."""
        path = self._top / "app" / "service_worker.js"
        return await self._send(call, self._cache("worker", path.read_bytes, path.name))

    def _open_file(self, name: str) -> Callable[[EndpointCall], object]:
        async def answer(call: EndpointCall) -> Response:
            """A file of the installed app."""
            path = self._top / name
            return await self._send(call, self._cache(name, path.read_bytes, name))

        return answer

    async def _static(self, call: EndpointCall) -> Response:
        """A file of the page."""
        name: str = call.path["file"]
        release = await asyncio.to_thread(self._current, is_checked=False)
        if not name.startswith(_VERSIONED):
            return await self._unversioned(call, release, name)
        version, _, rest = name.removeprefix(_VERSIONED).partition("/")
        if version != release.version:
            release = await asyncio.to_thread(self._current)
        if version != release.version:
            raise Refusal(
                404, t("This is a file of another version."), t.marked(_OLD_VERSION)
            )
        if rest.startswith(FOLDER):
            return await self._sentences(call, rest)
        content = release.bundle(rest)
        if content is None:
            return await self._send(call, self._file(rest), lasts=True)
        asset = self._cache(name, lambda: content, rest)
        return await self._send(call, asset, lasts=True)

    async def _sentences(self, call: EndpointCall, name: str) -> Response:
        """The sentences of the browser's language."""
        found = await asyncio.to_thread(page_sentences, current_sentences())
        if found is None:
            raise Refusal(404, t("There is no such file."))
        asset = self._cache(found.name, lambda: found.script, found.name)
        return await self._send(call, asset, lasts=found.name == name)

    async def _unversioned(
        self, call: EndpointCall, release: _Release, name: str
    ) -> Response:
        """A library, or a module by its own path, as a plugin may import it."""
        if (content := release.stand_in(name)) is not None:
            return await self._send(call, self._cache(name, lambda: content, name))
        path = find_file(self._top, name)
        lasts = path is not None and path.is_relative_to(self._top / "vendor")
        return await self._send(call, self._file(name), lasts=lasts)

    def _file(self, name: str) -> _Asset:
        path = find_file(self._top, name)
        if path is None:
            raise Refusal(404, t("There is no such file."))
        return self._cache(
            path.relative_to(self._top).as_posix(), lambda: _content(path), path.name
        )

    def _cache(self, key: str, read: Callable[[], bytes], name: str) -> _Asset:
        version = self._release.version if self._release else ""
        found = self._cached.get((version, key))
        if found is None:
            content = read()
            etag = f'"{hashlib.sha256(content).hexdigest()[:20]}"'
            found = self._cached[version, key] = _Asset(content, _kind(name), etag)
        return found

    async def _send(
        self,
        call: EndpointCall,
        asset: _Asset,
        *,
        lasts: bool = False,
        varies: str = "accept-encoding",
    ) -> Response:
        headers = {
            "cache-control": _CACHE_FOREVER if lasts else _REVALIDATE,
            "etag": asset.etag,
            "vary": varies,
        }
        if call.request.headers.get("if-none-match") == asset.etag:
            return Response(status_code=304, headers=headers)
        content = asset.content
        is_long = len(content) >= MIN_GZIP_BYTES
        if is_long and asset.is_text and accepts_gzip(call.request):
            content = await asyncio.to_thread(self._compress, asset)
            headers["content-encoding"] = "gzip"
        return Response(content, media_type=asset.kind, headers=headers)

    def _compress(self, asset: _Asset) -> bytes:
        found = self._compressed.get(asset.etag)
        if found is None:
            found = gzip.compress(asset.content, 9, mtime=0)
            self._compressed[asset.etag] = found
        return found

    def _current(self, *, is_checked: bool = True) -> _Release:
        """The release of the files as they are now; unchecked, as they were when a page was last opened."""
        release = self._release
        if release is not None and not is_checked:
            return release
        state = tuple(_stamp(path) for path in _files(self._top))
        if release is None or release.state != state:
            release = _Release(self._top, state)
            self._cached.clear()
            self._compressed.clear()
            self._release = release
        return release


def _files(top: Path) -> list[Path]:
    return sorted(path for path in top.rglob("*") if path.is_file())


def _stamp(path: Path) -> str:
    facts = path.stat()
    return f"{path} {facts.st_mtime_ns:x} {facts.st_size:x}"


def _content(path: Path) -> bytes:
    """A file, with the style sheets of its folder that it imports: a browser would ask for them only after it."""
    content = path.read_bytes()
    if path.suffix != ".css":
        return content

    def imported(found: re.Match[bytes]) -> bytes:
        return (path.parent / found[1].decode()).read_bytes()

    return _STYLE_IMPORT.sub(imported, content)


def _kind(name: str) -> str | None:
    kinds = {".js": "text/javascript", ".webmanifest": "application/manifest+json"}
    return kinds.get(Path(name).suffix) or mimetypes.guess_type(name)[0]
