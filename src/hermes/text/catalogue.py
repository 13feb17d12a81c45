"""The sentences of one language: the catalogue that comes with Hermes, and a person's own texts over it.

`gettext` of the standard library reads the catalogue. This module is imported only where a language other than English
was chosen, or where somebody has texts of their own.
"""

import gettext
import importlib.resources
import logging
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from importlib.resources.abc import Traversable
from pathlib import Path

from hermes.text.logged_sentences import LoggedSentences
from hermes.text.po_file import PoError, PoKey, mo_keys, parse_po

MAX_OVERLAY_BYTES = 1024 * 1024
APPROVAL_CONTEXTS = frozenset(
    (
        "surfaces.terminal.approval",
        "surfaces.terminal.call_words",
        "surfaces.terminal.codex_summary",
        "surfaces.terminal.question_menu",
        "surfaces.terminal.summary_words",
        "surfaces.tui.menu_rows",
        "surfaces.tui.mode_switch",
        "surfaces.gateway.questions",
    )
)
"""The modules that ask for approval. A file with texts may come from somebody else, and "Deny" must not mean yes."""
_POLICY = "tools.policy."
"""The modules that say why they ask."""
SCOPE_CONTEXT = "tools.policy.scope_words"
"""The module that says what a lasting answer covers."""
QUESTION_CONTEXTS = frozenset(
    (
        "app.learning.tools",
        "core.accepted_plan",
        "mcp.definitions",
        "mcp.elicitation",
        "mcp.tool_pins",
        "tools.present_plan",
    )
)
"""The modules that ask a person something in Hermes' own words."""
REASON_CONTEXTS = (
    _POLICY,
    "tools.sensitive",
    "mcp.servers",
    "app.turn_checks",
    "codex.approvals",
)
"""Where the reasons come from that a request for approval shows."""
_UNTRANSLATED = re.compile(r'^msgstr(?:\[0\])? ""\n(?!")', re.MULTILINE)
"""An entry of a `.po` file without a translation. A longer one follows on lines of its own."""
_FORMAT = re.compile(r"\{(\w+)[!:][^{}]*\}")
"""A value with a format. What stands in the log has it already."""


log = logging.getLogger(__name__)
log.addHandler(logging.NullHandler())  # before a log is started, nothing goes to stderr


class _English(gettext.NullTranslations):
    """What is missing in a catalogue: counted, logged once, and shown in English."""

    def __init__(self, language: str) -> None:
        super().__init__()
        self._language = language
        self.missing: Counter[tuple[str, str]] = Counter()

    # pyrefly: ignore[missing-override-decorator]
    def pgettext(self, context: str, message: str) -> str:
        self._count(context, message)
        return message

    # pyrefly: ignore[missing-override-decorator]
    def npgettext(self, context: str, msgid1: str, msgid2: str, n: int) -> str:
        self._count(context, msgid1)
        return msgid1 if n == 1 else msgid2

    def _count(self, context: str, message: str) -> None:
        self.missing[context, message] += 1
        if self._language != "en" and self.missing[context, message] == 1:
            log.warning("no %s text, English is shown: %s: %s", self._language, context, message)  # fmt: skip


