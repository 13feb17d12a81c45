"""Who an e-mail is from, and what it says."""

from email.message import EmailMessage

import pytest

from hermes.surfaces.gateway.adapters.mail_text import body_of, is_verified


def mail(results: str = "", sender: str = "Anna <anna@mail.example.org>", text: str = "") -> EmailMessage:
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
        ("", False),
    ],
)
def test_only_our_own_servers_word_for_the_senders_own_domain_counts(results: str, verified: bool) -> None:
    assert is_verified(mail(results), "mx.mine") is verified


def test_a_line_below_that_of_another_server_does_not_count() -> None:
    made = mail("mx.evil; dmarc=pass")
    made["Authentication-Results"] = "mx.mine; dmarc=pass"
    assert not is_verified(made, "mx.mine")


def test_two_senders_are_none() -> None:
    assert not is_verified(mail("mx.mine; dmarc=pass", "a@example.org, b@example.org"), "mx.mine")


def test_without_a_trusted_server_nobody_is_verified() -> None:
    assert not is_verified(mail("; dmarc=pass"), "")


def test_what_was_answered_and_the_signature_are_left_out() -> None:
    text = "Yes.\n\n> quoted inside\nand more\n\nOn Tue, Hermes wrote:\n> old\n"
    assert body_of(mail(text=text)) == "Yes.\n\n> quoted inside\nand more"
    assert body_of(mail(text="Hello\n-- \nAnna\n")) == "Hello"
    assert body_of(mail(text="Fine\n> last\n> words\n")) == "Fine"
