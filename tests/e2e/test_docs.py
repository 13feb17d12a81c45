"""The documentation tells the truth: generated pages are fresh, and the examples in it run."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    page
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if page.exists()
]
FENCE = re.compile(
    r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```\s*$", re.MULTILINE | re.DOTALL
)


def blocks(language: str) -> list[tuple[str, str]]:
    """Every fenced block in that language: its place and its text."""
    found: list[tuple[str, str]] = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for match in FENCE.finditer(text):
            words = match["info"].split()
            if words[:1] == [language] and "no-run" not in words:
                line = text.count("\n", 0, match.start()) + 1
                found.append((f"{page.relative_to(ROOT)}:{line}", match["body"]))
    return found


def shell_examples() -> list[tuple[str, list[str]]]:
    """The `$ hermes ...` lines of each shell block; a block is one story in one home."""
    stories = [blocks(language) for language in ("sh", "shell", "bash", "console")]
    found = [
        (place, re.findall(r"^\$ (hermes\b.*)$", body, re.MULTILINE))
        for story in stories
        for place, body in story
    ]
    return [(place, lines) for place, lines in found if lines]


def environ(home: Path) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("HERMES_")
    }
    return {**kept, "HERMES_HOME": str(home), "EDITOR": "true", "VISUAL": "true"}


def test_the_generated_pages_are_fresh() -> None:
    command = [sys.executable, ROOT / "scripts" / "generate_docs.py", "--check"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_site_builds_without_a_broken_link(tmp_path: Path) -> None:
    site = tmp_path / "site"
    command = [sys.executable, ROOT / "scripts" / "build_site.py", site]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=110, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    home = (site / "index.html").read_text()
    assert "Ten minutes" in home
    loaded = re.findall(
        r"<(?:script|link|img)[^>]* (?:src|href)=[\"']?(https?:[^\"' >]*)", home
    )
    assert loaded == [], "everything comes from the site itself"
    assert (site / "search.json").is_file()
    assert (site / "search.js").read_text().startswith("var __index = {"), "offline"


@pytest.mark.parametrize(
    ("place", "code"), [pytest.param(*block, id=block[0]) for block in blocks("python")]
)
def test_python_examples_run(tmp_path: Path, place: str, code: str) -> None:
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(
        command,
        env=environ(tmp_path / "home"),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, f"{place}\n{done.stderr}"


@pytest.mark.parametrize(
    ("place", "lines"),
    [pytest.param(*story, id=story[0]) for story in shell_examples()],
)
def test_shell_examples_run(tmp_path: Path, place: str, lines: list[str]) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for line in lines:
        done = subprocess.run(
            shlex.split(line, comments=True), env={**environ(tmp_path / "home"), "PATH": path}, cwd=tmp_path,
            input="example\n", capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{place}: {line}\n{done.stderr}"
