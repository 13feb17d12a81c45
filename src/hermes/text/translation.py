"""Sentences in the language of whoever reads them.

    t = translator(__name__)
    t("Undid the last turn.")
    t("{count} file in {folder}", "{count} files in {folder}", count=3, folder="src")

The English sentence in the code is the key, together with the module. English is no lookup, so nothing is loaded for it.
The language is the request's, where somebody else than the user of this process reads the answer (`in_language`), or
else the process's (`use_language`).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, Protocol

LANGUAGES = {
    "en": "English",
    "zh": "简体中文",
    "zh-hant": "繁體中文",
    "ja": "日本語",
    "de": "Deutsch",
    "es": "Español",
    "fr": "Français",
    "tr": "Türkçe",
    "uk": "Українська",
    "af": "Afrikaans",
    "ko": "한국어",
    "it": "Italiano",
    "ga": "Gaeilge",
    "pt": "Português",
    "ru": "Русский",
    "hu": "Magyar",
    "ar": "العربية",
}
"""The languages by their codes, each under its own name."""
RIGHT_TO_LEFT = frozenset({"ar"})


class Sentences(Protocol):
    """The sentences of one language. What is not there is the English one."""

    language: str
    overlay_problem: str
    """Why a person's own texts can't be used; empty if they can, or there are none."""

    def sentence(self, context: str, text: str) -> str: ...

    def plural(self, context: str, one: str, many: str, count: int) -> str: ...

    def reason(self, text: str) -> str:
        """A text from the log: each sentence in it that a module made with `logged` or `later`."""
        ...

    def approval_reason(self, text: str) -> str:
        """Why a person is asked. It is Hermes' own translation: a person's own texts don't count here."""
        ...

    def approval_scope(self, text: str) -> str:
        """What a lasting answer covers. Also Hermes' own translation; commands and names in it stay as they are."""
        ...

    def question(self, text: str) -> str:
        """A question or a choice: each line that is Hermes' own, not a model's. Also Hermes' own translation."""
        ...


class _ProcessLanguage:
    """The language of the user of this process. It is chosen when the first sentence is needed."""

    def __init__(self) -> None:
        self.choose: Callable[[], Sentences | None] | None = None
        self.sentences: Sentences | None = None

    def get(self) -> Sentences | None:
        if self.choose is not None:
            choose, self.choose = self.choose, None  # it may need a sentence itself
            self.sentences = choose()
        return self.sentences


_process = _ProcessLanguage()
_request: ContextVar[Sentences | Literal["unset"] | None] = ContextVar(
    "language", default="unset"
)


class Translator:
    """Translates the sentences of one module, or of one command."""

    __slots__ = ("_context",)

    def __init__(self, context: str) -> None:
        self._context = context

    def __call__(
        self, text: str, plural: str | None = None, /, **values: object
    ) -> str:
        """Returns the sentence with its values. With a `plural`, the value `count` chooses the form."""
        sentences = current_sentences()
        if plural is None:
            found = (
                text if sentences is None else sentences.sentence(self._context, text)
            )
        else:
            count = values["count"]
            assert isinstance(count, int)  # noqa: S101 - a mistake in the code that calls
            one, text = text, text if count == 1 else plural
            found = text
            if sentences is not None:
                found = sentences.plural(self._context, one, plural, count)
        return _filled(found, text, values) if values else found

    def later(
        self, text: str, plural: str | None = None, /, **values: object
    ) -> "Later":
        """Returns the sentence of an error: English for logs and models, translated where a person reads it."""
        return Later(self, text, plural, values)

    def logged(self, text: str, plural: str | None = None, /, **values: object) -> str:
        """Returns a sentence for the log, in English. `shown_reason` translates it where a person reads it."""
        return str(Later(self, text, plural, values))

    def marked(self, text: str, /, **values: object) -> str:
        """Returns a sentence that the module marked with `to_translate`, or with the same words in a table."""
        return self(text, **values)

    def marked_later(self, text: str, /, **values: object) -> "Later":
        """Returns such a sentence as that of an error."""
        return Later(self, text, None, values)


