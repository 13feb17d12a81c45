"""Masks values that are secret because of the name before them.

Assignments, JSON and YAML fields, form bodies, command options and header lines. Look-alikes stay:
a variable's name, a type, a number of tokens, code, prose.
"""

import re
import string
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from hermes.settings.key_shapes import AMPERSAND, HIDDEN, PRIVATE_KEY, compiled

# `key` counts only within a name. The lookbehind stands after the first letter, because `re` looks for a set of first
# letters far faster than for an assertion.
_WORDS = r"(k(?<=[a-z_.\-]k)ey|token|secret|pass(?:w(?:or)?d|phrase)?|pwd?|credential)(s?)(?:_?\d{1,2})?"
_SEPARATOR = r"\\*[\"'`]?\]?\s{0,4}(?:=>|:=|[:=](?![:=]))[ \t]{0,8}|[ \t]{1,4}(?:->|→)[ \t]{1,8}|>"
_NAMED = rf"{_WORDS}({_SEPARATOR})"
_NAMED_OR_BLANK = rf"{_WORDS}({_SEPARATOR}|[ \t]{{1,8}})"
_NAME_CHARACTERS = string.ascii_letters + string.digits + "_.-"
_QUOTED_START = r"(\\*)([\"'`])"
# A password may hold `&`; the next field of a form (`&user=`) or the next command (`&&`) is no part of it.
_BARE = rf"(?:[^\s\"'`,;&<>(){{}}\[\]\\|]|{AMPERSAND}){{1,1000}}+"
# A comma or semicolon belongs to a password if neither a blank nor the next field (`,user=`) follows.
_REST = r"(?:[,;](?![a-zA-Z_][\w.\-]{0,80}[ \t]{0,2}[:=])[^\s\"'`,;&<>(){}\[\]\\|]{1,200}+){1,20}+"
# The next argument (`password=None,8080`) does not make these a secret.
_NEVER_JOINED = (
    r"(?i:none|null|nil|true|false|undefined|str|string|int|integer|bool|bytes|float|optional"
    r"|\d+(?:px|em|rem|%|ms|s))$"
)
_BARE_VARIABLE = rf"(?:[^\s\"'`\\&|<>]|{AMPERSAND}){{1,1000}}+"
_CAMEL = r"(?<=[a-z0-9])(?=[A-Z])"
_NAMES = (
    r"(?:^|[_.\-])(?:tokens?|secrets?|pass|pwd?|credentials?|(?:api|private|access|secret|auth|encryption|signing|master"
    r"|deploy|license|account|shared|service|admin|hmac|storage|webhook)[_.\-]?(?:access[_.\-]?)?keys?)(?:_?\d{1,2})?$"
    r"|(?:password|passwd|passphrase|apikey|accesskey|secretkey)s?(?:_?\d{1,2})?$"
)
_NAMES_OF_PASSWORDS = r"(?:passwords?|passwd|passphrases?|pass|pwd?)(?:_?\d{1,2})?$"
_LONGEST_NAME, _LONGEST_VALUE = 80, 4_000
_MAX_JUDGED_CHARACTERS = 200
"""How much of a value is examined to tell whether it is a secret."""
_MOST_NAMES = 800
"""Up to this many names in one text are examined one by one."""
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
# A variable whose name continues after the word: TOKEN_GITHUB. Facts about a secret stay: TOKEN_URL.
_LATE_VARIABLE = (
    r"(?<![A-Za-z0-9_])([A-Z0-9_]{0,40}?(?:SECRET|TOKEN|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|API_?KEY|PRIVATE_KEY"
    r"|ACCESS_KEY)S?_(?![A-Z0-9_]{0,40}(?:COUNT|LIMIT|UR[IL]|FILE|PATH|NAME|ENDPOINT|TTL|TYPE|LENGTH|ENV|VAR|FIELD"
    r"|HEADER|EXPIRY|EXPIRES|POLICY|SIZE|DIR|ISSUER|ALGORITHM|PROVIDER|STORE|MANAGER|PREFIX|KIND|ID|ARN|BUDGET|MODE)=)"
    r"[A-Z0-9_]{1,40}=[\"']?)([^\s\"'`\\&|<>]{1,1000})"
)
_OF_NETRC = r"\b(?:login|user)\s+\S+\s+$"
_PART = r"[A-Za-z0-9]{8,}"
_TURN = r"[A-Za-z](?=\d)|\d(?=[A-Za-z])"
_INNER_CAPITAL = r"[a-z0-9][A-Z]"
_MANY_TURNS = 3
_LONG_WORD = r"[A-Za-z]{16,}$|[0-9a-f]{16,}$"


