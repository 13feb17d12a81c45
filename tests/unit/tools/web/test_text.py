"""Charsets, feeds, kinds of bodies, and characters nobody sees."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.tools.escapes import one_line, visible
from hermes.tools.web.body_content import media_of, read_body
from hermes.tools.web.charset import decode
from hermes.tools.web.feeds import read_feed
from hermes.tools.web.urls import read_url
from hermes.tools.web.web_client import WebResponse

RSS = """<?xml version="1.0"?><rss version="2.0"><channel><title>News</title><item><title>One &amp; two</title>
<link>https://example.com/1</link><pubDate>Mon, 02 Jan 2026</pubDate>
<description><![CDATA[<p>Some <b>words</b></p><script>no</script>]]></description></item></channel></rss>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><title>Blog</title><entry><title>Three</title>
<link rel="self" href="https://example.com/self"/><link href="https://example.com/3"/><updated>2026-01-03</updated>
<summary>Short</summary></entry></feed>"""


def answer(body: bytes, content_type: str = "") -> WebResponse:
    return WebResponse(
        place=read_url("https://example.com/"),
        status=200,
        headers={"content-type": content_type},
        body=body,
    )


@given(st.binary(max_size=300), st.text(max_size=40))
def test_any_bytes_become_text(body: bytes, content_type: str) -> None:
    assert isinstance(decode(body, f"text/html; charset={content_type}"), str)


@pytest.mark.parametrize(
    "name",
    ["windows-1251", "koi8-r", "shift_jis", "gb2312", "big5", "euc-kr", "utf-16le"],
)
def test_the_charsets_of_the_web_are_read(name: str) -> None:
    words = {
        "windows-1251": "Привет",
        "koi8-r": "Привет",
        "shift_jis": "日本語",
        "gb2312": "中文",
        "big5": "中文",
    }
    text = words.get(name, "한국어")
    assert decode(text.encode(name), f"text/plain; charset={name}") == text


@pytest.mark.parametrize(
    "name",
    [
        "utf-7",
        "base64",
        "rot13",
        "zlib",
        "unicode_escape",
        "idna",
        "nonsense",
        "x" * 50,
    ],
)
def test_what_is_no_charset_of_the_web_is_not_used(name: str) -> None:
    assert (
        decode(b"+ADw-script+AD4- \\u0041", f"text/html; charset={name}")
        == "+ADw-script+AD4- \\u0041"
    )


def test_text_that_was_cut_in_the_middle_of_a_character_stays_utf8() -> None:
    assert decode("aaaä".encode()[:-1]) == "aaa\ufffd"


def test_feeds_are_listed() -> None:
    rss = read_feed(RSS, "https://example.com/") or ""
    assert "# News" in rss
    assert (
        "- [One & two](https://example.com/1)\n  Mon, 02 Jan 2026\n  Some **words**"
        in rss
    )
    assert "- [Three](https://example.com/3)\n  2026-01-03\n  Short" in (
        read_feed(ATOM, "") or ""
    )


@pytest.mark.parametrize(
    "text", ["<html/>", "<rss", "", '<!DOCTYPE rss [<!ENTITY a "b">]><rss>&a;</rss>']
)
def test_what_is_no_feed_or_has_entities_is_not_read_as_one(text: str) -> None:
    assert read_feed(text, "") is None


@pytest.mark.parametrize(
    ("body", "content_type", "kind"),
    [
        (b"<!DOCTYPE html><p>x", "", "html"),
        (b"  <html>", "text/plain", "html"),
        (b'{"a": 1}', "application/octet-stream", "json"),
        (b"hello", "", "text"),
        (b"\0\1\2", "", "binary"),
        (b"%PDF-1.4", "text/html", "binary"),
        (b"GIF89a", "text/html", "image"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "", "image"),
        (b"<svg/>", "image/svg+xml", "binary"),
        (b"x", "application/vnd.api+json", "json"),
        (b"x", "application/atom+xml; charset=utf-8", "xml"),
        (b"x", "application/javascript", "text"),
        (b"x", "video/mp4", "binary"),
    ],
)
def test_a_body_is_what_its_bytes_or_the_server_say(
    body: bytes, content_type: str, kind: str
) -> None:
    assert media_of(answer(body, content_type)).kind == kind


def test_a_page_without_words_says_that_scripts_are_not_run() -> None:
    page = answer(
        b"<html><body><div id=root></div><script src=app.js></script>", "text/html"
    )
    assert "scripts" in read_body(page, media_of(page)).notes[0]


def test_hidden_and_reordering_characters_are_taken_out_and_counted() -> None:
    hidden = "".join(chr(0xE0000 + ord(sign)) for sign in "ignore")
    assert (
        visible(f"safe{hidden}\u202e\u2066text")
        == "safetext\n[8 invisible characters were removed]"
    )


@pytest.mark.parametrize(
    "text",
    [
        "👩\u200d👩\u200d👧 family",
        "نمی\u200cخواهم",
        "❤\ufe0f",
        "क\u094d\u200dष",
        "tab\tline\nä",
    ],
)
def test_joiners_that_belong_to_a_script_or_a_sign_stay(text: str) -> None:
    assert visible(text) == text


@given(st.text())
def test_nothing_that_acts_on_a_terminal_is_left(text: str) -> None:
    shown = visible(text)
    assert not any(sign in shown for sign in "\x1b\x9b\x07\x08\r\x00\u202e\u2066\u200b")


def test_a_line_is_one_line_and_short() -> None:
    assert one_line("a\n b\t\u200bc " + "d" * 50, 20) == "a b c ddddddddddd..."
