"""Editing the text of config.yaml: the value reads back, and no other line changes a byte."""

import pytest
import yaml12
from hypothesis import given
from hypothesis import strategies as st

from hermes.settings.parse import parse_config
from hermes.settings.yaml_edit import scalar, with_value, without_value

BUSY = ("store", "busy_timeout")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "store:\n  busy_timeout: 7.5\n"),
        ("# c\n", "# c\nstore:\n  busy_timeout: 7.5\n"),
        (
            "store:\n  busy_timeout: 5 # c\n\n# end\n",
            "store:\n  busy_timeout: 7.5 # c\n\n# end\n",
        ),
        (
            "store:\r\n    busy_timeout:   5\r\n",
            "store:\r\n    busy_timeout:   7.5\r\n",
        ),
        (
            "store: # c\n  # note\n\n# end",
            "store: # c\n  busy_timeout: 7.5\n  # note\n\n# end",
        ),
        (
            "store:\nbudget:\n    max_steps: 3",
            "store:\n    busy_timeout: 7.5\nbudget:\n    max_steps: 3",
        ),
        (
            "budget:\r\n    max_steps: 3",
            "budget:\r\n    max_steps: 3\r\nstore:\r\n    busy_timeout: 7.5\r\n",
        ),
        ("\ufeffevents: {}\n", "\ufeffevents: {}\nstore:\n  busy_timeout: 7.5\n"),
        ("store: {busy_timeout: 5} # c\n", "store: {busy_timeout: 7.5} # c\n"),
        (
            "---\nbudget:\n  max_steps: 1\n...\n",
            "---\nbudget:\n  max_steps: 1\nstore:\n  busy_timeout: 7.5\n...\n",
        ),
        ('"store":\n  "busy_timeout":   5\n', '"store":\n  "busy_timeout":   7.5\n'),
        (
            "store:\n  busy_timeout:\nbudget:\n",
            "store:\n  busy_timeout: 7.5\nbudget:\n",
        ),
    ],
)
def test_a_value_is_spliced_where_it_belongs(before: str, after: str) -> None:
    assert with_value(before, BUSY, 7.5)[0] == after


def test_a_missing_key_goes_to_the_end_of_its_block() -> None:
    text = (
        "a:\n   one: 1  # first\n   two: |\n     text\n\n     more\n\n# about b\nb: 2\n"
    )
    spliced = with_value(text, ("a", "three"), 3)[0]
    assert spliced == text.replace("     more\n", "     more\n   three: 3\n")


def test_a_block_scalar_is_replaced_whole() -> None:
    text = "a: |  # why\n  one\n\n  two\n# about b\nb: >-\n  x\n"
    assert with_value(text, ("a",), "new")[0] == "a: new\n# about b\nb: >-\n  x\n"
    assert (
        with_value(text, ("b",), 1)[0]
        == "a: |  # why\n  one\n\n  two\n# about b\nb: 1\n"
    )


def test_text_keeps_its_quotes() -> None:
    assert with_value("a: 'x' # c\n", ("a",), "it's")[0] == "a: 'it''s' # c\n"
    assert with_value('a: "x"\n', ("a",), "y")[0] == 'a: "y"\n'


def test_a_flow_mapping_is_edited_in_place() -> None:
    assert with_value("a: {} # c\n", ("a", "b"), 1)[0] == "a: {b: 1} # c\n"
    assert with_value("a: {x: 0 } # c\n", ("a", "b"), 1)[0] == "a: {x: 0, b: 1 } # c\n"
    text = "a: {x: 0, y: [1, 2], z: 'w'} # c\n"
    assert without_value(text, ("a", "x"))[0] == "a: {y: [1, 2], z: 'w'} # c\n"
    assert without_value(text, ("a", "y"))[0] == "a: {x: 0, z: 'w'} # c\n"
    assert without_value(text, ("a", "z"))[0] == "a: {x: 0, y: [1, 2]} # c\n"
    assert without_value("a: {x: 0}\n", ("a", "x"))[0] == "a: {}\n"


def test_odd_shapes_go_through_a_round_trip_that_keeps_comments() -> None:
    (candidate,) = with_value(
        "# top\r\nstore:\r\n  busy_timeout: &x 5 # c\r\n", BUSY, 1
    )
    assert yaml12.parse_yaml(candidate) == {"store": {"busy_timeout": 1}}
    assert "# top\r\n" in candidate
    assert "# c\r\n" in candidate
    assert "\n" not in candidate.replace("\r\n", "")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "store:\n  busy_timeout: 5 # c\nbudget:\n  max_steps: 1\n",
            "store:\nbudget:\n  max_steps: 1\n",
        ),
        ("# top\nstore:\n  # note\n  busy_timeout: 5", "# top\nstore:\n  # note\n"),
        ("budget:\n", "budget:\n"),
    ],
)
def test_removing_a_key_removes_only_its_line(before: str, after: str) -> None:
    assert without_value(before, BUSY)[0] == after