class _Name(NamedTuple):
    """The name of a secret, as written, and in lower case with `_` between its words."""

    written: str
    spelled: str
    is_password: bool
    is_option: bool
    is_capital: bool


@lru_cache(maxsize=1024)
def _secret_name(written: str) -> _Name | None:
    """Returns the parsed name; None if it does not name a secret."""
    spelled = written.lstrip("-")
    if not spelled.islower() and not spelled.isupper():
        spelled = compiled(_CAMEL).sub("_", spelled)
    spelled = spelled.lower()
    if written in {"PWD", "OLDPWD"} or compiled(_NAMES).search(spelled) is None:
        return None
    is_password = compiled(_NAMES_OF_PASSWORDS).search(spelled) is not None
    is_capital = written == written.upper()
    return _Name(written, spelled, is_password, written.startswith("--"), is_capital)


_PASSWORD = _Name("password", "password", True, False, False)


_Span = tuple[int, int]


def mask_named(text: str, low: str) -> str:
    """Masks private keys and the values after the names of secrets in `text`; `low` is `text` in
    lower case.
    """
    masked = text
    if "private" in low:
        masked = compiled(PRIVATE_KEY).sub(HIDDEN, masked)
    if "_" in masked and "=" in masked and low != text:
        masked = compiled(_LATE_VARIABLE).sub(_without_late, masked)
    if masked != text:
        low = lowered(masked)
    has_blank = "--" in low or "'" in low or "login " in low
    if not (has_blank or "=" in low or ":" in low or ">" in low or "→" in low):
        return masked
    return _without_values(masked, low, _NAMED_OR_BLANK if has_blank else _NAMED)


def _without_values(text: str, low: str, pattern: str) -> str:
    """Masks the values after the names that `pattern` finds in `text`."""
    names = compiled(pattern)
    if names.search(low) is None:
        return text
    parts, at, end = list[str](), 0, -1
    for examined, found in enumerate(names.finditer(low)):
        if examined == _MOST_NAMES and found.start() >= at:
            parts += [text[at : found.start()], _without_all(text[found.start() :])]
            return "".join(parts)
        # In `token=token=token=x` the first was examined with all that follows; the last is examined alone.
        is_chained = found.start() == end and names.match(low, found.end()) is not None
        end = found.end()
        if found.start() < at or is_chained:
            continue
        span = _value(text, found)
        if span is not None and span[0] >= at:
            parts += [text[at : span[0]], HIDDEN]
            at = span[1]
    return "".join([*parts, text[at:]])


def _without_all(text: str) -> str:
    """Masks whatever follows a name. No honest text has so many names, and examining each would take too long."""
    pattern = compiled(rf"(?i)({_NAMED})(?:[^\s&<>]{{1,1000}})")
    return pattern.sub(lambda found: found[1] + HIDDEN, text)


def _without_late(found: "re.Match[str]") -> str:
    is_password = "PASS" in found[1]
    is_secret = _is_bare_secret(found[2], is_password=is_password, is_given=True)
    return found[1] + HIDDEN if is_secret else found[0]


def lowered(text: str) -> str:
    """Returns `text` in lower case, with every character at its position."""
    low = text.lower()
    if len(low) == len(text):
        return low
    return "".join(c.lower() if c.isascii() else c for c in text)


