"""The open SKILL.md format, and which names and paths a skill may have."""

import pytest

from hermes.learning.change import LearningError
from hermes.learning.skill import is_name, parse, problems, safe_path, tree_hash

GOOD = "---\nname: tidy-up\ndescription: Tidies. Use it when asked.\n---\n# Tidying\n1. Look.\n"


def test_the_front_matter_and_the_body_are_parted() -> None:
    head = parse(GOOD)
    assert head.field("name") == "tidy-up"
    assert head.body == "# Tidying\n1. Look.\n"
    assert problems(GOOD, "tidy-up") == []


def test_what_people_write_is_read() -> None:
    assert parse(GOOD.replace("\n", "\r\n")).field("name") == "tidy-up"
    assert parse("---\nname: x\ndescription: Use when: colons come\n---\nbody").field(
        "description"
    ) == ("Use when: colons come")
    assert (
        parse("---\nname: x\ndescription: >\n  two\n  lines\n---\nbody").field(
            "description"
        )
        == "two lines"
    )
    assert parse("no front matter").body == "no front matter"
    assert parse("---\nnever closed").fields == {}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("just text", "no front matter"),
        (GOOD.replace("tidy-up", "Tidy Up"), "name"),
        (GOOD.replace("name: tidy-up", "name: other"), "folder"),
        (
            GOOD.replace("description: Tidies. Use it when asked.", "description: ''"),
            "description is missing",
        ),
        (GOOD.replace("Tidies.", "x" * 2000), "description has"),
        ("---\nname: tidy-up\ndescription: x\n---\n \n", "no text"),
        (GOOD + "x" * 50_000, "characters"),
    ],
)
def test_what_is_wrong_is_said(text: str, problem: str) -> None:
    assert any(problem in found for found in problems(text, "tidy-up"))


@pytest.mark.parametrize(
    "name", ["", "Tidy", "a--b", "-a", "a-", "a b", "../a", "a" * 65, "ä"]
)
def test_names_that_can_not_be_one(name: str) -> None:
    assert not is_name(name)


@pytest.mark.parametrize(
    "path",
    ["../x", "a/../../x", "/etc/passwd", "a//b", "", ".", "..", ".git/config", "a/.hidden", "a\\b", "a\0b", "a\nb",
     "C:x", "a/b/c/d/e/f", "x" * 200, "~/x"],
)  # fmt: skip
def test_a_path_that_leads_elsewhere_is_refused(path: str) -> None:
    with pytest.raises(LearningError):
        safe_path(path)


def test_plain_paths_are_fine() -> None:
    assert safe_path("scripts/run.py") == "scripts/run.py"
    assert safe_path("./SKILL.md") == "SKILL.md"


def test_the_hash_names_the_files_and_not_their_order() -> None:
    assert tree_hash({"a": b"1", "b": b"2"}) == tree_hash({"b": b"2", "a": b"1"})
    assert tree_hash({"a": b"1"}) != tree_hash({"a": b"2"})
    assert tree_hash({"a": b"1", "b": b""}) != tree_hash({"a": b"", "b": b"1"})
