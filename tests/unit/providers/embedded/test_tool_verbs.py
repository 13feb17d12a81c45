"""Verbs and tools: only what is offered, calls that do what was asked, and calls back to lines."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.simple_tools import WORKSHOP_SPECS

from hermes.providers.embedded.conversation import SeenFile, shown
from hermes.providers.embedded.line_protocol import Action
from hermes.providers.embedded.text_edits import occurrences
from hermes.providers.embedded.tool_verbs import OfferedTools
from hermes.schema.messages import ToolCall
from hermes.schema.tool_spec import ToolSpec

BOX = OfferedTools(WORKSHOP_SPECS)


def arguments(
    box: OfferedTools, action: Action, seen: dict[str, str] | None = None
) -> tuple[str, dict[str, object]]:
    name, text = box.call(action, seen or {})
    return name, msgspec.json.decode(text, type=dict[str, object])


def spec(name: str, *required: str, **properties: dict[str, object]) -> ToolSpec:
    parameters = {
        "type": "object",
        "properties": properties,
        "required": list(required),
    }
    return ToolSpec(name=name, description="", parameters=parameters)


def test_all_first_tools_give_all_verbs() -> None:
    assert BOX.verbs == {
        "read",
        "list",
        "find",
        "write",
        "append",
        "replace",
        "run",
        "todo",
        "say",
    }


def test_a_verb_without_its_tool_is_not_offered() -> None:
    assert OfferedTools(()).verbs == {"say"}
    without_edit = OfferedTools(
        [spec for spec in WORKSHOP_SPECS if spec.name not in {"edit_file", "terminal"}]
    )
    assert without_edit.verbs == {"read", "list", "find", "write", "todo", "say"}


def test_a_tool_that_requires_what_we_do_not_know_is_not_offered() -> None:
    assert OfferedTools(
        [spec("read_file", "path", "token", path={}, token={})]
    ).verbs == {"say"}


def test_other_property_names_are_found() -> None:
    box = OfferedTools(
        [spec("read", "file_path", file_path={}), spec("bash", "cmd", cmd={})]
    )
    assert arguments(box, Action(verb="read", path="a")) == ("read", {"file_path": "a"})
    assert arguments(box, Action(verb="run", text="ls")) == ("bash", {"cmd": "ls"})


@pytest.mark.parametrize(
    ("action", "name", "given"),
    [
        (Action(verb="read", path="a"), "read_file", {"path": "a"}),
        (Action(verb="list", path="."), "list_files", {"path": "."}),
        (Action(verb="find", text="f(x)"), "search_files", {"pattern": r"f\(x\)"}),
        (
            Action(verb="write", path="a", text="x"),
            "write_file",
            {"path": "a", "content": "x\n"},
        ),
        (Action(verb="run", text="ls"), "terminal", {"command": "ls"}),
    ],
)
def test_an_action_is_a_call_and_back(
    action: Action, name: str, given: dict[str, object]
) -> None:
    assert arguments(BOX, action) == (name, given)
    call = ToolCall(id="c", name=name, arguments=msgspec.json.encode(given).decode())
    back = BOX.action(call)
    assert back is not None
    assert (back.verb, back.path, back.text.strip()) == (
        action.verb,
        action.path,
        action.text,
    )


def test_items_are_added_to_the_list() -> None:
    name, text = BOX.call(Action(verb="todo", text="two"), {}, ["one"])
    assert name == "todo"
    assert BOX.todo_items(ToolCall(id="c", name=name, arguments=text)) == ["one", "two"]


def test_appending_edits_the_end_that_occurs_once() -> None:
    action = Action(verb="append", path="a", text="c\n")
    _, given = arguments(BOX, action, {"a": "b\na\nb\n"})
    assert given == {"path": "a", "old_text": "a\nb", "new_text": "a\nb\nc"}
    back = BOX.action(
        ToolCall(
            id="c", name="edit_file", arguments=msgspec.json.encode(given).decode()
        )
    )
    assert back == Action(verb="append", path="a", text="c")


def test_appending_to_an_empty_file_writes_it() -> None:
    assert arguments(BOX, Action(verb="append", path="a", text="c"), {"a": ""}) == (
        "write_file",
        {"path": "a", "content": "c\n"},
    )


LINES = st.lists(st.sampled_from(["a", "b", "", "  a", "a b"]), min_size=1, max_size=6)


@given(LINES, st.sampled_from(["x", "x\ny"]))
def test_appending_always_lands_at_the_end(lines: list[str], text: str) -> None:
    held = "\n".join(lines) + "\n"
    name, given = arguments(
        BOX, Action(verb="append", path="f", text=text), {"f": held}
    )
    if name == "write_file":
        assert not held.strip()
        return
    old, new = str(given["old_text"]), str(given["new_text"])
    assert occurrences(held, old) == 1
    assert held.replace(old, new).rstrip() == f"{held.rstrip()}\n{text}"


@given(LINES.filter(lambda lines: any("a" in line for line in lines)))
def test_replacing_always_names_a_text_that_occurs_once(lines: list[str]) -> None:
    held = "\n".join(lines)
    _, given = arguments(
        BOX, Action(verb="replace", path="f", old="a", text="Z"), {"f": held}
    )
    assert occurrences(held, str(given["old_text"])) == 1
    assert "Z" in str(given["new_text"])


def test_a_name_is_replaced_everywhere_where_the_tool_can() -> None:
    edit = spec(
        "edit_file",
        "path",
        path={},
        old_text={},
        new_text={},
        replace_all={"type": "boolean"},
    )
    box = OfferedTools([edit, spec("read_file", "path", path={})])
    _, given = arguments(
        box,
        Action(verb="replace", path="f", old="edge", text="side"),
        {"f": "edge()\nedge()"},
    )
    assert given == {
        "path": "f",
        "old_text": "edge",
        "new_text": "side",
        "replace_all": True,
    }


@pytest.mark.parametrize(
    ("result", "seen"),
    [
        ("[a.txt: lines 1-2 of 2]\nx\ny\n", SeenFile("x\ny\n")),
        (
            "[a.txt: lines 1-2 of 9]\nx\ny\n[7 more lines: read_file with offset=3]",
            SeenFile("x\ny", whole=False),
        ),
        ("[a.txt: empty file]", SeenFile("")),
        ("[section]\nkey = 1\n", SeenFile("[section]\nkey = 1\n")),
    ],
)
def test_a_read_result_is_taken_apart(result: str, seen: SeenFile) -> None:
    assert shown(result) == seen


def test_a_line_that_is_replaced_by_nothing_is_gone() -> None:
    _, given = arguments(
        BOX,
        Action(verb="replace", path="f", old="bob", text=""),
        {"f": "al\nbob\ncy\n"},
    )
    assert (given["old_text"], given["new_text"]) == ("bob\n", "")


def test_a_comma_that_stays_is_not_doubled() -> None:
    change = Action(verb="replace", path="f", old='"a": 1', text='"a": 2,')
    _, given = arguments(BOX, change, {"f": '{\n  "a": 1,\n  "b": 2\n}\n'})
    assert (given["old_text"], given["new_text"]) == ('"a": 1', '"a": 2')


def test_a_pattern_is_listed_as_its_folder_and_what_is_to_fit() -> None:
    assert arguments(BOX, Action(verb="list", path="src/*.py")) == (
        "list_files",
        {"path": "src"},
    )
    box = OfferedTools([spec("list_files", path={}, glob={})])
    assert arguments(box, Action(verb="list", path="*.py")) == (
        "list_files",
        {"path": ".", "glob": "*.py"},
    )
    assert arguments(box, Action(verb="list", path="src")) == (
        "list_files",
        {"path": "src"},
    )