def _value(text: str, found: "re.Match[str]") -> _Span | None:
    """Returns where the secret is that follows the name in `found`; None if there is none."""
    first, start, separator = found.start(), found.end(), found[3]
    preceding = text[max(first - _LONGEST_NAME, 0) : first]
    before = preceding.rstrip(_NAME_CHARACTERS)
    name = _secret_name(preceding[len(before) :] + text[first : found.start(3)])
    if name is None:
        return None
    if name.written == "token" and compiled(_OF_PARSER).search(before):
        return None
    quote = compiled(_QUOTED_START).match(text, start)
    if separator.isspace():
        return _after_blank(text, name, before, start, quote)
    if separator == ">":
        return _in_element(text, start) if before.endswith("<") else None
    if quote is not None:
        return _in_quotes(text, quote, name)
    return _bare_value(text, name, found)


def _in_element(text: str, start: int) -> _Span | None:
    """Returns the value in XML: `<password>x</password>`."""
    end = text.find("<", start, start + _LONGEST_VALUE)
    if (
        end <= start
        or text[end + 1 : end + 2] != "/"
        or compiled(_PLACEHOLDER).match(text, start)
    ):
        return None
    return start, end


def _bare_value(text: str, name: _Name, found: "re.Match[str]") -> _Span | None:
    """Returns the value without quotes."""
    start = found.end()
    is_variable = name.is_capital and found[3] == "="
    bare = compiled(_BARE_VARIABLE if is_variable else _BARE).match(text, start)
    if bare is None or text[bare.end() : bare.end() + 1] in {"(", "["}:
        return None
    value = bare[0] if is_variable else bare[0].rstrip(".:!?")
    is_given = (
        is_variable
        or name.is_option
        or _in_form(text, found.start(3) - len(name.written), bare.end())
    )
    if "-" in found[3] or "→" in found[3]:
        return _after_arrow(name, value, start)
    is_secret = _is_bare_secret(value, is_password=name.is_password, is_given=is_given)
    is_joined = name.is_password and not compiled(_NEVER_JOINED).match(value)
    if is_joined and (rest := compiled(_REST).match(text, bare.end())):
        value = text[start : rest.end()].rstrip(".:!?")
        is_secret = is_secret or _is_bare_secret(
            value, is_password=True, is_given=is_given
        )
    return (start, start + len(value)) if is_secret else None


def _after_arrow(name: _Name, value: str, start: int) -> _Span | None:
    """Returns the value in `password -> x`. After other names, and the word `pass`, an arrow mostly leads to a type or a
    file.
    """
    is_secret = _is_bare_secret(value, is_password=name.is_password, is_given=False)
    is_password = name.is_password and name.spelled != "pass"
    if is_secret and (is_password or is_random(value)):
        return start, start + len(value)
    return None


def _after_blank(
    text: str, name: _Name, before: str, start: int, quote: "re.Match[str] | None"
) -> _Span | None:
    """Returns the value of an option (`--password x`), of SQL (`PASSWORD 'x'`) or of a netrc file."""
    is_sql = quote is not None and quote[2] == "'" and name.is_capital
    if quote is not None and (name.is_option or (is_sql and name.is_password)):
        return _in_quotes(text, quote, _PASSWORD)
    bare = compiled(_BARE_VARIABLE).match(text, start)
    if bare is None:
        return None
    if name.is_option:
        is_secret = not bare[0].startswith("-") and _is_bare_secret(
            bare[0], is_password=name.is_password, is_given=True
        )
        return bare.span() if is_secret else None
    is_netrc = name.written == "password" and compiled(_OF_NETRC).search(before)
    return bare.span() if is_netrc else None


def _in_quotes(text: str, quote: "re.Match[str]", name: _Name) -> _Span | None:
    start = quote.end()
    end = _end_of_quoted(text, quote)
    value = text[start:end]
    if stands_for_secret(value) or compiled(_PROSE).match(value):
        return None
    if name.is_password:
        return start, end
    if len(value) < 4 or compiled(_COUNT).match(value) or compiled(_PATH).match(value):
        return None
    is_plain_name = "_" not in name.spelled and name.spelled.startswith(
        ("token", "credential")
    )
    if is_plain_name and _is_word(value):
        return None
    return start, end


def _end_of_quoted(text: str, quote: "re.Match[str]") -> int:
    """Returns where a quoted value ends. The rest of a truncated one is secret too."""
    start = quote.end()
    last = start + _LONGEST_VALUE
    end = text.find(quote[0], start, last)
    while end > start and not quote[1] and text[end - 1] == "\\":
        end = text.find(quote[0], end + 1, last)  # a quote within the value
    if end >= 0:
        return end
    line = text.find("\n", start, last)
    return line if line >= 0 else min(len(text), last)


