"""Named secrets: values that are secret because of the name before them.

Assignments, JSON and YAML fields, form bodies, options of commands, header lines. Look-alikes are kept: the
name of a variable, a type, a number of tokens, code, prose.
"""

import re
import string

from hermes.settings.key_shapes import HIDDEN, compiled

_WORDS = r"((?<=[a-z_.\-])key|token|secret|password|passwd|passphrase|pass|pwd|credential)(s?)(?:_?\d{1,2})?"
_SEPARATOR = r"\\*[\"'`]?\]?\s{0,4}(?:=>|:=|[:=](?![:=]))[ \t]{0,8}|>"
_NAMED = rf"{_WORDS}({_SEPARATOR})"
_NAMED_OR_BLANK = rf"{_WORDS}({_SEPARATOR}|[ \t]{{1,8}})"
_SIGNS = ("=", ":", ">", "--", "'", "login ")
"""One of them stands between a name and its value, or before the name."""
_NAME_CHARACTERS = string.ascii_letters + string.digits + "_.-"
_QUOTED_START = r"(\\*)([\"'`])"
_BARE = r"[^\s\"'`,;&<>(){}\[\]\\|]{1,1000}"
_BARE_VARIABLE = r"[^\s\"'`\\&|<>]{1,1000}"
_CAMEL = r"(?<=[a-z0-9])(?=[A-Z])"
_NAMES = (
    r"(?:^|[_.\-])(?:tokens?|secrets?|pass|pwd|credentials?|(?:api|private|access|secret|auth|encryption|signing|master"
    r"|deploy|license|account|shared|service|admin|hmac|storage|webhook)[_.\-]?(?:access[_.\-]?)?keys?)(?:_?\d{1,2})?$"
    r"|(?:password|passwd|passphrase|apikey|accesskey|secretkey)s?(?:_?\d{1,2})?$"
)
_NAMES_OF_PASSWORDS = r"(?:passwords?|passwd|passphrases?|pass|pwd)(?:_?\d{1,2})?$"
_LONGEST_NAME, _LONGEST_VALUE = 80, 4_000
_PLACEHOLDER = (
    r"\$(?:[{(]|[a-z_]*$|[A-Z_][A-Z0-9_]*$)|<[^>]*>?$|[{(]|\[[^\]]*\]?$|%[({\w]+[)}]?s?%?$|\*+$|[xX.…\-_]+$"
    r"|(?i:none|null|nil|true|false|undefined|redacted|hidden|removed|masked|str|string|bytes|int"
    r"|bool|optional|any|text|secretstr|required|optional|missing|invalid|unset|empty|default)\W*$"
    r"|(?i:your|my|the|some|an?)[_\- ][a-z_\- ]+$"
    r"|(?:os|process|env|self|this|settings|config|cfg|args|ctx|request|app)\."
)
_VARIABLE = r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$"
_COUNT = r"[\d.,:_/%+\-]+[kKmMGsx]?$"
_PATH = r"(?:\.{0,2}|~)/\S"
_PROSE = r"[A-Za-z'’,\-]+(?: [A-Za-z0-9'’,\-]+)+[.!?…]$"
_OF_PARSER = r"(?i)\b(?:unexpected|illegal|unrecognized|expected) $"
# A variable whose name goes on behind the word: TOKEN_GITHUB. What only tells about a secret is left alone: TOKEN_URL.
_LATE_VARIABLE = (
    r"(?<![A-Za-z0-9_])([A-Z0-9_]{0,40}?(?:SECRET|TOKEN|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|API_?KEY|PRIVATE_KEY"
    r"|ACCESS_KEY)S?_(?![A-Z0-9_]{0,40}(?:COUNT|LIMIT|UR[IL]|FILE|PATH|NAME|ENDPOINT|TTL|TYPE|LENGTH|ENV|VAR|FIELD"
    r"|HEADER|EXPIRY|EXPIRES|POLICY|SIZE|DIR|ISSUER|ALGORITHM|PROVIDER|STORE|MANAGER|PREFIX|KIND|ID|ARN|BUDGET|MODE)=)"
    r"[A-Z0-9_]{1,40}=[\"']?)([^\s\"'`\\&|<>]{1,1000})"
)
_LONG_WORD = r"[A-Za-z]{16,}$|[0-9a-f]{16,}$"


