"""Sentences of errors, which are translated when they are shown."""

from hermes.errors import UsageError, for_reader, in_sentences
from hermes.text.translation import Translator, in_language


class _Shouting:
    """A language that is English in capitals."""

    language = "xx"
    overlay_problem = ""

    def reason(self, text: str) -> str:
        return text

    def approval_reason(self, text: str) -> str:
        return text

    def approval_scope(self, text: str) -> str:
        return text

    def question(self, text: str) -> str:
        return text

    def sentence(self, context: str, text: str) -> str:
        return f"{context}: {text.replace('There is no', 'THERE IS NO')}"

    def plural(self, context: str, one: str, many: str, count: int) -> str:
        return f"{context}: {(one if count == 1 else many).replace('left', 'LEFT')}"


def test_an_error_is_english_for_logs_and_models_and_translated_for_people() -> None:
    t = Translator("here")
    with in_language(_Shouting()):
        error = UsageError(
            t.later("There is no {name}.", name="x"),
            hint=t.later("{count} is left.", "{count} are left.", count=2),
        )
        assert str(error) == error.message == "There is no x."
        assert in_sentences(error) == "There is no x. 2 are left."
        assert for_reader(error) == "here: THERE IS NO x. here: 2 are LEFT."
    assert for_reader(error) == in_sentences(error)


def test_plain_texts_of_an_error_are_shown_as_they_are() -> None:
    error = UsageError("No.", hint="Try.")
    with in_language(_Shouting()):
        assert for_reader(error) == "No. Try."
