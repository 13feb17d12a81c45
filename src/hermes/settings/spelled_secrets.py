"""Masks secrets that a sentence or a label reveals: `the password is x`, `TOKEN x`, a value on the line after its
label, a row of a password or cookie file.

No separator marks such a value, so its shape decides. Words, names, versions, dates and counts stay.
"""

import re

from hermes.settings.key_shapes import AMPERSAND, HIDDEN, compiled, compiled_for
from hermes.settings.named_secrets import is_random, lowered, stands_for_secret

_PASSWORD = r"(?<![a-z])pass(?:word|wd|phrase|code)?s?|(?<![a-z])pwd?(?![a-z])|(?<![a-z])pin(?: code| number)?"  # noqa: S105
_KINDS_OF_KEY = (
    "api|private|access|secret|auth|encryption|signing|master|deploy|license|account|shared|service|admin|hmac|storage"
    "|webhook"
)
_NAME = (
    rf"(?:(?P<password>{_PASSWORD})|(?:{_KINDS_OF_KEY})[ _\-]?keys?|tokens?"
    r"|secrets?|(?P<login>credentials?))"
)
_WORDS_BETWEEN = (
    r"[ \t]{1,4}(?:is|was|are|equals|(?:is |was )?(?:now|re)?(?:set|changed|reset) to)(?: now)?"
    r"[ \t]{0,4}[:=]?[ \t]{0,4}"
)
_WORD = r"[^\s:'\"]{1,60}+(?:://[^\s:'\"]{1,80}+(?::\d{1,5}+)?)?+"
_WHOSE = rf"(?:'[^'\n]{{1,100}}+'|\"[^\"\n]{{1,100}}+\"|(?!(?:is|was)[ \t]){_WORD}(?:[ \t](?!(?:is|was|set|are)[ \t:]){_WORD}){{0,3}}+)"  # noqa: E501
_NEXT_LINE = r"[ \t]{0,4}[:=][ \t]{0,4}(?:[|>][+\-]?\d?[ \t]{0,4})?(?:\r?\n[ \t]{0,80}){1,3}(?=\S{1,200}[ \t]{0,8}(?:\r?\n|$))"
_IN_BRACKETS = r"[ \t]{1,4}\((?=[^\s()]{4,202}\))"
_VALUE = (
    r"(?=[^\s\"'`,;<>(){}\[\]\\|]{0,100}\d)"
    rf"(?:[^\s&\"'`,;<>(){{}}\[\]\\|]|{AMPERSAND}){{4,200}}+"
)
SPELLED = (
    rf"{_NAME}(?:(?P<said>(?:[ \t](?:for|of)[ \t]{_WHOSE})?+(?:{_WORDS_BETWEEN}|[ \t]{{0,4}}[:=][ \t]{{0,4}}(?![^\s/]{{0,2}}//))|{_NEXT_LINE}|{_IN_BRACKETS})"  # noqa: E501
    r"|[ \t]{1,4}|[ \t]{0,4}(?:\r?\n[ \t]{0,80}))"
    rf"(?(login)(?:[^\s/:]{{1,40}}[ ]?[/:][ ]?)?)[\"'`]?(?P<value>{_VALUE})"
)
_DIGIT = r"\d"
_COUNT = r"[\d.,:_/%+\-]+[kKmMGsx]?$"
_NOT_A_PASSWORD = (  # a path, an address, `12-characters`, `sha256-hashed`, `python3.11`, `login2.py`, `a2()`
    r"(?:\.{0,2}|~)/|[a-z]+://|\d+(?:st|nd|rd|th|[a-z])?(?:-[a-z]+)*$|\w+-(?:encrypted|protected|encoded|hashed|based|only)$"  # noqa: S105
    r"|(?:sha|md|argon|pbkdf|base|utf|aes|rsa|rfc|oauth|http|ipv|v)-?\d+\w{0,3}(?:[/\-.][a-z0-9]+)*$"
    r"|[a-z_\-]+\d+(?:\.\d+)+$|[a-z_][\w\-]*\.[a-z]{1,4}$"
)
_PASSWORD_ROW = r"(?m)^([^\s:/]{1,200}:(?:\d{2,5}|\*):(?!\d)[^\s:/]{1,80}:[^\s:/]{1,80}:)([^\s:]{4,200})$"  # noqa: S105
_COOKIE_ROW = r"(\t(?:TRUE|FALSE)\t/[^\t\n]*\t(?:TRUE|FALSE)\t\d+\t[^\t\n]+\t)([^\s;|&$()<>`]{4,4000})"


def mask_spelled(text: str) -> str:
    """Masks values that a sentence or a label calls a secret, if they look like one."""
    parts, at = list[str](), 0
    low = lowered(text)
    if compiled_for(low, _DIGIT).search(low) is None:  # every such value has one
        return text
    for found in compiled_for(low, SPELLED).finditer(low):
        start, end = found.span("value")
        value = text[start:end].rstrip(".:!?")
        if _is_secret(value, text[found.start() : start], found):
            parts += [text[at:start], HIDDEN]
            at = start + len(value)
    return "".join([*parts, text[at:]])


def mask_rows(text: str) -> str:
    """Masks the passwords in PostgreSQL's password file (`.pgpass`) and the values in a file of cookies."""
    if ":" in text:
        text = compiled(_PASSWORD_ROW).sub(rf"\1{HIDDEN}", text)
    if "\t" in text:
        return compiled(_COOKIE_ROW).sub(rf"\1{HIDDEN}", text)
    return text


def _is_secret(value: str, before: str, found: "re.Match[str]") -> bool:
    if stands_for_secret(value):
        return False
    if before.lower().startswith("pin"):
        return before.startswith("PIN") and value.isdigit()
    if "(" in before:  # `password (x)`, but not the call `get_password (x)`
        is_call = found.string.endswith(("_", ".", "-"), 0, found.start())
        is_password = found["password"] is not None and not is_call
        if found["password"] == "pass":  # noqa: S105 - an everyday word: `PASS (1234ms)`
            return not is_call and is_random(value)
        return is_password and _is_password(value)
    if found["password"] is None or found["said"] is None:
        return is_random(value)
    return _is_password(value)


def _is_password(value: str) -> bool:
    """Returns whether a value that a sentence calls a password is one, and not the sentence's next word."""
    return (
        len(value) >= 6
        and compiled(_DIGIT).search(value) is not None
        and compiled(_COUNT).match(value) is None
        and compiled(_NOT_A_PASSWORD).match(value.lower()) is None
    )
