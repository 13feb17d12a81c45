"""The command table."""

from hermes.commands.table import EXAMPLES, TOPICS
from hermes.surfaces.cli.dispatch import overview


def test_the_table_is_short_lines_without_doubles() -> None:
    names = [topic.name for topic in TOPICS]
    assert len(names) == len(set(names))
    for topic in TOPICS:
        assert topic.modules[0].startswith(("hermes.commands.", "hermes.surfaces."))
        assert not topic.summary.endswith(".")


def test_the_overview_fits_80_columns_and_names_every_command() -> None:
    text = overview()
    assert max(len(line) for line in text.splitlines()) <= 80
    for topic in TOPICS:
        assert f"  {topic.name} " in text
    for example, _ in EXAMPLES:
        assert example in text
