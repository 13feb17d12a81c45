"""E-mail in and out, against a server that speaks IMAP and SMTP."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email.message import EmailMessage
from pathlib import Path

import msgspec
import pytest
from tests.fakes.mail_server import AUTHSERV, MailServer
from tests.integration.gateway.harness import KEY, PATIENCE, until

from hermes.app import build
from hermes.events.bus import Bus
from hermes.settings import Home, Secrets, Settings
from hermes.settings.gateway import EmailSettings, GatewaySettings
from hermes.surfaces.gateway.adapters.mail import text
from hermes.surfaces.gateway.gateway import Gateway
from hermes.testing.model_server import ModelServer

ANNA = "anna@example.test"


@asynccontextmanager
async def opened(
    folder: Path, model: ModelServer, mail: MailServer, **more: object
) -> AsyncIterator[Gateway]:
    box = EmailSettings(
        address="hermes@loopback.test",
        imap_host="127.0.0.1",
        imap_port=mail.imap_port,
        smtp_host="127.0.0.1",
        smtp_port=mail.smtp_port,
        security="none",
        poll_every=0.1,
        trusted_authserv=AUTHSERV,
    )
    settings = GatewaySettings(
        platforms=("email",),
        owners=(f"email:{ANNA}",),
        folder=str(folder / "work"),
        email=msgspec.structs.replace(box, **more),
    )
    password = "mail-password-of-a-test"  # noqa: S105
    secrets = Secrets(
        {
            "EMAIL_PASSWORD": password,
            "OPENAI_API_KEY": KEY,
            "OPENAI_BASE_URL": model.url,
        },
        {},
    )
    with build(Settings(gateway=settings), Home(folder / "home"), bus=Bus()) as app:
        gateway = Gateway(app, secrets)
        await gateway.start()
        try:
            yield gateway
        finally:
            await asyncio.wait_for(gateway.stop(), PATIENCE)


@pytest.mark.parametrize("idle", [True, False])
async def test_a_mail_is_answered_in_its_thread_and_the_thread_is_one_session(
    tmp_path: Path, idle: bool
) -> None:
    async with (
        MailServer(idle=idle) as mail,
        ModelServer("the answer", "more") as model,
        opened(tmp_path, model, mail),
    ):
        first = mail.receive("What is this?", sender=ANNA, Subject="A question")
        await mail.until(lambda server: len(server.sent) == 1 and server.seen == {1})
        reply = mail.sent[0]
        assert reply.get_content().strip() == "the answer"
        assert (reply["To"], reply["Subject"]) == (ANNA, "Re: A question")
        assert reply["References"] == first["Message-ID"]
        assert reply["Auto-Submitted"] == "auto-replied"
        quoted = "And that?\n\nOn Monday Hermes wrote:\n> the answer\n"
        mail.receive(
            quoted,
            sender=ANNA,
            Subject="Re: A question",
            In_Reply_To=reply["Message-ID"],
            References=f"{first['Message-ID']} {reply['Message-ID']}",
        )
        await mail.until(lambda server: len(server.sent) == 2)
        contents = [
            one["content"]
            for one in msgspec.json.decode(model.posts[1].body)["messages"][1:]
        ]
        assert contents == ["A question\n\nWhat is this?", "the answer", "And that?"]


async def test_a_mail_whose_sender_is_not_verified_is_from_nobody(
    tmp_path: Path,
) -> None:
    async with (
        MailServer() as mail,
        ModelServer() as model,
        opened(tmp_path, model, mail) as gateway,
    ):
        mail.receive("do it", sender=ANNA, verified=False)
        forged = f"evil.test; dmarc=pass header.from={ANNA}"
        mail.receive(
            "do it", sender=ANNA, verified=False, Authentication_Results=forged
        )
        other = f"{AUTHSERV}; dkim=pass header.d=evil.test; dmarc=fail"
        mail.receive("do it", sender=ANNA, verified=False, Authentication_Results=other)
        await mail.until(lambda server: server.seen == {1, 2, 3})
        assert gateway.senders["email"].counters.strangers == 3
        assert mail.sent == []
        assert model.posts == []


async def test_a_mail_in_an_odd_charset_without_a_subject_is_answered(
    tmp_path: Path,
) -> None:
    async with (
        MailServer() as mail,
        ModelServer("the answer") as model,
        opened(tmp_path, model, mail),
    ):
        letter = mail.receive("hello", sender=ANNA)
        mail.inbox.clear()
        letter.set_param("charset", "x-klingon")
        mail.deliver(letter)
        await mail.until(lambda server: len(server.sent) == 1)
        assert b"hello" in model.posts[0].body
        assert mail.sent[0].get_content().strip() == "the answer"


async def test_a_mail_with_nothing_to_read_is_told_so(tmp_path: Path) -> None:
    async with (
        MailServer() as mail,
        ModelServer() as model,
        opened(tmp_path, model, mail),
    ):
        mail.receive("> only what you wrote\n", sender=ANNA)
        await mail.until(lambda server: len(server.sent) == 1)
        assert "no text that I can read" in mail.sent[0].get_content()
        assert model.posts == []


async def test_machines_are_not_answered(tmp_path: Path) -> None:
    async with (
        MailServer() as mail,
        ModelServer() as model,
        opened(tmp_path, model, mail),
    ):
        mail.receive("I am away", sender=ANNA, Auto_Submitted="auto-replied")
        mail.receive("news", sender=ANNA, List_Id="<news.example.test>")
        mail.receive("from myself", sender="hermes@loopback.test")
        await mail.until(lambda server: server.seen == {1, 2, 3})
        assert model.posts == []


async def test_a_mail_that_is_not_taken_is_sent_again_under_the_same_id(
    tmp_path: Path,
) -> None:
    async with MailServer() as mail, ModelServer("the answer") as model:
        mail.refuse = 1
        async with opened(tmp_path, model, mail) as gateway:
            mail.receive("hi", sender=ANNA)
            await mail.until(lambda server: len(server.sent) == 1)
            assert gateway.senders["email"].counters.retried == 1


async def test_an_attachment_is_where_the_model_can_read_it(tmp_path: Path) -> None:
    async with (
        MailServer() as mail,
        ModelServer("I have it") as model,
        opened(tmp_path, model, mail),
    ):
        letter = mail.receive("look", sender=ANNA)
        mail.inbox.clear()
        letter.add_attachment(
            b"a,b\n1,2\n", maintype="text", subtype="csv", filename="table.csv"
        )
        mail.deliver(letter)
        await mail.until(lambda server: len(server.sent) == 1)
        found = list((tmp_path / "work" / "inbox").glob("*-table.csv"))
        assert [one.read_bytes() for one in found] == [b"a,b\n1,2\n"]


async def test_a_picture_that_the_model_does_not_get_is_said_with_the_answer(
    tmp_path: Path,
) -> None:
    async with (
        MailServer() as mail,
        ModelServer("I can't see it") as model,
        opened(tmp_path, model, mail),
    ):
        letter = mail.receive("look", sender=ANNA)
        mail.inbox.clear()
        dot = b"\x89PNG\r\n\x1a\n" + bytes(20)
        letter.add_attachment(dot, maintype="image", subtype="png", filename="dot.png")
        mail.deliver(letter)
        await mail.until(lambda server: len(server.sent) == 1)
        body = mail.sent[0].get_body(("plain",))
        assert body is not None
        text = str(body.get_content())
        assert "A picture was not sent to" in text
        assert text.endswith("I can't see it")


async def test_a_wrong_password_is_said(tmp_path: Path) -> None:
    async with (
        MailServer(password="another") as mail,  # noqa: S106
        ModelServer() as model,
        opened(tmp_path, model, mail) as gateway,
    ):
        await until(
            lambda: gateway.status.parts and gateway.status.parts[0].state == "failed"
        )
        assert "rejects the password" in gateway.status.parts[0].error


async def test_a_mail_that_is_too_large_is_answered_and_one_that_can_not_be_read_keeps_nobody_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with MailServer() as mail, ModelServer("too much for me") as model:
        mail.sizes[2] = 50_000_000
        broken = mail.receive("poison", sender=ANNA)
        reading = text.body_of

        def fails(one: EmailMessage) -> str:
            if one["Message-ID"] == broken["Message-ID"]:
                raise AttributeError("as parsers do")
            return reading(one)

        monkeypatch.setattr(text, "body_of", fails)
        async with opened(tmp_path, model, mail):
            mail.receive("never read " * 10, sender=ANNA, Subject="My film")
            await mail.until(
                lambda server: len(server.sent) == 1 and server.seen == {1, 2}
            )
        said = msgspec.json.decode(model.posts[0].body)["messages"][-1]["content"]
        assert said.startswith("My film\n\n[This mail has more than 30,000,000 bytes.")
        assert "never read" not in said
