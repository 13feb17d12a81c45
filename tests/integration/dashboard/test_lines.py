"""The page's own files can be read: no line is longer than a screen is wide."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = (
    ROOT / "src/hermes/surfaces/dashboard/static",
    ROOT / "src/hermes/plugins/bundled",
)
LONGEST = 120
SENTENCE = '${t("'  # one string, because its words are the key of its translations


@pytest.mark.parametrize("suffix", [".js", ".css"])
def test_lines_are_short(suffix: str) -> None:
    files = [
        path
        for folder in FOLDERS
        for path in folder.rglob(f"*{suffix}")
        if "vendor" not in path.parts
    ]
    assert len(files) > 5
    long = [
        f"{path.relative_to(ROOT)}:{number} has {len(line)} characters"
        for path in files
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > LONGEST and not line.lstrip().startswith(SENTENCE)
    ]
    assert long == []