def _is_word(value: str) -> bool:
    """Returns whether a value is one or several words, not a long random string."""
    letters = value.replace("-", "").replace("_", "")
    return letters.isalpha() and not compiled(_LONG_WORD).match(value)


def _is_bare_secret(value: str, *, is_password: bool, is_given: bool) -> bool:
    """Returns whether an unquoted value is a secret, and not code, a number or a word of a
    sentence.

    `is_given` if the context leaves no doubt that it is a value: a variable, an option, a form.
    """
    value = value[:_MAX_JUDGED_CHARACTERS]
    if compiled(_COUNT).match(value):
        return is_password and len(value) >= 4 and (is_given or value.isdigit())
    if stands_for_secret(value) or compiled(_PATH).match(value):
        return False
    if is_given:
        return is_password or len(value) >= 6
    if len(value) >= 6 and compiled(r"\d").search(value):
        return True
    return compiled(_LONG_WORD).match(value) is not None


def stands_for_secret(value: str) -> bool:
    """Returns whether a value is empty or a placeholder: `${TOKEN}`, `<your key>`, `None`,
    OPENAI_API_KEY.
    """
    return (
        not value or compiled(rf"{_PLACEHOLDER}|{_VARIABLE}").match(value) is not None
    )


def is_random(value: str) -> bool:
    """Returns whether a part of `value` mixes letters and digits as no word, name or version does."""
    return any(map(_is_mixed, compiled(_PART).findall(value)))


def _is_mixed(part: str) -> bool:
    turns = len(compiled(_TURN).findall(part))
    return turns >= _MANY_TURNS or (
        turns > 1 and compiled(_INNER_CAPITAL).search(part) is not None
    )


def _in_form(text: str, start: int, end: int) -> bool:
    """Returns whether a pair is one of several of a form: `a=1&password=x`."""
    return text[start - 1 : start] in {"&", "?"} or text[end : end + 1] == "&"


_AUTHORIZATION = (
    r"(authorization\\*[\"']?\s{0,4}[:=]\s{0,4}\\*[\"']?)((?:basic|bearer|token|apikey|negotiate|ntlm)[ \t]+)?"
    r"(?![$<{*%(])([^\"'\n\\;|&$()<>`]+)"
)
_SIGNED = (
    r"(authorization\\*[\"']?\s{0,4}[:=]\s{0,4}\\*[\"']?(?:digest|aws4-hmac-sha256)[ \t]+)"
    r"((?:signedheaders=[a-z0-9;\-]+|[^\n;|&$()<>`])+)"
)
_BEARER = (
    r"(bearer(?:[ \t]+|[\"']?[ \t]{0,4}[:=][ \t]{0,4})[\"']?)([a-z0-9._~+/=\-]{8,})"
)
_COOKIE = r"((?:set-)?cookie(?:\\*[\"']?\s{0,4}:\s{0,4}\\*[\"']?|\s{0,4}=\s{0,4}[\"'`]))([^\"'\n\\]+)"
_PAIR = r"(?<![^;=\s])([^=;\s]++=)([^;\s]+)"
_COOKIE_ATTRIBUTES = frozenset(
    ("path=", "domain=", "expires=", "max-age=", "samesite=", "priority=")
)
_CURL = r"(curl\b(?:(?!curl\b)[^\n|;&]){0,400}?\s(?:-u|--user|--proxy-user)[ =]?[\"']?[^\s:\"'$]{1,80}:)([^\s\"'$;|&()<>`]+)"


