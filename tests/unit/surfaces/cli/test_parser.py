"""Arguments: errors are UsageErrors, and help reads the same on every Python."""

import pytest

from hermes.errors import UsageError
from hermes.surfaces.cli.parser import Parser, add_action


def make() -> Parser:
    parser = Parser("hermes thing", description="Things.")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    show = add_action(actions, "show", "show a thing")
    show.add_argument("-o", "--output", metavar="FILE", help="where to")
    show.add_argument("--limit", type=int, default=3, help="how many")
    return parser


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: ACTION"),
        (["shw"], "there is no 'shw'; did you mean show?"),
        (["zzz"], "there is no 'zzz'; expected one of show"),
        (["show", "--limit", "x"], "invalid int value: 'x'"),
        (["show", "--lim", "1"], "unrecognized arguments: --lim 1"),
    ],
)
def test_wrong_usage_is_an_error_with_a_way_out(
    arguments: list[str], message: str
) -> None:
    with pytest.raises(UsageError) as wrong:
        make().parse_args(arguments)
    assert message in wrong.value.message
    assert wrong.value.hint.startswith("See: hermes thing")


def test_help_names_an_option_once(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        make().parse_args(["show", "--help"])
    text = capsys.readouterr().out
    assert "Show a thing." in text
    assert "-o, --output FILE" in text
