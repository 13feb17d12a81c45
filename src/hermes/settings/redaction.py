"""Masks secrets in text for logs, chat labels, approval texts and summaries.

Most lines hold none and cost two microseconds: a quick search for a few words and long runs of key
characters. Only lines with such a hint are examined closely. A secret is recognised by its shape
(`key_shapes`) or the name before it.
"""

import binascii
import re

from hermes.settings.key_shapes import (
    HIDDEN,
    KEY,
    KEY_CLASSES,
    SPLIT_KEY,
    compiled,
    compiled_for,
    find_long_run,
    is_secret_value,
    key_classes,
    may_begin_key,
    may_hold_key,
)
from hermes.settings.named_secrets import (
    is_random,
    lowered,
    mask_commands,
    mask_headers,
    mask_named,
)
from hermes.settings.secret_hints import (
    may_hold_command,
    may_hold_header,
    may_hold_row,
    may_hold_userinfo,
    may_name_secret,
)
from hermes.settings.spelled_secrets import mask_rows, mask_spelled

_DATABASE_USER = r"(?i)\bpostgres(?:ql)?://[\w.%+-]+@"
_NAME_ONLY = r"://[\w.+-]{1,64}@"
_NATS_USER = r"(?i)\b(?:nats|tls)://([\w.%+-]{1,40})@"
_USERINFO = (  # a password may hold `@`, and one `/` between two of them; `host:80/` has none
    r"(://)(?:[^/\s@?#:]{0,200}:(?!\d{1,5}(?:[/?#,;)\]]|$))[^\s@\"'<>]{0,200}@(?:[^\s@\"'<>/]{0,200}(?:/[^\s@\"'<>/]{0,200})?@)*"
    r"|[^/\s@?#]*@)"
)
_BARE_USERINFO = r"(?<![/\w.:@\-])([\w.\-]{1,80}:)([^\s@:/\"'<>;|&$()`]{8,200})(?=@[\w\-]{1,80}[.:/])"
_PERCENT = r"(?i)%(?:2d|5f|3d|3f|3a|26)"
_QUERY = r"(?i)([?&][a-z_\-]{0,20}(?:token|key|secret|password|passwd|auth|signature|sig)=)[^&\s#\"']+"
_UNSEEN = (
    "[\u00ad\u034f\u061c\u115f\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
    "\U000e0000-\U000e0fff]"
)
_ENCODED = r"[A-Za-z0-9+/_\-]{20,}(?:\r?\n[ \t]*[A-Za-z0-9+/_\-]{16,})*={0,2}"
_LONGEST_ENCODED = 20_000
_SHORTEST_SPLIT = 16
_DEPTH = 2
"""How many times encoded text is decoded."""
_MENTION = r"<@[!&]?[A-Z0-9]{6,24}(?:\|[^>]{0,80})?>"
_INTERNATIONAL = r"(?<![\w.+])\+[1-9](?:[ ./()\-]{0,2}\d){7,14}(?!\d|:\d)"
_AREA_CODE = r"(?<!\w)\(\d{2,5}\)[ \-/]?\d{2,4}(?:[ \-/]?\d{2,4}){1,3}(?!\w)"
_NAMED = (
    r"(?i)\b(?:telephone|phone|mobile|tel|sms)(?:[_ ]?(?:number|no|id))?[\"']?"
    r"\s{0,4}[:=]\s{0,4}[\"']?(\d(?:[ ./()\-]{0,2}\d){6,14})(?!\d)"
)
_WHATSAPP = (
    r"(?i)(?<![\w+])\d{7,15}(?=(?::\d{1,3})?@(?:s\.whatsapp\.net|c\.us)\b)"
    r"|(?<=wa\.me/)\d{7,15}|(?<=whatsapp:)\d{7,15}(?!\d)"
)


def mask(text: str, depth: int = _DEPTH) -> str:
    """Returns `text` with every secret replaced: keys, passwords, private keys, and credentials in
    addresses. Encoded text is decoded up to `depth` times.
    """
    is_ascii = text.isascii()
    if is_ascii and ("%" not in text or not _may_be_escaped(text)):
        low = text.lower()
    else:
        plain = _plain(text)
        if plain != text:
            hidden = mask(plain, depth)
            return text if hidden == plain else hidden
        low = lowered(text)
    # Whatever has a name needs one of these; looking for one character is three times as fast as for a word.
    is_pair = ":" in low or "=" in low
    if may_name_secret(text, low, is_pair=is_pair):
        text = mask_spelled(_mask_query(mask_named(text, low)))
    if (
        "bearer" in low
        or (
            is_pair
            and (
                "auth" in low
                or ("oo" in low and "cookie" in low)
                or ("-u" in low and "curl" in low)
            )
        )
    ) and may_hold_header(low):
        text = _mask_query(mask_headers(text, low))
    if (
        (
            "-" in low
            and (" -" in low or "\n" in low or "\t" in low)
            and ("-p" in low or "-u" in low or "-a" in low or "|" in low)
        )
        or (("'" in low or '"' in low) and "identified" in low)
        or ("|" in low and "chpasswd" in low)
    ) and may_hold_command(low):
        text = mask_commands(text)
    if "@" in text and is_pair and may_hold_userinfo(text):
        text = _mask_userinfo(text)
    classes = text.encode().translate(KEY_CLASSES) if is_ascii else key_classes(text)
    run = find_long_run(classes)
    if run is not None and may_hold_key(text, classes, run.start()):
        return _mask_keys(text, depth)
    if "\n" in low or "\t" in low or (is_pair and " " not in low and "://" not in low):
        return _mask_lines(text, low)
    return text


