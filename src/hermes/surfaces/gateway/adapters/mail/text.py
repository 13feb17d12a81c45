"""The content of an e-mail: its text without quotes, attachments, thread and sender.

Anybody can write any address into From. What counts is what your own mail server found
when it received the mail, in the Authentication-Results header that it put on top: DMARC
passed, or a DKIM signature of the sender's own domain did. That means the domain vouches
for the mail, and we trust the domain to know its own people. Without such a header of
that very server, the sender is not verified.
"""

import re
from email.message import EmailMessage, MIMEPart
from email.utils import parseaddr

from hermes.surfaces.gateway.adapter import Attachment, Chat, Inbound, Person, file_kind
from hermes.tools.web import charset

_QUOTE_HEAD = re.compile(
    r"^(?:On\b.*\bwrote:|Am\b.*\bschrieb.*:|Le\b.*a écrit\s*:|-{2,}\s*Original Message\s*-{2,}|From:\s.+)\s*$",
    re.IGNORECASE,
)
_ID = re.compile(r"<[^<>\s]+>")
_QUOTED = re.compile(r'"(?:\\.|[^"\\])*"')
_COMMENT = re.compile(r"\([^()]*\)")
_METHOD = re.compile(
    r"\s*(dmarc|dkim)(?:\s*/\s*\d+)?\s*=\s*(\w+)(?!\S)(.*)", re.IGNORECASE | re.DOTALL
)
_PROPERTY = re.compile(r"(?<!\S)header\.(from|d|i)\s*=\s*([^\s;]+)", re.IGNORECASE)
_FALLBACK_CHARSET = "charset=windows-1252"
_MAX_SUBJECT_CHARACTERS = 200
_MAX_CHARSET_CHARACTERS = 40


def sender_of(mail: EmailMessage) -> tuple[str, str]:
    """The sender's address and name; empty when there is not exactly one sender."""
    lines = mail.get_all("From") or ()
    found = [one for line in lines for one in getattr(line, "addresses", ())]
    if len(lines) != 1 or len(found) != 1 or not found[0].domain:
        return "", ""
    return _characters(found[0].addr_spec).strip().lower(), _characters(
        found[0].display_name
    )


def is_verified(mail: EmailMessage, authserv: str) -> bool:
    """Whether our own mail server vouches for the sender's domain."""
    address, _ = sender_of(mail)
    domain = address.rpartition("@")[2]
    server, *clauses = _results(mail)
    if not authserv or not domain or server.split()[:1] != [authserv]:
        return False
    return any(_vouches(clause, domain) for clause in clauses)


def vouching_server(mail: EmailMessage) -> str:
    """The server that wrote the topmost Authentication-Results; empty for none."""
    return (_results(mail)[0].split() or [""])[0]


def _results(mail: EmailMessage) -> list[str]:
    """The topmost Authentication-Results: the server, then its results.

    It is taken as it stands in the mail, not decoded, and without quoted strings and
    comments, which may contain text of a stranger, such as the sender of the envelope.
    """
    lines = [
        str(value)
        for name, value in mail.raw_items()
        if name.lower() == "authentication-results"
    ]
    text = _QUOTED.sub("", lines[0]) if lines else ""
    while text != (text := _COMMENT.sub(" ", text)):
        pass
    if set(text) & set('"()\\'):
        return [""]
    return text.split(";")


def _vouches(clause: str, domain: str) -> bool:
    """Whether one result says that the domain vouches for the mail."""
    found = _METHOD.match(clause)
    if not found or found[2].lower() != "pass":
        return False
    named = {
        name.lower(): value.rpartition("@")[2].lower()
        for name, value in _PROPERTY.findall(found[3])
    }
    if found[1].lower() == "dmarc":
        return named.get("from", domain) == domain
    signed = named.get("d") or named.get("i", "")
    return bool(signed) and _is_aligned(signed, domain)


def _is_aligned(signed: str, domain: str) -> bool:
    """Whether a domain signs for another: `example.org` does for `mail.example.org`, `org` for nobody."""
    return signed == domain or ("." in signed and domain.endswith(f".{signed}"))


def is_automatic(mail: EmailMessage) -> bool:
    """Whether a program wrote the mail: an answer would only lead to the next one."""
    submitted = str(mail.get("Auto-Submitted", "no")).partition(";")[0].strip().lower()
    bulk = str(mail.get("Precedence", "")).lower() in {
        "bulk",
        "list",
        "junk",
        "auto_reply",
    }
    return (
        submitted != "no"
        or bulk
        or "List-Id" in mail
        or not parseaddr(str(mail.get("Return-Path", "x@x")))[1]
    )


def inbound_of(mail: EmailMessage, uid: str, authserv: str) -> Inbound:
    """The mail as a message. The first mail of a thread names it."""
    address, name = sender_of(mail)
    own = _first_id(str(mail.get("Message-ID", ""))) or f"<uid-{uid}@mailbox>"
    before = _ID.findall(f"{mail.get('References', '')} {mail.get('In-Reply-To', '')}")
    subject = " ".join(_characters(str(mail.get("Subject", ""))).split())
    chat = Chat(
        "email",
        address,
        "direct",
        before[0] if before else own,
        subject[:_MAX_SUBJECT_CHARACTERS],
    )
    person = Person(address, name, verified=is_verified(mail, authserv))
    words = body_of(mail)
    text = words if before or not subject else f"{subject}\n\n{words}".strip()
    return Inbound(
        id=own,
        chat=chat,
        person=person,
        text=text,
        attachments=attachments_of(mail, uid),
        message=own,
    )


def body_of(mail: EmailMessage) -> str:
    """The text that the person wrote, without the text that they quote."""
    part = mail.get_body(("plain", "html"))
    if part is None:
        return ""
    note = ""
    try:
        text = str(part.get_content())
    except (LookupError, ValueError):  # Python has no charset of that name
        text, note = _decoded(part)
    if part.get_content_type() == "text/html":
        text = re.sub(r"(?is)<(script|style).*?</\1>|<[^>]+>", " ", text)
    return _without_quotes(_characters(text)) + note


def _decoded(part: MIMEPart) -> tuple[str, str]:
    """The text of a part whose charset Python does not know, and a note if it is a guess."""
    content = part.get_payload(decode=True)
    name = part.get_content_charset("")
    known = charset.is_known(name)
    text = charset.decode(
        content if isinstance(content, bytes) else b"",
        f"charset={name}" if known else _FALLBACK_CHARSET,
    )
    if known:
        return text, ""
    letters = [letter for letter in name if letter.isalnum() or letter in "-_."]
    shown = "".join(letters[:_MAX_CHARSET_CHARACTERS])
    return (
        text,
        f"\n\n[This mail uses an unknown charset, {shown!r}. Some characters may be wrong.]",
    )


def _characters(text: str) -> str:
    """The text without surrogates, which stand for bytes that the mail library could not decode."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return charset.decode(
            text.encode("utf-8", "surrogateescape"), _FALLBACK_CHARSET
        )
    return text


def attachments_of(mail: EmailMessage, uid: str) -> tuple[Attachment, ...]:
    found: list[Attachment] = []
    for number, part in enumerate(mail.iter_attachments()):
        media = part.get_content_type()
        kind = file_kind(media)
        size = len(str(part.get_payload())) * 3 // 4
        found.append(
            Attachment(
                kind,
                f"{uid}:{number}",
                _characters(part.get_filename() or ""),
                media,
                size,
            )
        )
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
