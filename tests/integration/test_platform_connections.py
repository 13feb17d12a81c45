"""Trying the token of a chat platform: the address is the user's, and what answers there may be anybody."""

import asyncio
import socket
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest
from tests.fakes.mail_server import AUTHSERV, MailServer
from tests.fakes.web_server import Asked, Page, Raw, web_server

from hermes.app.mail_servers import open_smtp
from hermes.app.platform_connections import (
    find_platform,
    save_platform,
    try_platform,
)
from hermes.errors import HermesError, UsageError
from hermes.settings import Home, Settings
from hermes.settings.gateway import EmailSettings, GatewaySettings, SlackSettings
from hermes.settings.load import load
from hermes.surfaces.web import override


def _mattermost(url: str) -> Mapping[str, str]:
    return {"gateway.mattermost.url": url, "MATTERMOST_TOKEN": "t0ken"}


async def _tried(url: str) -> str:
    return await try_platform(find_platform("mattermost"), Settings(), _mattermost(url))


async def test_the_account_that_the_token_belongs_to_is_named() -> None:
    def answer(asked: Asked) -> Page:
        assert asked.headers["authorization"] == "Bearer t0ken"
        return Page('{"username": "hermes"}')

    async with web_server(answer) as server:
        assert await _tried(server.url) == "hermes"


@pytest.mark.parametrize(
    "address",
    ["https://a.example:99999", "https://a.example:x", "https://[::1", "a.example",
     "ftp://a.example", "https://user@a.example", "https://"],
)  # fmt: skip
async def test_what_is_no_address_is_an_error_for_the_user(address: str) -> None:
    with pytest.raises(UsageError, match="address can't be used"):
        await _tried(address)


