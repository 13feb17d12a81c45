"""Markdown in WhatsApp's marks."""

from hermes.surfaces.gateway.adapters.text_formats import whatsapp_text


def test_marks_links_and_blocks_are_whatsapps() -> None:
    markdown = "# Head\n\n**bold** _it_ ~~no~~ [a & b](https://e.org/?x=1&y=2)\n\n- one\n\n> quoted <b>\n\n```py\na < b\n```"
    assert whatsapp_text(markdown) == (
        "*Head*\n\n*bold* _it_ ~no~ a & b (https://e.org/?x=1&y=2)\n\n• one\n\n> quoted <b>\n\n```\na < b\n```"
    )


def test_a_link_that_says_its_address_is_written_once() -> None:
    assert whatsapp_text("[https://e.org](https://e.org)") == "https://e.org"
