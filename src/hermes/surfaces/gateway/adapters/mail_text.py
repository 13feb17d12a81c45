"""What an e-mail says, and who it is from: the words without the quoted rest, attachments, the thread, the sender.

Anybody can write any address into From. What counts is what your own mail server found when it took the mail in, in the
Authentication-Results header that it put on top: DMARC passed, or a DKIM signature of the sender's own domain did. That
says the domain stands behind the mail; it trusts the domain to know its own people. Without such a line of that very
server the sender is nobody.
"""

import re
from email.message import EmailMessage
from email.utils import getaddresses, parseaddr

from hermes.surfaces.gateway.port import Attachment, Chat, FileKind, Inbound, Person

_QUOTE_HEAD = re.compile(
    r"^(?:On\b.*\bwrote:|Am\b.*\bschrieb.*:|Le\b.*a écrit\s*:|-{2,}\s*Original Message\s*-{2,}|From:\s.+)\s*$",
    re.IGNORECASE,
)
_ID = re.compile(r"<[^<>\s]+>")
_METHOD = re.compile(r"\b(dmarc|dkim)\s*=\s*(\w+)([^;]*)", re.IGNORECASE)
_DOMAIN = re.compile(r"header\.(?:d|i)\s*=\s*\"?@?([^\s;\"]+)", re.IGNORECASE)
_KINDS: dict[str, FileKind] = {"image": "image", "audio": "audio", "video": "video"}


def sender_of(mail: EmailMessage) -> tuple[str, str]:
    """Address and name; empty when there is not exactly one."""
    found = getaddresses([str(value) for value in mail.get_all("From", [])])
    if len(found) != 1:
        return "", ""
    name, address = found[0]
    return address.strip().lower(), name


def is_verified(mail: EmailMessage, authserv: str) -> bool:
    """Whether our own server vouches for the sender's domain."""
    address, _ = sender_of(mail)
    domain = address.rpartition("@")[2]
    results = [str(value) for value in mail.get_all("Authentication-Results", [])]
    if not authserv or not domain or not results:
        return False
    server, _, found = results[0].partition(";")  # the topmost: our server's own, if it put one there
    if server.split()[:1] != [authserv]:
        return False
    for method, verdict, rest in _METHOD.findall(found):
        if verdict.lower() != "pass":
            continue
        if method.lower() == "dmarc":
            return True
        signed = _DOMAIN.search(rest)
        if signed and _is_aligned(signed[1].rpartition("@")[2].lower(), domain):
            return True
    return False


def _is_aligned(signed: str, domain: str) -> bool:
    """The sender's own domain, or one above it: `example.org` signs for `mail.example.org`, `org` for nobody."""
    return signed == domain or ("." in signed and domain.endswith(f".{signed}"))


def is_automatic(mail: EmailMessage) -> bool:
    """A machine wrote it: an answer would only lead to the next one."""
    submitted = str(mail.get("Auto-Submitted", "no")).lower()
    bulk = str(mail.get("Precedence", "")).lower() in {"bulk", "list", "junk", "auto_reply"}
    return submitted != "no" or bulk or "List-Id" in mail or not parseaddr(str(mail.get("Return-Path", "x@x")))[1]


def inbound_of(mail: EmailMessage, uid: str, authserv: str) -> Inbound:
    """The mail as a message. Its thread is named by the mail that began it."""
    address, name = sender_of(mail)
    own = _first_id(str(mail.get("Message-ID", ""))) or f"<uid-{uid}@mailbox>"
    before = _ID.findall(f"{mail.get('References', '')} {mail.get('In-Reply-To', '')}")
    subject = " ".join(str(mail.get("Subject", "")).split())
    chat = Chat("email", address, "direct", before[0] if before else own, subject[:200])
    person = Person(address, name, verified=is_verified(mail, authserv))
    words = body_of(mail)
    text = words if before or not subject else f"{subject}\n\n{words}".strip()
    return Inbound(id=own, chat=chat, person=person, text=text, attachments=attachments_of(mail, uid), message=own)


def body_of(mail: EmailMessage) -> str:
    """The text that the person wrote, without what they answered."""
    part = mail.get_body(("plain", "html"))
    if part is None:
        return ""
    try:
        text = str(part.get_content())
    except (LookupError, ValueError):
        return ""
    if part.get_content_type() == "text/html":
        text = re.sub(r"(?is)<(script|style).*?</\1>|<[^>]+>", " ", text)
    return _without_quotes(text)


def attachments_of(mail: EmailMessage, uid: str) -> tuple[Attachment, ...]:
    found: list[Attachment] = []
    for number, part in enumerate(mail.iter_attachments()):
        media = part.get_content_type()
        kind = _KINDS.get(media.partition("/")[0], "file")
        size = len(str(part.get_payload())) * 3 // 4
        found.append(Attachment(kind, f"{uid}:{number}", part.get_filename() or "", media, size))
    return tuple(found)


def _without_quotes(text: str) -> str:
    lines = text.replace("\r\n", "\n").split("\n")
    for number, line in enumerate(lines):
        if _QUOTE_HEAD.match(line.strip()) or line.rstrip() == "--":
            lines = lines[:number]
            break
    while lines and (not lines[-1].strip() or lines[-1].startswith(">")):
        lines.pop()
    return "\n".join(lines).strip()


def _first_id(text: str) -> str:
    found = _ID.search(text)
    return found[0] if found else ""
