"""Connections to the servers of a mailbox: IMAP, which receives mail, and SMTP, which sends it. Blocking."""

import base64
import contextlib
import imaplib
import smtplib
import socket
import ssl
from collections.abc import Iterator

from hermes.providers.metadata_addresses import is_hidden_own_network
from hermes.settings.gateway import EmailSettings
from hermes.text.translation import translator

t = translator(__name__)


STEP_TIMEOUT_S = 30.0
_LOCAL_HOSTS = frozenset(("127.0.0.1", "::1", "localhost"))
_SIGNED_IN = 235  # of SMTP


class WrongMailPassword(Exception):
    """The server does not let the user in."""


class OwnNetworkAddress(OSError):
    """The server's name leads to an address of the machine's own network, such as a cloud's metadata service."""


def exposes_password(settings: EmailSettings) -> bool:
    """Whether the password would go to another machine without encryption."""
    hosts = {settings.imap_host, settings.smtp_host}
    return settings.security == "none" and not hosts <= _LOCAL_HOSTS


def open_imap(settings: EmailSettings, password: str) -> imaplib.IMAP4:
    """A connection that is signed in. Raises WrongMailPassword, OSError or imaplib.IMAP4.error."""
    with _unusable_names_are_os_errors():
        box = _connected_imap(settings)
    try:
        _check_peer(settings.imap_host, box.sock)
        _log_in_to_imap(box, settings.user or settings.address, password)
    except BaseException as error:
        with contextlib.suppress(OSError, imaplib.IMAP4.error):
            box.shutdown()
        is_lost = isinstance(error, imaplib.IMAP4.abort)
        if isinstance(error, (imaplib.IMAP4.error, ValueError)) and not is_lost:
            raise WrongMailPassword from error
        raise
    return box


def open_smtp(settings: EmailSettings, password: str) -> smtplib.SMTP:
    """A connection that is signed in. Raises WrongMailPassword, OSError or smtplib.SMTPException."""
    with _unusable_names_are_os_errors():
        server = _connected_smtp(settings)
    try:
        _check_peer(settings.smtp_host, server.sock)
        _log_in_to_smtp(server, settings.user or settings.address, password)
    except BaseException as error:
        server.close()
        if isinstance(error, (smtplib.SMTPAuthenticationError, ValueError)):
            raise WrongMailPassword from error
        raise
    return server


@contextlib.contextmanager
def _unusable_names_are_os_errors() -> Iterator[None]:
    """Python raises ValueError for a host name such as `a..b`, before it looks it up."""
    try:
        yield
    except ValueError as error:
        raise OSError(str(error)) from error


def _connected_imap(settings: EmailSettings) -> imaplib.IMAP4:
    host, port = settings.imap_host, settings.imap_port
    if settings.security == "none":
        return imaplib.IMAP4(host, port, timeout=STEP_TIMEOUT_S)
    context = ssl.create_default_context()
    return imaplib.IMAP4_SSL(host, port, ssl_context=context, timeout=STEP_TIMEOUT_S)


def _connected_smtp(settings: EmailSettings) -> smtplib.SMTP:
    host, port = settings.smtp_host, settings.smtp_port
    if settings.security == "none":
        return smtplib.SMTP(host, port, timeout=STEP_TIMEOUT_S)
    context = ssl.create_default_context()
    if port == smtplib.SMTP_SSL_PORT:
        return smtplib.SMTP_SSL(host, port, timeout=STEP_TIMEOUT_S, context=context)
    server = smtplib.SMTP(host, port, timeout=STEP_TIMEOUT_S)
    server.starttls(context=context)
    return server


def _check_peer(host: str, connection: socket.socket | None) -> None:
    """Looks where the connection arrived: a name may lead elsewhere than when it was checked. Raises OSError."""
    peer = connection.getpeername()[0] if connection is not None else ""
    if not peer:
        raise ConnectionError(t.logged("the connection is closed"))
    if is_hidden_own_network(host, peer):
        raise OwnNetworkAddress(f"{host} leads to {peer}")


def _log_in_to_imap(box: imaplib.IMAP4, user: str, password: str) -> None:
    """Python's own `login` takes ASCII only. Raises ValueError for what can't be sent at all."""
    if f"{user}{password}".isascii():
        box.login(user, password)
    else:
        answer = _plain_answer(user, password)
        box.authenticate("PLAIN", lambda _: answer)


def _log_in_to_smtp(server: smtplib.SMTP, user: str, password: str) -> None:
    """The same for SMTP."""
    if f"{user}{password}".isascii():
        server.login(user, password)
        return
    answer = base64.b64encode(_plain_answer(user, password)).decode()
    server.ehlo_or_helo_if_needed()
    code, words = server.docmd("AUTH", f"PLAIN {answer}")
    if code != _SIGNED_IN:
        raise smtplib.SMTPAuthenticationError(code, words)


def _plain_answer(user: str, password: str) -> bytes:
    """The answer of the SASL mechanism PLAIN, which is UTF-8."""
    return f"\0{user}\0{password}".encode()
