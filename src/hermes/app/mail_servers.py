"""Connections to the servers of a mailbox: IMAP, which receives mail, and SMTP, which sends it. Blocking."""

import contextlib
import imaplib
import smtplib
import ssl

from hermes.settings.gateway import EmailSettings

STEP_TIMEOUT_S = 30.0
_LOCAL_HOSTS = frozenset(("127.0.0.1", "::1", "localhost"))


class WrongMailPassword(Exception):
    """The server does not let the user in."""


def exposes_password(settings: EmailSettings) -> bool:
    """Whether the password would go to another machine without encryption."""
    hosts = {settings.imap_host, settings.smtp_host}
    return settings.security == "none" and not hosts <= _LOCAL_HOSTS


def open_imap(settings: EmailSettings, password: str) -> imaplib.IMAP4:
    """A connection that is signed in. Raises WrongMailPassword, OSError or imaplib.IMAP4.error."""
    host, port = settings.imap_host, settings.imap_port
    box: imaplib.IMAP4
    if settings.security == "none":
        box = imaplib.IMAP4(host, port, timeout=STEP_TIMEOUT_S)
    else:
        context = ssl.create_default_context()
        box = imaplib.IMAP4_SSL(host, port, ssl_context=context, timeout=STEP_TIMEOUT_S)
    try:
        box.login(settings.user or settings.address, password)
    except imaplib.IMAP4.error as error:
        with contextlib.suppress(OSError, imaplib.IMAP4.error):
            box.shutdown()
        raise WrongMailPassword from error
    return box


def open_smtp(settings: EmailSettings, password: str) -> smtplib.SMTP:
    """A connection that is signed in. Raises WrongMailPassword, OSError or smtplib.SMTPException."""
    server = _connected_smtp(settings)
    try:
        server.login(settings.user or settings.address, password)
    except smtplib.SMTPAuthenticationError as error:
        server.close()
        raise WrongMailPassword from error
    except BaseException:
        server.close()
        raise
    return server


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