def has_credentials(text: str) -> bool:
    """Returns whether `text` holds an address with a password or key: `https://me:pw@host`,
    `...?token=x`. The user of a database or of NATS, without a password, is neither; a token of NATS is.
    """
    if "://" not in text:
        return False
    text = re.sub(_DATABASE_USER, "", text)
    text = re.sub(_NATS_USER, lambda found: found[0] if is_random(found[1]) else "", text)  # fmt: skip
    return ("@" in text and re.search(_USERINFO, text) is not None) or re.search(
        _QUERY, text
    ) is not None


def _plain(text: str) -> str:
    """Removes invisible characters, and the percent signs that hide how keys and fields start."""
    if not text.isascii():
        text = compiled(_UNSEEN).sub("", text)
    if "%" in text:
        text = compiled(_PERCENT).sub(lambda found: chr(int(found[0][1:], 16)), text)
    return text


def _may_be_escaped(text: str) -> bool:
    """Returns whether `text` may have one of the percent signs that `_plain` removes."""
    return "%2" in text or "%3" in text or "%5" in text


def _mask_lines(text: str, low: str) -> str:
    """Masks rows of files with passwords, and keys that line breaks split."""
    if may_hold_row(low):
        text = mask_rows(text)
    return _mask_split(text) if "\n" in text else text


def _mask_userinfo(text: str) -> str:
    """Masks the user's name and password in addresses, and `name:password@host` without `://`."""
    if "://" in text:
        text = compiled(_USERINFO).sub(_masked_userinfo, text)
    return compiled(_BARE_USERINFO).sub(
        lambda found: found[1] + (HIDDEN if is_random(found[2]) else found[2]), text
    )


def _masked_userinfo(found: "re.Match[str]") -> str:
    """Masks a user's name and password. The user of a database, without a password, stays: it is no secret."""
    scheme = found.string[max(0, found.start() - 10) : found.start()].lower()
    is_database = scheme.endswith(("postgres", "postgresql"))
    if is_database and compiled(_NAME_ONLY).fullmatch(found[0]):
        return found[0]
    return f"{found[1]}{HIDDEN}@"


def _mask_query(text: str) -> str:
    return (
        compiled_for(text, _QUERY).sub(lambda found: found[1] + HIDDEN, text)
        if "=" in text and ("?" in text or "&" in text)
        else text
    )


def _mask_keys(text: str, depth: int) -> str:
    text = compiled(KEY).sub(HIDDEN, _mask_split(mask_rows(text)))
    if not depth:
        return text
    return compiled(_ENCODED).sub(
        lambda found: _without_encoded(found[0], depth - 1), text
    )


def _without_encoded(text: str, depth: int) -> str:
    """Masks secrets in `text`, which may be base64 on one or several lines."""
    if _encodes_secret("".join(text.split()), depth):
        return HIDDEN
    if "\n" not in text:
        return text
    return "\n".join(
        HIDDEN if _encodes_secret(line.strip(), depth) else line
        for line in text.split("\n")
    )


def _mask_split(text: str) -> str:
    """Masks keys that a line break or a sum of strings splits in two."""
    if ("\n" not in text and "+" not in text) or not may_begin_key(text):
        return text
    return compiled(SPLIT_KEY).sub(_without_parts, text)


def _without_parts(found: "re.Match[str]") -> str:
    """Masks the parts of a split key; what follows a whole key on the next line is not one."""
    length, end = len(found[1]), 0
    for part in compiled(r"[A-Za-z0-9_\-]+").finditer(found[2]):
        if not _is_material(part[0]):
            break
        length, end = length + len(part[0]), part.end()
    if end and length >= _SHORTEST_SPLIT:
        return HIDDEN + found[2][end:]
    return found[0]


def _is_material(part: str) -> bool:
    """Returns whether `part` looks like a piece of a key: letters with digits, or capitals within a
    word.
    """
    has_letters = not part.isdigit() and part.strip("_-") != ""
    return has_letters and (
        any(map(str.isdigit, part))
        or (part[1:] != part[1:].lower() and part != part.upper())
    )


def _encodes_secret(text: str, depth: int) -> bool:
    """Returns whether `text` is base64 of something that Hermes masks."""
    decoded = _decoded(text)
    return decoded != "" and (
        is_secret_value(decoded) or mask(decoded, depth) != decoded
    )


def _decoded(text: str) -> str:
    """Decodes base64 if the result is plain text."""
    text = text.rstrip("=").replace("-", "+").replace("_", "/")
    if len(text) % 4 == 1 or len(text) > _LONGEST_ENCODED:
        return ""
    data = binascii.a2b_base64(text + "=" * (-len(text) % 4))
    if data.isascii() and data.strip():
        return data.decode()
    return ""


def mask_personal(text: str) -> str:
    """Returns `text` with phone numbers, and mentions of chat users by number, replaced. For logs and reports.

    Approval texts and summaries keep both, because a person must see who gets a message.
    """
    if "<@" in text:
        text = compiled(_MENTION).sub(f"<@{HIDDEN}>", text)
    if "+" in text:
        text = compiled(_INTERNATIONAL).sub(HIDDEN, text)
    if "(" in text:
        text = compiled(_AREA_CODE).sub(HIDDEN, text)
    low = text.lower()
    if "phone" in low or "mobile" in low or "tel" in low or "sms" in low:
        text = compiled(_NAMED).sub(_without_number, text)
    if "whatsapp" in low or "wa.me/" in low or "@c.us" in low:
        text = compiled(_WHATSAPP).sub(HIDDEN, text)
    return text


def _without_number(found: "re.Match[str]") -> str:
    return found[0][: found.start(1) - found.start()] + HIDDEN
