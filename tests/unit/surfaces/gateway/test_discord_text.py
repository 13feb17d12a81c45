"""Markdown as Discord shows it."""

from hermes.surfaces.gateway.adapters.text_formats import discord_markdown


def test_a_table_becomes_a_code_block() -> None:
    text = discord_markdown("before\n| a | b |\n|---|---|\n| 1 | 2 |\nafter")
    assert text == "before\n```\n| a | b |\n|---|---|\n| 1 | 2 |\n```\nafter"


def test_a_table_at_the_end_is_closed() -> None:
    assert discord_markdown("| a |\n| 1 |") == "```\n| a |\n| 1 |\n```"


def test_what_is_in_a_code_block_stays_as_it_is() -> None:
    text = "```\n| not | a table |\n```\n**bold** stays"
    assert discord_markdown(text) == text