def mask_named(text: str) -> str:
    """`text` without the values that stand after the name of a secret."""
    if not any(map(text.__contains__, _SIGNS)):
        return text
    low = _lowered(text)
    pattern = compiled(
        _NAMED_OR_BLANK if "--" in low or "'" in low or "login " in low else _NAMED
    )
    text = (
        compiled(_LATE_VARIABLE).sub(_without_late, text)
        if "_" in text and "=" in text
        else text
    )
    low = _lowered(text)
    kept, at, end = list[str](), 0, -1
    for found in pattern.finditer(low):
        # In `token=token=token=x` the first was looked at with all behind it, and the last is looked at by itself.
        is_chained = (
            found.start() == end and pattern.match(low, found.end()) is not None
        )
        end = found.end()
        if found.start() < at or is_chained:
            continue
        span = _value(text, found)
        if span is not None and span[0] >= at:
            kept += [text[at : span[0]], HIDDEN]
            at = span[1]
    return "".join([*kept, text[at:]]) if kept else text


def _without_late(found: "re.Match[str]") -> str:
    is_password = "PASS" in found[1]
    return (
        found[1] + HIDDEN
        if _is_bare_secret(found[2], is_password=is_password, is_given=True)
        else found[0]
    )


def _lowered(text: str) -> str:
    low = text.lower()
    return (
        low
        if len(low) == len(text)
        else "".join(c.lower() if c.isascii() else c for c in text)
    )


def _value(text: str, found: "re.Match[str]") -> tuple[int, int] | None:
    """Where the secret is that the word in `found` announces; None when it announces none."""
    before = text[max(found.start() - _LONGEST_NAME, 0) : found.start()]
    opening = before.rstrip(_NAME_CHARACTERS)
    name = before[len(opening) :] + text[found.start() : found.start(3)]
    spelled = (
        compiled(_CAMEL).sub("_", name.lstrip("-")).lower()
        if name != name.upper()
        else name.lower()
    )
    is_of_parser = name == "token" and compiled(_OF_PARSER).search(opening) is not None
    if (
        compiled(_NAMES).search(spelled) is None
        or name in {"PWD", "OLDPWD"}
        or is_of_parser
    ):
        return None
    separator, start = found[3], found.end()
    quote = compiled(_QUOTED_START).match(text, start)
    is_password = compiled(_NAMES_OF_PASSWORDS).search(spelled) is not None
    if separator.isspace():
        return _after_blank(text, name, opening, start, quote, is_password=is_password)
    if separator == ">":
        end = text.find("</", start, start + _LONGEST_VALUE)
        is_element = opening.endswith("<") and end > start
        return (
            (start, end)
            if is_element and not compiled(_PLACEHOLDER).match(text, start)
            else None
        )
    if quote is not None:
        return _in_quotes(text, quote, spelled, is_password=is_password)
    is_variable = name == name.upper() and separator == "="
    bare = compiled(_BARE_VARIABLE if is_variable else _BARE).match(text, start)
    if bare is None:
        return None
    value = bare[0] if is_variable else bare[0].rstrip(".:!?")
    is_given = (
        is_variable
        or name.startswith("--")
        or _in_form(text, found.start(3) - len(name), bare.end())
    )
    following = text[bare.end() : bare.end() + 1]
    hidden = _is_bare_secret(
        value, is_password=is_password, is_given=is_given
    ) and following not in {"(", "["}
    return (start, start + len(value)) if hidden else None


