"""What argparse says on its own is in the reader's language."""

import pytest

from hermes.errors import UsageError
from hermes.surfaces.cli.parser import Parser
from hermes.text.translation import in_language


class _Marked:
    """A language whose sentences are the English ones, marked."""

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
        assert context == "surfaces.cli.parser"
        return f"«{text}»"

    def plural(self, context: str, one: str, many: str, count: int) -> str:
        raise AssertionError(context)


def parser() -> Parser:
    made = Parser("hermes say")
    made.add_argument("words")
    both = made.add_mutually_exclusive_group()
    both.add_argument("--to")
    both.add_argument("--all", action="store_true")
    return made


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "«the following arguments are required: words»"),
        (["hi", "--frob"], "«unrecognized arguments: --frob»"),
        (["hi", "--to"], "«argument --to: «expected one argument»»"),
        (
            ["hi", "--all", "--to", "x"],
            "«argument --to: «not allowed with argument --all»»",
        ),
    ],
)
def test_an_error_is_translated(given: list[str], said: str) -> None:
    with in_language(_Marked()), pytest.raises(UsageError) as error:
        parser().parse_args(given)
    assert error.value.message == said


def test_the_help_is_translated() -> None:
    with in_language(_Marked()):
        text = parser().format_help()
    assert text.startswith("«usage:» hermes say")
    for heading in ("«positional arguments»", "«options»", "«show this help message"):
        assert heading in text
