"""The files that the documents for newcomers name exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = (
    "CONTRIBUTING.md",
    "docs/architecture.md",
    "docs/glossary.md",
    "docs/proofs.md",
    "README.md",
)
MAX_STEP_LINES = 10


def named_paths(page: str) -> list[str]:
    """Paths in backticks: below the root, or below the package."""
    words = re.findall(r"`([\w./-]+)`", (ROOT / page).read_text())
    return [word for word in words if re.search(r"\w/\w|\.py$", word)]


@pytest.mark.parametrize("page", PAGES)
def test_paths_named_in_a_page_exist(page: str) -> None:
    missing = [
        path
        for path in named_paths(page)
        if not any((ROOT / base / path).exists() for base in ("", "src/hermes", "src"))
        and path.partition("/")[0] in {"src", "tests", "docs", *packages()}
    ]
    assert missing == []


def packages() -> set[str]:
    return {path.name for path in (ROOT / "src" / "hermes").iterdir()}


def test_contributing_explains_the_six_most_frequent_changes_shortly() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    sections = re.findall(r"^## (How to add .*)\n\n((?:.+\n)+)", text, re.MULTILINE)
    assert [title for title, _ in sections] == [
        "How to add a command",
        "How to add a tool",
        "How to add an event",
        "How to add a chat platform",
        "How to add a model provider",
        "How to add a setting",
    ]
    assert all(len(body.splitlines()) <= MAX_STEP_LINES for _, body in sections)


def test_the_functions_of_the_two_walks_exist() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    steps = re.findall(r"`([\w/]+\.py)`[^`\n]*`([A-Z]\w+)\.(\w+)`", text)
    assert len(steps) >= 10
    for path, owner, function in steps:
        source = (ROOT / "src" / "hermes" / path).read_text()
        assert re.search(rf"^class {owner}\b", source, re.MULTILINE), (path, owner)
        assert re.search(rf"^    (async )?def {function}\b", source, re.MULTILINE), (
            path,
            function,
        )