def _after_blank(
    text: str,
    name: str,
    before: str,
    start: int,
    quote: "re.Match[str] | None",
    *,
    is_password: bool,
) -> tuple[int, int] | None:
    """The value of an option (`--password x`), of SQL (`PASSWORD 'x'`) or of a netrc (`login a password x`)."""
    if name.startswith("--"):
        if quote is not None:
            return _in_quotes(text, quote, "password", is_password=True)
        bare = compiled(_BARE_VARIABLE).match(text, start)
        is_value = bare is not None and not bare[0].startswith("-")
        return (
            bare.span()
            if bare
            and is_value
            and _is_bare_secret(bare[0], is_password=is_password, is_given=True)
            else None
        )
    if is_password and quote is not None and quote[2] == "'" and name == name.upper():
        return _in_quotes(text, quote, "password", is_password=True)
    if name == "password" and compiled(r"\b(?:login|user)\s+\S+\s+$").search(before):
        bare = compiled(_BARE_VARIABLE).match(text, start)
        return bare.span() if bare else None
    return None


def _in_quotes(
    text: str, quote: "re.Match[str]", spelled: str, *, is_password: bool
) -> tuple[int, int] | None:
    start = quote.end()
    end = text.find(quote[0], start, start + _LONGEST_VALUE)
    while (
        end > start and not quote[1] and text[end - 1] == "\\"
    ):  # a quote within the value
        end = text.find(quote[0], end + 1, start + _LONGEST_VALUE)
    if end < 0:  # cut off: what is left of it is secret too
        line = text.find("\n", start, start + _LONGEST_VALUE)
        end = line if line >= 0 else min(len(text), start + _LONGEST_VALUE)
    value = text[start:end]
    if (
        not value
        or compiled(_PLACEHOLDER).match(value)
        or compiled(_VARIABLE).match(value)
        or compiled(_PROSE).match(value)
    ):
        return None
    if is_password:
        return start, end
    is_word = value.replace("-", "").replace("_", "").isalpha() and not compiled(
        _LONG_WORD
    ).match(value)
    plain_name = spelled.rpartition("_")[2] == spelled and spelled.startswith(
        ("token", "credential")
    )
    if (
        len(value) < 4
        or compiled(_COUNT).match(value)
        or compiled(_PATH).match(value)
        or (is_word and plain_name)
    ):
        return None
    return start, end


def _is_bare_secret(value: str, *, is_password: bool, is_given: bool) -> bool:
    """Whether a value without quotes is a secret, and not code, a number or a word of a sentence.

    `is_given` when the place leaves no doubt that it is a value: a variable, an option, a form.
    """
    if (
        not value
        or compiled(_PLACEHOLDER).match(value)
        or compiled(_VARIABLE).match(value)
        or compiled(_PATH).match(value)
    ):
        return False
    if compiled(_COUNT).match(value):
        return is_password and len(value) >= 4 and (is_given or value.isdigit())
    if is_given:
        return is_password or len(value) >= 6
    return (len(value) >= 6 and compiled(r"\d").search(value) is not None) or compiled(
        _LONG_WORD
    ).match(value) is not None


def _is_placeholder(value: str) -> bool:
    """Whether a value stands for a secret and is none: `${TOKEN}`, `<your key>`, `None`, OPENAI_API_KEY."""
    return (
        not value or compiled(rf"{_PLACEHOLDER}|{_VARIABLE}").match(value) is not None
    )


def _in_form(text: str, start: int, end: int) -> bool:
    """Whether a pair is one of several as a form sends them: `a=1&password=x`."""
    return text[start - 1 : start] in {"&", "?"} or text[end : end + 1] == "&"


