"""What a hurried person types behind a topic: the answer says what to type instead."""

import pytest

from hermes.commands.table import find_topic
from hermes.errors import UsageError
from hermes.surfaces.cli.shell import run_topic


@pytest.mark.parametrize(
    ("topic", "words", "meant"),
    [
        ("kanban", ["t_1a2b", "show"], "hermes kanban show t_1a2b"),
        ("kanban", ["t_1a2b", "comment", "it's late"], "hermes kanban comment t_1a2b 'it'\"'\"'s late'"),
        ("kanban", ["fix the login"], "hermes kanban create 'fix the login'"),
        ("kanban", ["fix", "the", "login"], "hermes kanban create 'fix the login'"),
        ("goal", ["fix the tests"], "hermes goal run 'fix the tests'"),
        ("worktree", ["fix", "merge"], "hermes worktree merge fix"),
    ],
)  # fmt: skip
def test_what_was_meant_is_said(topic: str, words: list[str], meant: str) -> None:
    found = find_topic(topic)
    assert found is not None
    with pytest.raises(UsageError) as refused:
        run_topic(found, words, None)
    assert refused.value.hint == f"Did you mean: {meant}"


def test_help_is_an_action_of_every_topic(capsys: pytest.CaptureFixture[str]) -> None:
    found = find_topic("kanban")
    assert found is not None
    with pytest.raises(SystemExit) as ended:
        run_topic(found, ["help"], None)
    assert not ended.value.code
    assert "hermes kanban" in capsys.readouterr().out
