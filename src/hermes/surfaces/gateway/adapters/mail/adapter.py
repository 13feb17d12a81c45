"""E-mail: read by IMAP, with IDLE where the server supports it, and sent by SMTP.

Each turn is one mail in its thread.
"""

import asyncio
import contextlib
import email
import email.policy
import hashlib
import imaplib
import logging
import re
import select
import smtplib
import ssl
from email.message import EmailMessage
from email.utils import formatdate
from typing import Any

from hermes.app.mail_servers import (
    WrongMailPassword,
    exposes_password,
    open_imap,
    open_smtp,
)
from hermes.errors import SettingsError
from hermes.settings.gateway import EmailSettings
from hermes.surfaces.gateway.adapter import (
    AdapterDeps,
    Attachment,
    Chat,
    ChatAdapter,
    DeliveryRefused,
    Inbound,
    Inlet,
    Outbound,
    PlatformLimits,
    Unauthorized,
    Unreachable,
    override,
)
from hermes.surfaces.gateway.adapters.mail.text import (
    inbound_of,
    is_automatic,
    sender_of,
    vouching_server,
)
from hermes.text.translation import translator

t = translator(__name__)


log = logging.getLogger("hermes.gateway")

_MAX_IDLE_S = 25 * 60.0
"""Servers end IDLE after 30 minutes."""
_IDLE_STEP_S = 5.0
"""How long a download can have to wait for the connection."""
_MAX_MAIL_BYTES = 30_000_000
_NEW_MAIL = re.compile(rb"\b(EXISTS|RECENT)\b")
_PASSWORD_HINT = t.logged(
    "Store the right one with: {command}. Many providers want an app password.",
    command="hermes config set EMAIL_PASSWORD",
)
_WRONG_PASSWORD = t.logged("The mail server rejects the password.")


def build(deps: AdapterDeps) -> "MailAdapter":
    """Builds the adapter from the settings."""
    settings = deps.app.settings.gateway.email
    for name in ("address", "imap_host", "smtp_host", "trusted_authserv"):
        if not getattr(settings, name):
            raise SettingsError(
                t.later("{setting} is not set.", setting=f"gateway.email.{name}"),
                hint=t.later("See docs/guide/gateway.md, E-mail."),
            )
    if exposes_password(settings):
        raise SettingsError(
            t.later(
                "gateway.email.security is `none`, but the server is on another machine: others could read the password."
            ),
            hint=t.later("Set it to tls."),
        )
    return MailAdapter(settings, deps.secrets.require("EMAIL_PASSWORD"))


