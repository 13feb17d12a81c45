"""Masks what names a person in logs and reports: phone numbers, and mentions of chat users by number.

Approval texts and summaries keep both, because a person must see to whom a message goes.
"""

import re

from hermes.settings.key_shapes import HIDDEN, compiled

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


def mask_personal(text: str) -> str:
    """Returns `text` with phone numbers and mentions replaced."""
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