class Catalogue:
    """The sentences of a language."""

    def __init__(self, language: str, overlay: Path | None = None) -> None:
        """`overlay` is a `.po` file with a person's own texts; there need not be one."""
        self.language = language
        self._english = _English(language)
        self._translations: gettext.NullTranslations = self._english
        self.overlay_problem = ""
        """Why the person's own texts can't be used."""
        if language != "en":
            with _compiled(language).open("rb") as file:
                self._translations = gettext.GNUTranslations(file)
            self._translations.add_fallback(self._english)
        self.overlay = self._read(overlay) if overlay is not None else {}
        self._own = {
            (key.context, key.text): forms for key, forms in self.overlay.items()
        }

    @property
    def missing(self) -> Counter[tuple[str, str]]:
        """How often each sentence was needed and not there, by module and sentence."""
        return self._english.missing if self.language != "en" else Counter()

    def sentence(self, context: str, text: str) -> str:
        own = self._own_forms(context, text)
        if own:
            return own[0]
        return self._translations.pgettext(context, text)

    def plural(self, context: str, one: str, many: str, count: int) -> str:
        own = self._own_forms(context, one)
        if own:
            return own[min(self.form(count), len(own) - 1)]
        return self._translations.npgettext(context, one, many, count)

    def reason(self, text: str) -> str:
        return self._logged.shown(text)

    def approval_reason(self, text: str) -> str:
        shown = self._approvals.shown
        if (found := shown(text)) != text or not text.endswith(")"):
            return found
        # What codex wants, and the policy's concern behind it.
        wish, bracket, concern = text[:-1].rpartition(" (")
        return f"{shown(wish)} ({shown(concern)})" if bracket else text

    def approval_scope(self, text: str) -> str:
        what = text
        reasons: list[str] = []
        if text.endswith(")"):
            head, _, tail = text[:-1].rpartition(" (")
            reasons = [self._approvals.whole(one) or "" for one in tail.split("; ")]
            what = head if all(reasons) else text
        shown = self._scopes.whole(what) or what
        return shown if what == text else f"{shown} ({'; '.join(reasons)})"

    def question(self, text: str) -> str:
        lines = text.split("\n")
        return "\n".join(self._questions.whole(one) or one for one in lines)

    @cached_property
    def _questions(self) -> LoggedSentences:
        keys = (key for key in self._every_key() if key.context in QUESTION_CONTEXTS)
        return LoggedSentences(keys, self._hermes_own)

    @cached_property
    def _scopes(self) -> LoggedSentences:
        keys = (key for key in self._reason_keys() if key.context == SCOPE_CONTEXT)
        return LoggedSentences(keys, self._hermes_own)

    @cached_property
    def _approvals(self) -> LoggedSentences:
        return LoggedSentences(self._reason_keys(), self._hermes_own)

    def _reason_keys(self) -> Iterator[PoKey]:
        for key in self._every_key():
            if key.context.startswith(REASON_CONTEXTS):
                yield key

    def _every_key(self) -> Iterator[PoKey]:
        """The sentences that come with Hermes; none in English."""
        if self.language != "en":
            yield from mo_keys(_compiled(self.language).read_bytes())

    def _hermes_own(self, key: PoKey, values: Mapping[str, str], count: int) -> str:
        """A sentence as the catalogue has it, whatever texts of their own a person has."""
        catalogue = self._translations
        found = (
            catalogue.npgettext(key.context, key.text, key.plural, count)
            if key.plural
            else catalogue.pgettext(key.context, key.text)
        )
        return _FORMAT.sub(r"{\1}", found).format_map(values)

    @cached_property
    def _logged(self) -> LoggedSentences:
        return LoggedSentences(self._keys(), self._filled)

    def _keys(self) -> Iterator[PoKey]:
        """The sentences of the catalogue; of English, those that the person has changed."""
        yield from self.overlay
        if self.language != "en":
            yield from mo_keys(_compiled(self.language).read_bytes())

    def _filled(self, key: PoKey, values: Mapping[str, str], count: int) -> str:
        """A sentence with values that have their formats already."""
        found = (
            self.plural(key.context, key.text, key.plural, count)
            if key.plural
            else self.sentence(key.context, key.text)
        )
        known = {"count": f"{count:,}", **values}  # "one" may stand for the number
        try:
            return _FORMAT.sub(r"{\1}", found).format_map(known)
        except (LookupError, ValueError, AttributeError):  # a mistake in one's own text
            english = key.plural if key.plural and count != 1 else key.text
            return _FORMAT.sub(r"{\1}", english).format_map(known)

    def _own_forms(self, context: str, text: str) -> tuple[str, ...]:
        """The person's own text, for this module or for all of them. Approvals always have Hermes' own."""
        is_asked = context in APPROVAL_CONTEXTS or context in QUESTION_CONTEXTS
        if not self._own or is_asked or context.startswith(_POLICY):
            return ()
        return self._own.get((context, text)) or self._own.get(("", text), ())

    def form(self, count: int) -> int:
        """Which form of a plural a number takes."""
        rule = getattr(self._translations, "plural", None)
        if rule is None:
            return int(count != 1)
        return int(rule(count))

    def _read(self, path: Path) -> dict[PoKey, tuple[str, ...]]:
        try:
            if path.stat().st_size > MAX_OVERLAY_BYTES:
                self.overlay_problem = f"{path}: larger than 1 MiB"  # not translated
                return {}
            found = parse_po(path.read_text("utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, UnicodeDecodeError, PoError) as error:
            self.overlay_problem = f"{path}: {error}"
            return {}
        found.pop(PoKey("", ""), None)
        return found


def _compiled(language: str) -> Traversable:
    return importlib.resources.files("hermes.locales") / f"{language}.mo"


def untranslated(language: str) -> int:
    """How many sentences of a language's catalogue are still shown in English."""
    if language == "en":
        return 0
    path = importlib.resources.files("hermes.locales") / f"{language}.po"
    return len(_UNTRANSLATED.findall(path.read_text("utf-8")))


@lru_cache(maxsize=32)
def _shared(language: str, overlay: Path | None, _changed: int) -> Catalogue:
    return Catalogue(language, overlay)


def find_catalogue(language: str, folder: Path | None) -> Catalogue | None:
    """Returns the sentences of a language, with the texts of one's own in `folder`; None for English without such texts."""
    overlay, changed = None, 0
    if folder is not None:
        path = folder / f"{language}.po"
        try:
            overlay, changed = path, path.stat().st_mtime_ns
        except OSError:
            overlay = None
    if language == "en" and overlay is None:
        return None
    return _shared(language, overlay, changed)