class MailAdapter(ChatAdapter):
    """One mailbox. A mail is marked as read once it is accepted; mails that are marked are ignored."""

    name = "email"
    limits = PlatformLimits(
        text=500_000,
        edit=False,
        buttons=False,
        file_bytes=20_000_000,
        typing=0.0,
        whole=True,
        attached=True,
    )

    def __init__(self, settings: EmailSettings, password: str) -> None:
        self._settings = settings
        self._password = password
        self._mailbox: imaplib.IMAP4 | None = None
        self._lock = asyncio.Lock()

    @override
    async def run(self, inlet: Inlet) -> None:
        self._mailbox = await asyncio.to_thread(self._open)
        try:
            await inlet.connected(self._settings.address)
            while True:
                await self._receive_new(inlet)
                await self._wait_for_mail()
        except (OSError, imaplib.IMAP4.error) as error:
            raise Unreachable(f"the mailbox: {error}") from error
        finally:
            mailbox, self._mailbox = self._mailbox, None
            if mailbox is not None:
                with contextlib.suppress(OSError, imaplib.IMAP4.error):
                    await asyncio.to_thread(mailbox.shutdown)

    @override
    async def send(self, chat: Chat, out: Outbound) -> str:
        mail = self._compose(chat, out)
        for file in out.files:
            main, _, sub = file.media_type.partition("/")
            data = await asyncio.to_thread(file.path.read_bytes)
            mail.add_attachment(
                data, maintype=main, subtype=sub or "octet-stream", filename=file.name
            )
        await asyncio.to_thread(self._deliver, mail)
        return str(mail["Message-ID"])

    @override
    async def fetch(self, attachment: Attachment, most: int) -> bytes:
        uid, _, number = attachment.ref.partition(":")
        async with self._lock:
            mail = await asyncio.to_thread(self._read, uid)
        parts = list(mail.iter_attachments()) if mail is not None else []
        data = None
        if int(number) < len(parts):
            data = parts[int(number)].get_payload(decode=True)
        if not isinstance(data, bytes) or len(data) > most:
            raise DeliveryRefused(t.logged("It is gone or too large."))
        return data

    def _compose(self, chat: Chat, out: Outbound) -> EmailMessage:
        mail = EmailMessage()
        mail["From"], mail["To"] = self._settings.address, chat.id
        subject = chat.title or "Hermes"
        is_reply = bool(chat.thread) and not subject.lower().startswith("re:")
        mail["Subject"] = f"Re: {subject}" if is_reply else subject
        mail["Date"] = formatdate()
        name = hashlib.sha256(f"{out.key}/{chat.thread}".encode()).hexdigest()[:32]
        domain = self._settings.address.rpartition("@")[2]
        # The same for each attempt, so that duplicates can be recognized.
        mail["Message-ID"] = f"<{name}@{domain}>"
        if chat.thread:
            mail["In-Reply-To"] = mail["References"] = chat.thread
        mail["Auto-Submitted"] = "auto-replied" if chat.thread else "auto-generated"
        mail.set_content(out.text or t("See the attachment."))
        return mail

    def _deliver(self, mail: EmailMessage) -> None:
        try:
            with open_smtp(self._settings, self._password) as server:
                server.send_message(mail)
        except WrongMailPassword as error:
            raise Unauthorized(_WRONG_PASSWORD, hint=_PASSWORD_HINT) from error
        except (
            smtplib.SMTPRecipientsRefused,
            smtplib.SMTPDataError,
            smtplib.SMTPSenderRefused,
        ) as error:
            code = getattr(error, "smtp_code", 0) or max(
                (code for code, _ in getattr(error, "recipients", {}).values()),
                default=0,
            )
            kind = DeliveryRefused if code >= 500 else Unreachable
            raise kind(
                t.logged("the mail server refused ({code})", code=code)
            ) from error
        except (smtplib.SMTPException, OSError) as error:
            raise Unreachable(
                t.logged("mail can't be sent now ({error})", error=type(error).__name__)
            ) from error

    def _open(self) -> imaplib.IMAP4:
        try:
            box = open_imap(self._settings, self._password)
        except WrongMailPassword as error:
            raise Unauthorized(_WRONG_PASSWORD, hint=_PASSWORD_HINT) from error
        except (OSError, imaplib.IMAP4.error) as error:
            raise Unreachable(
                t.logged("the mailbox can't be reached: {error}", error=error)
            ) from error
        box.select("INBOX")
        return box

    async def _receive_new(self, inlet: Inlet) -> None:
        """Receives the unread mails and marks each as read once it is on disk.

        It looks until there are none left: the server announces a mail that arrives
        meanwhile only once, and not while we idle.
        """
        seen: set[str] = set()
        while uids := [uid for uid in await self._list_unread() if uid not in seen]:
            seen.update(uids)
            await self._receive(inlet, uids)

    async def _list_unread(self) -> list[str]:
        async with self._lock:
            return await asyncio.to_thread(self._unread)

    async def _receive(self, inlet: Inlet, uids: list[str]) -> None:
        for uid in uids:
            async with self._lock:
                mail = await asyncio.to_thread(self._read, uid)
            inbound = self._inbound(mail, uid) if mail is not None else None
            if inbound is not None:
                await inlet.receive(inbound)
            async with self._lock:
                await asyncio.to_thread(self._mark, uid)

    def _inbound(self, mail: EmailMessage, uid: str) -> Inbound | None:
        """The mail as a message; None for one that is not for us.

        This is a boundary: one mail that can't be read must not block those behind it.
        """
        try:
            inbound = (
                inbound_of(mail, uid, self._settings.trusted_authserv)
                if self._is_for_us(mail)
                else None
            )
        except Exception:
            log.exception("a mail can't be read and is skipped (uid %s)", uid)
            return None
        if inbound is not None and not inbound.person.verified:
            log.warning(
                "the sender of a mail is not verified: %s vouches for it, %s is trusted (uid %s)",
                vouching_server(mail) or "no server",
                self._settings.trusted_authserv,
                uid,
            )
        return inbound

    def _is_for_us(self, mail: EmailMessage) -> bool:
        return not is_automatic(mail) and sender_of(mail)[0] not in {
            "",
            self._settings.address.lower(),
        }

    def _unread(self) -> list[str]:
        return [uid.decode() for uid in self._uid("SEARCH", "UNSEEN")[0].split()]

    def _read(self, uid: str) -> EmailMessage | None:
        """Reads a mail; of one that is too large, only the headers."""
        answer = b" ".join(
            one
            for one in self._uid("FETCH", uid, "(RFC822.SIZE)")
            if isinstance(one, bytes)
        )
        size = re.search(rb"RFC822\.SIZE (\d+)", answer)
        is_large = size is not None and int(size[1]) > _MAX_MAIL_BYTES
        for found in self._uid(
            "FETCH", uid, f"(BODY.PEEK[{'HEADER' if is_large else ''}])"
        ):
            if isinstance(found, tuple):
                parsed = email.message_from_bytes(found[1], policy=email.policy.default)
                assert isinstance(parsed, EmailMessage)  # noqa: S101 - the policy makes these
                return _without_body(parsed) if is_large else parsed
        return None

    def _mark(self, uid: str) -> None:
        self._uid("STORE", uid, "+FLAGS.SILENT", r"(\Seen)")

    def _uid(self, command: str, *arguments: str) -> list[Any]:
        if self._mailbox is None:
            raise Unreachable(t.logged("the mailbox is closed"))
        kind, data = self._mailbox.uid(command, *arguments)
        if kind != "OK":
            raise Unreachable(
                t.logged("the mailbox refused {command}", command=command)
            )
        return [one for one in data if one is not None] or [b""]

    async def _wait_for_mail(self) -> None:
        """Waits until there may be a new mail.

        IDLE occupies the connection, so it is ended from time to time for downloads.
        """
        mailbox = self._mailbox
        if mailbox is None:
            return
        if "IDLE" not in mailbox.capabilities:
            await asyncio.sleep(self._settings.poll_every)
            async with self._lock:
                await asyncio.to_thread(mailbox.noop)
            return
        step_s = min(self._settings.poll_every, _IDLE_STEP_S)
        deadline = asyncio.get_running_loop().time() + _MAX_IDLE_S
        while asyncio.get_running_loop().time() < deadline:
            async with self._lock:
                if await asyncio.to_thread(_idle, mailbox, step_s):
                    return
            await asyncio.sleep(0)


