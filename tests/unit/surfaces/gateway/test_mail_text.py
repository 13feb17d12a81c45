"""Who an e-mail is from, and what it says."""

import email
import email.policy
from email.message import EmailMessage

import msgspec
import pytest

from hermes.surfaces.gateway.adapters.mail.text import (
    body_of,
    inbound_of,
    is_verified,
    sender_of,
)


def mail(
    results: str = "", sender: str = "Anna <anna@mail.example.org>", text: str = ""
) -> EmailMessage:
    made = EmailMessage()
    if results:
        made["Authentication-Results"] = results
    made["From"] = sender
    made.set_content(text)
    return made


@pytest.mark.parametrize(
    ("results", "verified"),
    [
        ("mx.mine; dmarc=pass", True),
        ("mx.mine; spf=fail; dkim=pass header.d=mail.example.org", True),
        ("mx.mine; dkim=pass header.i=@example.org", True),
        ("mx.mine; dkim=pass header.d=org", False),
        ("mx.mine; dkim=pass header.d=evil.org", False),
        ("mx.mine; dkim=pass header.d=notexample.org", False),
        ("mx.mine; dkim=fail header.d=example.org", False),
        ("mx.mine; spf=pass", False),
        ("mx.evil; dmarc=pass", False),
        ("mx.mine.evil; dmarc=pass", False),
        (
            "mx.mine 1; dmarc=pass (p=reject; dis=none) header.from=mail.example.org",
            True,
        ),
        ("mx.mine; dmarc=pass header.from=evil.org", False),
        ('mx.mine; spf=pass smtp.mailfrom="; dmarc=pass"@evil.org; dmarc=fail', False),
        (
            "mx.mine; spf=pass (from ; dmarc=pass ; here) smtp.mailfrom=evil.org; dmarc=fail",
            False,
        ),
        ('mx.mine; spf=pass (") ; dmarc=pass (") smtp.mailfrom=evil.org', False),
        ("mx.mine; spf=pass smtp.mailfrom=dmarc=pass@evil.org", False),
        ("mx.mine; dkim=pass reason=header.d=example.org header.d=evil.org", False),
        ("", False),
    ],
)
def test_only_our_own_servers_word_for_the_senders_own_domain_counts(
    results: str, verified: bool
) -> None:
    assert is_verified(mail(results), "mx.mine") is verified


def test_a_line_below_that_of_another_server_does_not_count() -> None:
    made = mail("mx.evil; dmarc=pass")
    made["Authentication-Results"] = "mx.mine; dmarc=pass"
    assert not is_verified(made, "mx.mine")


def test_what_a_stranger_wrote_in_another_writing_is_not_read_as_a_result() -> None:
    line = b"Authentication-Results: mx.mine; spf=pass smtp.mailfrom= =?us-ascii?q?=3B_dmarc=3Dpass?= @evil.org\r\n"
    made = email.message_from_bytes(
        line + b"From: anna@example.org\r\n\r\nhi", policy=email.policy.default
    )
    assert isinstance(made, EmailMessage)
    assert "; dmarc=pass" in str(
        made["Authentication-Results"]
    )  # as it would read decoded
    assert not is_verified(made, "mx.mine")


def test_the_sender_is_the_address_and_never_a_name_that_looks_like_one() -> None:
    name = "=?utf-8?q?owner=40example=2Eorg?="
    made = email.message_from_bytes(
        f"From: {name} <x@evil.org>\r\n\r\n".encode(), policy=email.policy.default
    )
    assert isinstance(made, EmailMessage)
    assert sender_of(made) == ("x@evil.org", "owner@example.org")


def test_two_senders_are_none() -> None:
    assert not is_verified(
        mail("mx.mine; dmarc=pass", "a@example.org, b@example.org"), "mx.mine"
    )


def test_without_a_trusted_server_nobody_is_verified() -> None:
    assert not is_verified(mail("; dmarc=pass"), "")


def test_what_was_answered_and_the_signature_are_left_out() -> None:
    text = "Yes.\n\n> quoted inside\nand more\n\nOn Tue, Hermes wrote:\n> old\n"
    assert body_of(mail(text=text)) == "Yes.\n\n> quoted inside\nand more"
    assert body_of(mail(text="Hello\n-- \nAnna\n")) == "Hello"
    assert body_of(mail(text="Fine\n> last\n> words\n")) == "Fine"


def raw_mail(
    body: bytes,
    *,
    charset: bytes = b"utf-8",
    sender: bytes = b"Anna",
    subject: bytes = b"",
) -> EmailMessage:
    lines = [
        b"From: " + sender + b" <anna@example.org>",
        b"Message-ID: <1@example.org>",
        b"Subject: " + subject,
    ]
    lines += [
        b"Content-Type: text/plain; charset=" + charset,
        b"Content-Transfer-Encoding: 8bit",
        b"",
        body,
    ]
    made = email.message_from_bytes(b"\r\n".join(lines), policy=email.policy.default)
    assert isinstance(made, EmailMessage)
    return made


@pytest.mark.parametrize(
    ("charset", "codec", "text"),
    [
        (b"x-gbk", "gbk", "你好，世界"),
        (b"windows-874", "cp874", "สวัสดี"),
        (b"iso-8859-8-i", "iso8859-8", "שלום"),
        (b"utf8mb4", "utf-8", "grüße"),
        (b"x-sjis", "cp932", "こんにちは"),
    ],
)
def test_a_charset_that_python_has_under_another_name_is_read(
    charset: bytes, codec: str, text: str
) -> None:
    assert body_of(raw_mail(text.encode(codec), charset=charset)) == text


@pytest.mark.parametrize("charset", [b"x-klingon", b"base64"])
def test_a_charset_that_nobody_knows_is_guessed_and_said(charset: bytes) -> None:
    words = body_of(raw_mail("viele Grüße".encode(), charset=charset))
    assert words.startswith("viele Grüße\n\n[")
    assert f"an unknown charset, {charset.decode()!r}" in words


@pytest.mark.parametrize("name", [b"J\xf6rg", b"=?x-klingon?Q?J=F6rg?="])
def test_names_and_subjects_in_any_bytes_can_be_written_down(name: bytes) -> None:
    inbound = inbound_of(raw_mail(b"hi", sender=name, subject=name), "1", "mx.mine")
    assert (
        msgspec.json.decode(msgspec.json.encode(inbound))["person"]["name"]
        == inbound.person.name
        == "Jörg"
    )
