"""Datasets are read whole or not at all."""

from pathlib import Path

import pytest

from hermes.app.batches.dataset import BatchRow, decode_rows, encode_rows, read_dataset
from hermes.errors import UsageError


def test_json_lines_and_csv_give_the_same_rows(tmp_path: Path) -> None:
    lines, table = tmp_path / "d.jsonl", tmp_path / "d.csv"
    lines.write_text(
        '{"prompt": "one\\ntwo", "id": 7, "other": true}\n\n'
        '{"prompt": "one\\ntwo", "toolsets": ["web", "files"], "expected": "é"}\n'
    )
    table.write_text(
        '\ufeffprompt,id,expected,toolsets\n"one\ntwo",7,,\n"one\ntwo",,é,"web,files"\n'
    )
    rows = read_dataset(lines)
    assert rows == read_dataset(table)
    assert rows == [
        BatchRow(prompt="one\ntwo", id="7"),
        BatchRow(prompt="one\ntwo", toolsets=("web", "files"), expected="é"),
    ]
    assert decode_rows(encode_rows(rows)) == rows


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("d.jsonl", b'{"prompt": "a"}\nnope\n', "line 2: expected a JSON object"),
        ("d.jsonl", b'{"prompt": "a"}\n{"text": "b"}\n', "line 2: .*prompt"),
        ("d.jsonl", b'{"prompt": "  "}\n', "line 1: the prompt is empty"),
        ("d.jsonl", b'{"prompt": 7}\n', "line 1"),
        ("d.jsonl", b'{"prompt": "a", "toolsets": ["x"]}\n', "no toolset 'x'"),
        ("d.jsonl", b"\xff\n", "not UTF-8"),
        ("d.jsonl", b"", "no rows"),
        ("d.csv", b"question\nx\n", "line 2: .*prompt"),
        ("d.csv", b'prompt\n"x\n', "not CSV|empty"),
    ],
)
def test_a_bad_row_is_named_with_its_line(
    tmp_path: Path, name: str, content: bytes, words: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=words):
        read_dataset(tmp_path / name)


def test_a_missing_dataset_is_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can't be read"):
        read_dataset(tmp_path / "gone.jsonl")