_AUTHORIZATION = (
    r"(authorization\\*[\"']?\s{0,4}[:=]\s{0,4}\\*[\"']?)((?:basic|bearer|token|apikey|negotiate|ntlm)[ \t]+)?"
    r"(?![$<{*%(])([^\"'\n\\]+)"
)
_SIGNED = r"(authorization\\*[\"']?\s{0,4}[:=]\s{0,4}\\*[\"']?(?:digest|aws4-hmac-sha256)[ \t]+)([^\n]+)"
_BEARER = r"(bearer[ \t]+)([a-z0-9._~+/=\-]{8,})"
_COOKIE = r"((?:set-)?cookie\\*[\"']?\s{0,4}:\s{0,4}\\*[\"']?)([^\"'\n\\]+)"
_PAIR = r"([^=;\s]+=)([^;\s]+)"
_COOKIE_ATTRIBUTES = (
    "path=",
    "domain=",
    "expires=",
    "max-age=",
    "samesite=",
    "priority=",
)
_CURL = r"(curl\b[^\n|;&]{0,400}?\s(?:-u|--user|--proxy-user)[ =]?[\"']?[^\s:\"'$]{1,80}:)([^\s\"'$]+)"


_AUTH_FIELD = r"((?<![a-z0-9])_auth[ \t]{0,4}=[ \t]{0,4}|\"auth\"\s{0,4}:\s{0,4}\")(?![$<{*%(])([a-z0-9+/=_\-]{8,})"
_COMMANDS = (
    r"((?:\b(?:mysql|mysqldump|mysqladmin)\b[^\n|;&]{0,200}?\s-p|\bsshpass\s[^\n|;&]{0,200}?-p\s?"
    r"|\bredis-cli\b[^\n|;&]{0,200}?\s-a\s|\b(?:docker|podman)\slogin\b[^\n|;&]{0,200}?\s-p\s?)[\"']?)"
    r"([^\s\"'$<*][^\s\"']*)"
    r"|((?i:\bidentified\s(?:with\s\S{1,60}\s)?by\s(?:password\s)?)['\"])([^'\"\n]{1,1000})"
)


def mask_commands(text: str) -> str:
    """`text` without passwords that commands have behind an option of one letter, and SQL behind IDENTIFIED BY."""
    return compiled(_COMMANDS).sub(lambda found: (found[1] or found[3]) + HIDDEN, text)


def mask_headers(text: str) -> str:
    """`text` without what authorization and cookie headers hold, and without the password of `curl -u`."""
    low = _lowered(text)
    if "authorization" in low:
        text = _replaced(_replaced(text, _SIGNED, 2), _AUTHORIZATION, 3)
    if "_auth" in low or '"auth"' in low:
        text = _replaced(text, _AUTH_FIELD, 2)
    if "bearer" in low:
        text = _replaced(text, _BEARER, 2)
    if "cookie" in low:
        text = _replaced(text, _COOKIE, 2)
    return _replaced(text, _CURL, 2) if "curl" in low else text


def _replaced(text: str, pattern: str, group: int) -> str:
    kept, at = list[str](), 0
    for found in compiled(pattern).finditer(_lowered(text)):
        start, end = found.span(group)
        hidden = _hidden_part(pattern, text[start:end])
        if hidden != text[start:end]:
            kept += [text[at:start], hidden]
            at = end
    return "".join([*kept, text[at:]]) if kept else text


def _hidden_cookie(pair: "re.Match[str]") -> str:
    return pair[0] if pair[1].lower() in _COOKIE_ATTRIBUTES else pair[1] + HIDDEN


def _hidden_part(pattern: str, value: str) -> str:
    """What takes the place of a header's value."""
    if pattern == _COOKIE:
        return compiled(_PAIR).sub(
            lambda pair: (
                pair[0] if pair[1].lower() in _COOKIE_ATTRIBUTES else pair[1] + HIDDEN
            ),
            value,
        )
    if pattern == _BEARER:
        is_key = any(map(str.isdigit, value)) or len(value) >= 16
        return HIDDEN if is_key and not compiled(_PLACEHOLDER).match(value) else value
    if pattern == _AUTHORIZATION:
        word = value.split(maxsplit=1)[0] if value.split() else ""
        is_key = any(map(str.isdigit, word)) or len(word) >= 16 or "," in value
        return (
            HIDDEN
            if is_key and word != HIDDEN and not compiled(_PROSE).match(value.strip())
            else value
        )
    return HIDDEN
