"""The language of a browser: each request is answered in the language that it accepts, and the page gets that
language's sentences."""

import hashlib
import importlib.resources
import json
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from starlette.types import ASGIApp, Receive, Scope, Send

from hermes.app import App
from hermes.settings.language import accepted_tags, sentences_for
from hermes.text.catalogue import REASON_CONTEXTS, SCOPE_CONTEXT, Catalogue
from hermes.text.po_file import PoKey, parse_po
from hermes.text.translation import RIGHT_TO_LEFT, Sentences, in_language

FOLDER = "sentences/"
CONTEXT = "page"
"""The module of the page's sentences in the catalogue."""
_FORMS = {
    **dict.fromkeys(("zh", "zh-hant", "ja", "ko"), ("other",)),
    **dict.fromkeys(("uk", "ru"), ("one", "few", "many")),
    "ga": ("one", "two", "few", "many", "other"),
    "ar": ("zero", "one", "two", "few", "many", "other"),
}
"""The plural forms of a language in the catalogue's order, as a browser names them."""
_TWO_FORMS = ("one", "other")
_STATIC = Path(__file__).parent / "static"
_APPROVALS = (
    "app/parts/codex_summary.js",
    "app/parts/dialog.js",
    "app/parts/summary_words.js",
    "views/chat/approval_keys.js",
    "views/chat/approvals.js",
    "views/chat/requests.js",
    "views/plugins/plugin.js",
    "views/plugins/review_dialog.js",
)
"""The modules of the page that ask for approval, and the buttons of their dialogs."""
_SENTENCE = re.compile(r"""(?<![\w.])t\(\s*("(?:[^"\\]|\\.)*")""")


class PageSentences(NamedTuple):
    """A script that gives the page its sentences. Its name has a hash of the content."""

    name: str
    script: bytes


class InBrowserLanguage:
    """Answers each request in the language that the browser prefers, unless `display.language` names one.

    Programs are answered in English: errors are part of an interface.
    """

    def __init__(self, application: ASGIApp, app: App) -> None:
        self.application = application
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.application(scope, receive, send)
            return
        with in_language(self._sentences(scope)):
            await self.application(scope, receive, send)

    def _sentences(self, scope: Scope) -> Sentences | None:
        headers: dict[bytes, bytes] = dict(scope["headers"])
        if _is_program(scope["path"], headers):
            return None
        tags = accepted_tags(headers.get(b"accept-language", b"").decode("latin-1"))
        choice = self._app.settings.display.language
        return sentences_for(choice, self._app.home, tags)


def _is_program(path: str, headers: Mapping[bytes, bytes]) -> bool:
    """Whether a program sent the request: with a token, or to the API without the cookie of a browser."""
    is_browser = b"cookie" in headers or not path.startswith("/api/")
    return b"authorization" in headers or not is_browser


def direction(language: str) -> str:
    """The value of `dir` on the page."""
    return "rtl" if language in RIGHT_TO_LEFT else "ltr"


@lru_cache(maxsize=32)
def page_sentences(sentences: Sentences | None) -> PageSentences | None:
    """The page's sentences in a language; None for English, which is in the page itself."""
    if not isinstance(sentences, Catalogue):
        return None
    language = sentences.language
    fixed = approval_sentences() if sentences.overlay else frozenset()
    overlay = {
        key: forms for key, forms in sentences.overlay.items() if key.text not in fixed
    }
    bundled = _bundled(language)
    found = {
        key.text: forms[0] if len(forms) == 1 and not key.plural else list(forms)
        for key, forms in {**bundled, **overlay}.items()
        if key.context in (CONTEXT, "") and key.text
    }
    content = {
        "language": language,
        "forms": _FORMS.get(language, _TWO_FORMS),
        "sentences": found,
        "reasons": {
            key.text: forms[0]
            for key, forms in bundled.items()
            if key.context.startswith(REASON_CONTEXTS) and not key.plural
        },
        "scopes": {
            key.text: forms[0]
            for key, forms in bundled.items()
            if key.context == SCOPE_CONTEXT
        },
    }
    text = f"globalThis.hermesSentences = {json.dumps(content, ensure_ascii=False)};\n"
    script = text.encode()
    digest = hashlib.sha256(script).hexdigest()[:12]
    return PageSentences(f"{FOLDER}{language}-{digest}.js", script)


@lru_cache(maxsize=1)
def approval_sentences() -> frozenset[str]:
    """The sentences of the page's approvals, which a person's own texts don't replace."""
    texts = [(_STATIC / name).read_text("utf-8") for name in _APPROVALS]
    calls = [call for text in texts for call in _SENTENCE.findall(text)]
    return frozenset(json.loads(one) for one in calls)


def _bundled(language: str) -> dict[PoKey, tuple[str, ...]]:
    if language == "en":
        return {}
    path = importlib.resources.files("hermes.locales") / f"{language}.po"
    return parse_po(path.read_text("utf-8"))