async def test_no_more_of_an_answer_is_read_than_it_may_have() -> None:
    def answer(_: Asked) -> Raw:
        async def endless(writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
            while True:
                writer.write(b" " * 65_536)
                await writer.drain()

        return endless

    async with web_server(answer) as server, asyncio.timeout(60):
        with pytest.raises(HermesError, match=r"as expected \(status 200\)"):
            await _tried(server.url)


async def test_the_words_of_a_service_are_cut_to_one_line() -> None:
    words = "Done.\nYour account was moved: " + "x" * 5_000
    said = msgspec.json.encode({"ok": False, "error": words})
    async with web_server(lambda _: Page(said)) as server:
        slack = SlackSettings(api_url=server.url)
        settings = Settings(gateway=GatewaySettings(slack=slack))
        given = {"SLACK_BOT_TOKEN": "xoxb-1", "SLACK_APP_TOKEN": "xapp-1"}
        with pytest.raises(HermesError) as caught:
            await try_platform(find_platform("slack"), settings, given)
    assert "(Done. Your account was moved: xxx" in caught.value.message
    assert len(caught.value.message) < 150


async def test_a_name_that_leads_to_the_clouds_metadata_later_gets_no_token(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Rebound(asyncio.StreamWriter):
        @override
        def get_extra_info(self, name: str, default: object = None) -> object:
            return ("169.254.169.254", 80) if name == "peername" else default

    async def rebinding(
        _: str, port: int, **more: object
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, loop = asyncio.StreamReader(), asyncio.get_running_loop()
        transport, protocol = await loop.create_connection(
            lambda: asyncio.StreamReaderProtocol(reader), "127.0.0.1", port
        )
        return reader, Rebound(transport, protocol, reader, loop)

    async with web_server(lambda _: Page('{"username": "x"}')) as server:
        monkeypatch.setattr(asyncio, "open_connection", rebinding)
        with pytest.raises(HermesError, match="can't be reached") as caught:
            await _tried(f"http://chat.example:{server.port}")
        assert server.asked == []
    assert "leads to 169.254.169.254" in str(caught.value.__cause__)


def _mailbox(server: MailServer, password: str, host: str) -> dict[str, str]:
    return {
        "gateway.email.address": "hermes@loopback.test",
        "gateway.email.imap_host": host,
        "gateway.email.imap_port": str(server.imap_port),
        "gateway.email.smtp_host": host,
        "gateway.email.smtp_port": str(server.smtp_port),
        "gateway.email.trusted_authserv": AUTHSERV,
        "EMAIL_PASSWORD": password,
    }


_PLAIN_MAIL = Settings(gateway=GatewaySettings(email=EmailSettings(security="none")))


async def test_a_mailbox_is_tried_at_both_servers() -> None:
    async with MailServer() as server:
        given = _mailbox(server, server.password, "127.0.0.1")
        found = await try_platform(find_platform("email"), _PLAIN_MAIL, given)
        assert found == "hermes@loopback.test"
        wrong = _mailbox(server, "something else", "127.0.0.1")
        with pytest.raises(
            HermesError, match=r"receives mail, .* rejected the password"
        ):
            await try_platform(find_platform("email"), _PLAIN_MAIL, wrong)
        silent = {**given, "gateway.email.smtp_port": "1"}
        with pytest.raises(HermesError, match=r"sends mail, .* can't be used"):
            await try_platform(find_platform("email"), _PLAIN_MAIL, silent)


async def test_a_password_may_have_any_letters() -> None:
    async with MailServer() as server:
        server.password += " ä"
        given = _mailbox(server, server.password, "127.0.0.1")
        found = await try_platform(find_platform("email"), _PLAIN_MAIL, given)
        assert found == "hermes@loopback.test"
        for wrong in ("ä", "\udcff"):
            given = _mailbox(server, wrong, "127.0.0.1")
            with pytest.raises(HermesError, match=r"mail, .* rejected the password"):
                await try_platform(find_platform("email"), _PLAIN_MAIL, given)


async def test_a_connection_lost_while_signing_in_says_nothing_of_the_password() -> (
    None
):
    async with MailServer() as server:
        server.hangs_up = True
        given = _mailbox(server, server.password, "127.0.0.1")
        with pytest.raises(HermesError, match=r"receives mail, .* can't be used"):
            await try_platform(find_platform("email"), _PLAIN_MAIL, given)


@pytest.mark.parametrize("host", ["a..b", f"{'a' * 70}.example"])
async def test_a_name_that_no_server_can_have_is_an_error_for_the_user(
    host: str,
) -> None:
    with pytest.raises(HermesError, match=r"receives mail, .* can't be used"):
        await try_platform(find_platform("email"), Settings(), _elsewhere(host))
    with pytest.raises(HermesError, match="can't be reached"):
        await _tried(f"https://{host}")


def test_an_optional_field_that_is_emptied_goes_back_to_its_default(
    tmp_path: Path,
) -> None:
    email, home = find_platform("email"), Home(tmp_path / "home")
    given = dict(_elsewhere("mail.example"))
    named = given | {"gateway.email.user": "ada", "gateway.email.imap_port": "1993"}

    def saved() -> tuple[str, int]:
        found = load({}, home=home).gateway.email
        return found.user, found.imap_port

    save_platform(home, email, named)
    assert saved() == ("ada", 1993)
    port = {"gateway.email.imap_port": "1994"}
    save_platform(home, email, given | port)
    assert saved() == ("ada", 1994)
    emptied = {"gateway.email.user": "", "gateway.email.imap_port": " "}
    save_platform(home, email, given | emptied)
    assert saved() == ("", 993)


def _elsewhere(host: str) -> Mapping[str, str]:
    usual = {"gateway.email.imap_port": "", "gateway.email.smtp_port": ""}
    return _mailbox(MailServer(), "secret", host) | usual


async def test_a_password_goes_to_another_machine_only_encrypted() -> None:
    given = _elsewhere("mail.example")
    with pytest.raises(UsageError, match="others could read the password"):
        await try_platform(find_platform("email"), _PLAIN_MAIL, given)


async def test_a_mail_server_is_not_one_of_the_clouds_own_addresses() -> None:
    given = _elsewhere("169.254.169.254")
    with pytest.raises(UsageError, match="the machine's own network"):
        await try_platform(find_platform("email"), Settings(), given)


async def test_a_mail_servers_name_that_leads_elsewhere_later_gets_no_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Rebound(socket.socket):
        @override
        def getpeername(self) -> tuple[str, int]:
            return "169.254.7.7", 143

    async with MailServer() as server:
        given = _mailbox(server, server.password, "localhost")
        mailbox = EmailSettings(security="none", smtp_host="localhost", smtp_port=server.smtp_port)  # fmt: skip
        await try_platform(find_platform("email"), _PLAIN_MAIL, given)
        monkeypatch.setattr(socket, "socket", Rebound)
        with pytest.raises(UsageError, match="the machine's own network"):
            await try_platform(find_platform("email"), _PLAIN_MAIL, given)
        with pytest.raises(OSError, match="leads to"):
            await asyncio.to_thread(open_smtp, mailbox, server.password)
        assert server.tries == 2


async def test_a_webhooks_key_is_long_enough() -> None:
    given = {"GATEWAY_WEBHOOK_SECRET": "short"}
    with pytest.raises(UsageError, match="too short"):
        await try_platform(find_platform("webhook"), Settings(), given)