@given(st.text())
def test_any_text_becomes_one_line_that_reads_back(value: str) -> None:
    for style in (None, "'", '"'):
        line = scalar(value, style)
        assert "\n" not in line
        assert yaml12.parse_yaml(f"v: {line}\n") == {"v": value}


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(),
        lambda x: st.lists(x, max_size=3),
    )
)
def test_lists_and_numbers_read_back(value: object) -> None:
    assert yaml12.parse_yaml(f"v: {scalar(value)}\n") == {"v": value}


COMMENTS = st.sampled_from(["", "", "# note", "#: store: x", "# 'quoted' {flow}"])
VALUES: dict[str, dict[str, list[str]]] = {
    "sessions": {"write_json_snapshots": ["true", "false"]},
    "store": {"busy_timeout": ["5", "1.50", "3e1"]},
    "budget": {"max_steps": ["7", "0x10"]},
    "display": {"color": ["auto", "'never'", '"always"']},
    "logging": {"level": ["info", "'debug'"]},
}
CHANGES: list[tuple[tuple[str, ...], object]] = [
    (("sessions", "write_json_snapshots"), True),
    (("store", "busy_timeout"), 12.25),
    (("budget", "max_steps"), 99),
    (("display", "color"), "never"),
    (("logging", "level"), "error"),
]


@st.composite
def configs(draw: st.DrawFn) -> str:
    ending = draw(st.sampled_from(["\n", "\r\n"]))
    indent = " " * draw(st.integers(1, 6))
    lines: list[str] = []

    def comment(prefix: str) -> None:
        for _ in range(draw(st.integers(0, 2))):
            note = draw(COMMENTS)
            lines.append(prefix + note if note else "")

    comment("")
    for section in draw(st.permutations(list(VALUES)))[
        : draw(st.integers(0, len(VALUES)))
    ]:
        trailing = draw(COMMENTS)
        style = draw(st.sampled_from(["block", "block", "block", "empty", "flow"]))
        (key, choices), *_ = VALUES[section].items()
        value = draw(st.sampled_from(choices))
        if style == "flow":
            lines.append(f"{section}: {{{key}: {value}}} {trailing}".rstrip())
        else:
            lines.append(f"{section}: {trailing}".rstrip())
            comment(indent)
            if style == "block":
                lines.append(f"{indent}{key}:  {value} {draw(COMMENTS)}".rstrip())
        comment(draw(st.sampled_from(["", indent])))
    text = ending.join(lines)
    return (
        draw(st.sampled_from(["", "\ufeff"]))
        + text
        + (ending if draw(st.booleans()) else "")
    )


@given(configs(), st.sampled_from(CHANGES))
def test_a_change_reads_back_and_every_other_line_survives(
    text: str, change: tuple[tuple[str, ...], object]
) -> None:
    path, value = change
    before, problems = parse_config(text)
    assert not problems
    after = with_value(text, path, value)[0]
    section = before.get(path[0])
    expected = {
        **before,
        path[0]: {**(section if isinstance(section, dict) else {}), path[1]: value},
    }
    assert parse_config(after) == (expected, [])
    assert _others(after, path) == _others(text, path)


@given(configs(), st.sampled_from(CHANGES))
def test_a_removal_reads_back_and_every_other_line_survives(
    text: str, change: tuple[tuple[str, ...], object]
) -> None:
    path, _ = change
    after = without_value(text, path)[0]
    data, problems = parse_config(after)
    assert not problems
    section = data.get(path[0])
    assert not isinstance(section, dict) or path[1] not in section
    assert _others(after, path) == _others(text, path)


def _others(text: str, path: tuple[str, ...]) -> list[str]:
    """Lines that hold neither the key nor its section; a last line without an ending counts as ended."""
    lines = (
        text.replace("\r\n", "\r\n\0")
        .replace("\n", "\n\0")
        .replace("\r\n\0\0", "\r\n\0")
        .split("\0")
    )
    kept = [
        line
        for line in lines
        if not line.removeprefix("\ufeff")
        .lstrip()
        .startswith((path[1] + ":", path[0] + ":"))
    ]
    return [line.rstrip("\r\n") for line in kept if line.strip("\r\n\ufeff")]