def _without_body(mail: EmailMessage) -> EmailMessage:
    mail.clear_content()
    mail.set_content(
        f"[This mail has more than {_MAX_MAIL_BYTES:,} bytes. Neither its text nor its attachments were read.]"
    )
    return mail


def _idle(box: imaplib.IMAP4, seconds: float) -> bool:
    """Idles for a while; returns whether the server announced a new mail."""
    tag = b"IDLE1"
    box.send(tag + b" IDLE\r\n")
    news = False
    while not (line := box.readline()).startswith(b"+"):
        if not line.startswith(b"*"):
            raise imaplib.IMAP4.abort("IDLE was refused")
        news = news or bool(_NEW_MAIL.search(line))  # it arrived before we idled
    news = news or (_has_more(box, seconds) and bool(_NEW_MAIL.search(box.readline())))
    box.send(b"DONE\r\n")
    while not (line := box.readline()).startswith(tag):
        news = news or b"EXISTS" in line
        if not line:
            raise imaplib.IMAP4.abort("the server closed the connection")
    return news


def _has_more(box: imaplib.IMAP4, seconds: float) -> bool:
    socket = box.socket()
    is_buffered = isinstance(socket, ssl.SSLSocket) and socket.pending() > 0
    return is_buffered or bool(select.select([socket], [], [], seconds)[0])