_AUTH_FIELD = r"((?<![a-z0-9])_auth[ \t]{0,4}=[ \t]{0,4}|\"auth\"\s{0,4}:\s{0,4}\")(?![$<{*%(])([a-z0-9+/=_\-]{8,})"
_COMMANDS = (
    r"((?:\b(?:mysql|mysqldump|mysqladmin)\b(?:(?!mysql)[^\n|;&]){0,200}?\s-p|\bsshpass\b(?:(?!sshpass)[^\n|;&]){0,200}?\s-p\s?"
    r"|\bredis-cli\b(?:(?!redis-cli)[^\n|;&]){0,200}?\s-a\s"
    r"|\b(?:docker|podman)\slogin\b(?:(?!login)[^\n|;&]){0,200}?\s-p\s?)[\"']?)"
    r"([^\s\"'$<*;|&()`>][^\s\"';|&$()<>`]*)"
    r"|(\becho\s(?:-n\s)?[\"']?(?:[^\s:|\"']{1,80}:(?=[^\n]{1,200}\bchpasswd))?+)([^\s\"'$<*;|&()`>][^\s\"';|&$()<>`]{3,200})"
    r"(?=[\"']?\s{0,4}\|\s{0,4}(?:sudo\s(?:-\S+\s){0,4}-S\b|(?:sudo\s)?chpasswd))"
    r"|(\bsmbclient\b[^\n|;&]{0,200}?\s-U\s?[\"']?[^\s%\"']{1,80}%)([^\s\"'$<*;|&()`>][^\s\"';|&$()<>`]*)"
    r"|((?i:\bidentified\s(?:with\s\S{1,60}\s)?by\s(?:password\s)?)['\"])([^'\"\n]{1,1000})"
)

_MYSQL = r"(\b(?:mysql|mysqldump|mysqladmin)\b(?:(?!mysql)[^\n|;&]){0,200}?\s-p\s[\"']?)([^\s\"'$<*>]+)"


def mask_commands(text: str) -> str:
    """Masks passwords after one-letter options of commands, before a pipe, and after IDENTIFIED BY in SQL."""
    text = compiled(_COMMANDS).sub(_without_password, text)
    if "mysql" in text:
        return compiled(_MYSQL).sub(_without_random, text)
    return text


def _without_password(found: "re.Match[str]") -> str:
    return (found[1] or found[3] or found[5] or found[7]) + HIDDEN


def _without_random(found: "re.Match[str]") -> str:
    """Masks what looks like a password; a word is the name of a database, which may follow `-p` too."""
    if is_random(found[2]):
        return found[1] + HIDDEN
    return found[0]


def mask_headers(text: str, low: str) -> str:
    """Masks the values of authorization and cookie headers, and the password of `curl -u`."""
    if "authorization" in low:
        text = _replaced(text, _SIGNED, 2)
        text = _replaced(text, _AUTHORIZATION, 3, _masked_authorization)
    if "_auth" in low or '"auth"' in low:
        text = _replaced(text, _AUTH_FIELD, 2)
    if "bearer" in low:
        text = _replaced(text, _BEARER, 2, _masked_bearer)
    if "cookie" in low:
        text = _replaced(text, _COOKIE, 2, _masked_cookies)
    return _replaced(text, _CURL, 2) if "curl" in low else text


def _replaced(
    text: str,
    pattern: str,
    group: int,
    masked: Callable[[str], str] = lambda _: HIDDEN,
) -> str:
    """Replaces a group of a lower-case pattern wherever it matches."""
    parts, at = list[str](), 0
    for found in compiled(pattern).finditer(lowered(text)):
        start, end = found.span(group)
        parts += [text[at:start], masked(text[start:end])]
        at = end
    return "".join([*parts, text[at:]])


def _masked_cookies(value: str) -> str:
    return compiled(_PAIR).sub(_masked_cookie, value)


def _masked_cookie(pair: "re.Match[str]") -> str:
    if pair[1].lower() in _COOKIE_ATTRIBUTES:
        return pair[0]
    return pair[1] + HIDDEN


def _masked_bearer(value: str) -> str:
    is_key = any(map(str.isdigit, value)) or len(value) >= 16
    return HIDDEN if is_key and not compiled(_PLACEHOLDER).match(value) else value


def _masked_authorization(value: str) -> str:
    word = value.split(maxsplit=1)[0] if value.split() else ""
    is_key = any(map(str.isdigit, word)) or len(word) >= 16 or "," in value
    is_prose = compiled(_PROSE).match(value.strip()) is not None
    return HIDDEN if is_key and word != HIDDEN and not is_prose else value
