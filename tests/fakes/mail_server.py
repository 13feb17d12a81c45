"""A fake mail server on loopback that speaks IMAP (with IDLE) and SMTP, as much as a client of one mailbox needs."""

import asyncio
import base64
import email
import email.policy
import re
from collections.abc import Callable
from email.message import EmailMessage
from types import TracebackType
from typing import Self

PATIENCE = 20.0  # seconds for anything to happen
AUTHSERV = "mx.loopback.test"


class MailServer:
    """`inbox` is what was delivered to the mailbox, `sent` what its owner sent."""

    def __init__(
        self,
        *,
        password: str = "mail-password-of-a-test",  # noqa: S107
        idle: bool = True,  # noqa: RUF100, S107
    ) -> None:
        self.password = password
        self.idle = idle
        self.inbox: list[bytes] = []
        self.seen: set[int] = set()
        self.sent: list[EmailMessage] = []
        self.sizes: dict[int, int] = {}  # what is said of a mail's size, by its number
        self.tries = 0  # to sign in
        self.hangs_up = False  # instead of letting anybody in
        self.refuse = 0  # answers to DATA that are failures
        self.imap_port = self.smtp_port = 0
        self._changed = asyncio.Event()
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        for serve in (self._imap, self._smtp):
            self._servers.append(
                await asyncio.start_server(self._keep(serve), "127.0.0.1", 0)
            )
        self.imap_port, self.smtp_port = (
            one.sockets[0].getsockname()[1] for one in self._servers
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for server in self._servers:
            server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def receive(
        self, text: str, *, sender: str, verified: bool = True, **headers: str
    ) -> EmailMessage:
        """Somebody writes to the mailbox."""
        mail = EmailMessage()
        if verified:
            domain = sender.rpartition("@")[2]
            mail["Authentication-Results"] = (
                f"{AUTHSERV}; dkim=pass header.d={domain}; dmarc=pass"
            )
        mail["From"], mail["To"] = sender, "hermes@loopback.test"
        mail["Message-ID"] = f"<{len(self.inbox) + 1}@{sender.rpartition('@')[2]}>"
        for name, value in headers.items():
            mail[name.replace("_", "-")] = value
        mail.set_content(text)
        self.deliver(mail)
        return mail

    def deliver(self, mail: EmailMessage) -> None:
        """Puts a mail into the mailbox."""
        self.inbox.append(mail.as_bytes(policy=email.policy.SMTP))
        self._changed.set()

    async def until(self, holds: "Callable[[MailServer], object]") -> None:
        """Waits until that holds."""
        async with asyncio.timeout(PATIENCE):
            while not holds(self):
                self._changed.clear()
                await self._changed.wait()

    def _keep(
        self, serve: "Callable[[asyncio.StreamReader, asyncio.StreamWriter], object]"
    ) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], None]:
        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.get_running_loop().create_task(
                self._guard(serve, reader, writer)
            )
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        return accept

    async def _guard(
        self, serve: object, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            await serve(reader, writer)  # type: ignore[operator]  # pyrefly: ignore[not-callable]
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    @staticmethod
    def _password_of(answer: bytes) -> str:
        return base64.b64decode(answer).decode().split("\0")[-1]

    async def _lets_in(
        self, request: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        self.tries += 1
        if self.hangs_up:
            raise ConnectionResetError
        if request.upper().startswith("LOGIN"):
            return self.password in request
        writer.write(b"+ \r\n")
        return self._password_of(await reader.readline()) == self.password

    async def _imap(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        writer.write(b"* OK loopback\r\n")
        known = 0
        while line := (await reader.readline()).decode().strip():
            tag, _, rest = line.partition(" ")
            command = rest.upper()
            if command.startswith("CAPABILITY"):
                writer.write(
                    b"* CAPABILITY IMAP4rev1"
                    + (b" IDLE" if self.idle else b"")
                    + b"\r\n"
                )
            elif command.startswith(("LOGIN", "AUTHENTICATE PLAIN")):
                if not await self._lets_in(rest, reader, writer):
                    writer.write(f"{tag} NO [AUTHENTICATIONFAILED] wrong\r\n".encode())
                    continue
            elif command.startswith("SELECT"):
                writer.write(
                    f"* {len(self.inbox)} EXISTS\r\n* OK [UIDVALIDITY 1]\r\n".encode()
                )
            elif command.startswith("UID SEARCH"):
                unseen = [
                    str(n) for n in range(1, len(self.inbox) + 1) if n not in self.seen
                ]
                writer.write(f"* SEARCH {' '.join(unseen)}\r\n".encode())
            elif command.startswith("UID FETCH"):
                number = int(rest.split()[2])
                body = self.inbox[number - 1]
                head = f"* {number} FETCH (UID {number} "
                if "RFC822.SIZE" in command:
                    writer.write(
                        f"{head}RFC822.SIZE {self.sizes.get(number, len(body))})\r\n".encode()
                    )
                else:
                    part = (
                        body.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
                        if "[HEADER]" in command
                        else body
                    )
                    writer.write(
                        f"{head}BODY[] {{{len(part)}}}\r\n".encode() + part + b")\r\n"
                    )
            elif command.startswith("UID STORE"):
                self.seen.add(int(rest.split()[2]))
                self._changed.set()
            elif command == "IDLE":
                known = await self._idle(reader, writer, known)
            if (
                len(self.inbox) > known and known
            ):  # told once, with whatever command comes next
                writer.write(f"* {len(self.inbox)} EXISTS\r\n".encode())
            known = len(self.inbox)
            writer.write(f"{tag} OK done\r\n".encode())
            await writer.drain()

    async def _idle(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, known: int
    ) -> int:
        if len(self.inbox) > known:
            known = len(self.inbox)
            writer.write(f"* {known} EXISTS\r\n".encode())
        writer.write(b"+ idling\r\n")
        await writer.drain()
        done = asyncio.ensure_future(reader.readline())
        while not done.done():
            if len(self.inbox) > known:
                known = len(self.inbox)
                writer.write(f"* {known} EXISTS\r\n".encode())
            await asyncio.wait({done}, timeout=0.02)
        await done
        return known

    async def _smtp(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        writer.write(b"220 loopback\r\n")
        while line := (await reader.readline()).decode().strip():
            command = line.upper()
            if command.startswith("EHLO"):
                writer.write(b"250-loopback\r\n250 AUTH PLAIN\r\n")
            elif command.startswith("AUTH PLAIN"):
                self.tries += 1
                given = self._password_of(line.split()[2].encode())
                writer.write(
                    b"235 ok\r\n" if given == self.password else b"535 wrong\r\n"
                )
            elif command == "DATA":
                writer.write(b"354 go on\r\n")
                body = await reader.readuntil(b"\r\n.\r\n")
                if self.refuse:
                    self.refuse -= 1
                    writer.write(b"451 try again\r\n")
                    continue
                plain = re.sub(rb"(?m)^\.\.", b".", body[:-5])
                parsed = email.message_from_bytes(plain, policy=email.policy.default)
                assert isinstance(parsed, EmailMessage)
                self.sent.append(parsed)
                self._changed.set()
                writer.write(b"250 ok\r\n")
            elif command == "QUIT":
                writer.write(b"221 bye\r\n")
                return
            else:
                writer.write(b"250 ok\r\n")
            await writer.drain()