class LaterWords:
    """Words that are translated when they are shown, also as a value in another sentence. Their `str` is English."""

    __slots__ = ()

    def shown(self) -> str:
        """The words in the reader's language."""
        raise NotImplementedError


class Later(LaterWords):
    """A sentence that is translated when it is shown. Its `str` is English."""

    __slots__ = ("_plural", "_text", "_translate", "_values")

    def __init__(
        self,
        translate: Translator,
        text: str,
        plural: str | None,
        values: dict[str, object],
    ) -> None:
        self._translate = translate
        self._text = text
        self._plural = plural
        self._values = values

    # pyrefly: ignore[missing-override-decorator]
    def shown(self) -> str:
        return self._translate(self._text, self._plural, **self._values)

    def __str__(self) -> str:
        with in_language(None):
            return self.shown()


class LoggedWords(LaterWords):
    """Sentences of the log as those of an error. Their `str` is English."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    # pyrefly: ignore[missing-override-decorator]
    def shown(self) -> str:
        return shown_reason(self._text)

    def __str__(self) -> str:
        return self._text


class JoinedWords(LaterWords):
    """Sentences one after the other, as those of an error. Their `str` is English."""

    __slots__ = ("_parts",)

    def __init__(self, *parts: str | LaterWords) -> None:
        self._parts = parts

    # pyrefly: ignore[missing-override-decorator]
    def shown(self) -> str:
        words = (one if isinstance(one, str) else one.shown() for one in self._parts)
        return " ".join(filter(None, words))

    def __str__(self) -> str:
        return " ".join(filter(None, map(str, self._parts)))


def _filled(found: str, text: str, values: dict[str, object]) -> str:
    """A translation with its values; the English text if the translation has a mistake, as one's own may."""
    values = {
        name: value.shown() if isinstance(value, LaterWords) else value
        for name, value in values.items()
    }
    try:
        return found.format_map(values)
    except (KeyError, IndexError, ValueError, AttributeError, TypeError):
        if found is text:
            raise
        return text.format_map(values)


def shown_reason(text: str) -> str:
    """Returns a reason from the log in the reader's language. Words that are not Hermes' own stay as they are."""
    sentences = current_sentences()
    return text if sentences is None or not text else sentences.reason(text)


def shown_problem(text: str) -> str:
    """Returns a problem, `place: reason`, with its reason in the reader's language."""
    place, colon, reason = text.partition(": ")
    return f"{place}{colon}{shown_reason(reason)}" if colon else shown_reason(text)


def shown_approval_reason(text: str) -> str:
    """Returns why a person is asked, in the reader's language. Only for showing: the hash of a request has the English text."""
    sentences = current_sentences()
    return text if sentences is None or not text else sentences.approval_reason(text)


def shown_approval_scope(text: str) -> str:
    """Returns what a lasting answer covers, in the reader's language. Only for showing, as `shown_approval_reason`."""
    sentences = current_sentences()
    return text if sentences is None or not text else sentences.approval_scope(text)


def shown_question(text: str) -> str:
    """Returns a question, or one of its choices, in the reader's language. Only for showing: an answer is in English."""
    sentences = current_sentences()
    return text if sentences is None or not text else sentences.question(text)


def to_translate(text: str) -> str:
    """Marks a sentence in a module's constant as one to translate; `t.marked` translates it where it is shown."""
    return text


def translator(module: str) -> Translator:
    """Returns the function that translates the sentences of a module, given its `__name__`."""
    return Translator(module.removeprefix("hermes."))


def use_language(choose: Callable[[], Sentences | None]) -> None:
    """Sets how the language of this process is chosen; None is English. It is called when the first sentence is needed."""
    _process.choose = choose


@contextmanager
def in_language(sentences: Sentences | None) -> Iterator[None]:
    """Translates into another language: that of somebody who sent a request."""
    token = _request.set(sentences)
    try:
        yield
    finally:
        _request.reset(token)


def current_language() -> str:
    """The code of the language that sentences are in now."""
    sentences = current_sentences()
    return "en" if sentences is None else sentences.language


def current_sentences() -> Sentences | None:
    """The sentences of that language; None for English."""
    chosen = _request.get()
    return _process.get() if chosen == "unset" else chosen
