"""Quick tests whether a line can hold a secret with a name: in a field, an option, a header or a command.

They run for every line that is logged or shown, so each needs only one search and takes a tenth of the time of a full
examination. They may say yes too often, but never no where `named_secrets` would mask something.
"""

from hermes.settings.key_shapes import ASCII_SEARCH, SEARCH
from hermes.settings.spelled_secrets import SPELLED

_LONGEST_LINE = 2_000
"""Longer text is examined in full at once, which costs less than testing it first."""
_LONGEST_KIND = 12
"""How much of a name may come before the word that the quick search finds: `encryption key`."""
_ROOTS = ("key", "token", "secret", "pass", "pw", "cred", "sig", "auth")
_KINDS_OF_KEY = (  # how the words before `key` end: api, private, access, secret, auth, ...
    "pi|te|ss|et|th|on|ng|er|oy|se|nt|ed|ce|in|ac|ge|ok"
)
_KEY = rf"key(?:(?<=(?:{_KINDS_OF_KEY})key)|(?<=(?:{_KINDS_OF_KEY})[_.\-]key))"
_PASSWORD = r"(?:pass(?:w(?:or)?d|phrase)?|pwd?)"  # noqa: S105 - a pattern
_WORD = rf"(?:token|secret|credential|{_PASSWORD}|{_KEY})s?(?:_?\d{{1,2}})?"
_SEPARATOR = r"\\*+[\"'`]?+\]?+\s{0,4}+(?:=>|:=|->|→|[:=](?![:=]))[ \t]{0,8}+"
_STOPS = r"\s\"'`,;<>(){}\[\]\\|"
_COUNT = r"\d.,:_/%+\-"
_QUOTED = (  # all but an empty value, a placeholder or a sentence; the end of an escaped quote is not searched
    r"(?:\\+[\"'`]|([\"'`])(?!\1|\$[{(]|[{(]|\*{1,40}\1|<[^>\"'`]{0,80}>?\1|\[[^\]\"'`]{0,80}\]?\1"
    r"|[a-z,\-]{1,40}(?: [a-z0-9,\-]{1,40}){1,20}[.!?…]\1|(?:none|null|true|false)\1))"
)
_LONG_VALUE = rf"[^{_STOPS}]{{60}}|[a-z]{{16}}"
_BARE = (  # a digit and something that is not a number; after `12` even a `k`, which may have been a capital
    rf"(?=[^{_STOPS}]{{6}})(?!(?:\.{{0,2}}|~)/)"
    rf"(?:{_LONG_VALUE}|(?=[^{_STOPS}\d]{{0,60}}\d)[{_COUNT}]{{0,60}}[^{_STOPS}{_COUNT}])"
)
# Fewer steps than `_SEPARATOR` for the same words, and a little more permissive: what matters is that each is short.
_TO_VALUE = r"(?:[:=][:=>]?|->|→)[ \t]*+"
_SOME_VALUE = (  # or a line break, or the start of a block in YAML
    rf"[\"'`\\\r\n|>]|(?=[^{_STOPS}]{{6}})(?:[^{_STOPS}\d]{{0,60}}+\d|[^{_STOPS}]{{16}})"
)
# A sentence or a label, followed by a value with a digit.
_SPELLED_VALUE = (
    rf"(?<=[\s\"'`])(?:[^{_STOPS}\d:=][^{_STOPS}\d]{{0,60}}+\d|\d"
    r"|(?:is|was|are|for|of|set|reset|changed|equals)[ \t:=][^\d\n]{0,140}+\d)"
)
_AFTER_NAME = r"[s_\d]{0,4}+(?:>|[\\\"'`\]\s]*+"
_AFTER_KEY = rf"{_AFTER_NAME}(?:{_TO_VALUE}(?:{_SOME_VALUE})|{_SPELLED_VALUE}))"
_WITH_COMMA = rf"[^{_STOPS}]{{1,5}}[,;][^{_STOPS}]"
_AFTER_PASS = (
    rf"{_AFTER_NAME}(?:{_TO_VALUE}(?:\d{{4}}|{_WITH_COMMA}|{_SOME_VALUE})|{_SPELLED_VALUE}"
    rf"|(?<=[ \t])\([\"'`]?[^{_STOPS}]{{4}}))"
)
# A quick search for a name with some value, and a closer one.
_SOME_TOKEN = rf"token{_AFTER_KEY}"
_SOME_KEY = rf"key(?>(?<=[a-z_.\-]key)|(?<=(?:{_KINDS_OF_KEY}) key)){_AFTER_KEY}"
_SOME_PASS = rf"pass[wordphasec]*+{_AFTER_PASS}"
_SOME_SECRET = rf"secret{_AFTER_KEY}"
_SOME_PWD = rf"pwd?{_AFTER_PASS}"
_SOME_CREDENTIAL = rf"credential(?:{_AFTER_KEY}|s?+[ \t])"
_VALUED = rf"s?(?:_?\d{{1,2}})?{_SEPARATOR}(?:{_QUOTED}|{_BARE})"
_VALUED_PIN = rf"(?:{_VALUED}|s?(?:_?\d{{1,2}})?{_SEPARATOR}(?:\d{{4}}|{_WITH_COMMA}))"
_VALUED_TOKEN = rf"token{_VALUED}"
_VALUED_KEY = rf"{_KEY}{_VALUED}"
_VALUED_PASS = rf"{_PASSWORD}{_VALUED_PIN}"
_VALUED_SECRET = rf"secret{_VALUED}"
_VALUED_PWD = rf"pwd?{_VALUED_PIN}"
_VALUED_CREDENTIAL = rf"credential{_VALUED}"
# Pairs of a quick and a precise search, for a line that has the word.
_TOKEN = ((_SOME_TOKEN, _VALUED_TOKEN),)
_SOME_AND_VALUED_KEY = ((_SOME_KEY, _VALUED_KEY),)
_SECRET = ((_SOME_SECRET, _VALUED_SECRET),)
_CREDENTIAL = ((_SOME_CREDENTIAL, _VALUED_CREDENTIAL),)
_PASS = ((_SOME_PASS, _VALUED_PASS),)
_PWD = ((_SOME_PWD, _VALUED_PWD),)
_VALUE = r"(?!\$[{(]|\$[A-Za-z_]\w*(?:\s|$)|\*+(?:\s|$)|<|(?:\.{0,2}|~)/|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+(?:\s|$))[^\s\"'`\\&|<>]"
_FACTS = (
    r"COUNT|LIMIT|UR[IL]|FILE|PATH|NAME|ENDPOINT|TTL|TYPE|LENGTH|ENV|VAR|FIELD|HEADER|EXPIRY|EXPIRES|POLICY|SIZE|DIR"
    r"|ISSUER|ALGORITHM|PROVIDER|STORE|MANAGER|PREFIX|KIND|ID|ARN|BUDGET|MODE"
)
_CAPITAL = (
    rf"(?:TOKEN|SECRET|CREDENTIAL|PASS(?:W(?:OR)?D|PHRASE)?|PWD|K(?<=[A-Z_.\-]K)EY)S?"
    rf"(?:(?:_?\d{{1,2}})?(?:={_VALUE}|[ \t]{{1,8}}\\*')"
    rf"|_(?![A-Z0-9_]{{0,40}}(?:{_FACTS})=)[A-Z0-9_]{{1,40}}=[\"']?{_VALUE})"
)
_ANY_OPTION = (  # by how the names end
    r"--[a-z0-9_.\-]*+(?<=en|ey|et|rd|wd|se|ss|al|ns|ys|ts|ds|es|ls|.\d)[\\\"'`\]\s:=]"
)
_OPTION = rf"--[a-z0-9_.\-]{{0,80}}?{_WORD}(?:{_SEPARATOR}|[ \t]{{1,8}})(?!\*+(?:\s|$))[^\s\-<]"
_FIELD = (
    r"[?&](?:[a-z_\-]{0,20}(?:token|key|secret|password|passwd|auth|signature|sig)=[^&\s#\"']"
    rf"|[a-z0-9_.\-]{{0,80}}?{_WORD}{_SEPARATOR}[^\s\"'`&<>])"
)
_ANY_FIELD = (  # by how the names end, also in the plural or with a number
    r"[?&][a-z0-9_.\-]*+(?<=en|ey|et|rd|wd|th|re|ig|ss|se|al|ns|ys|ts|ds|es|ls|.\d)[\\\"'`\]\s]*+[:=]"
)
_BODY = rf"{_WORD}{_SEPARATOR}[^{_STOPS}]{{1,1000}}&"
_NETRC = r"(?:login|user)\s+\S+\s+password[ \t]"
_PIN = r"PIN(?<![A-Za-z]PIN)[\s\S]{0,300}\d{4}"
_ELEMENT = rf"{_WORD}>[^<]"
_AUTHORIZATION = (
    r"authorization\\*[\"']?\s{0,4}[:=]\s{0,4}\\*[\"']?\s{0,4}(?:(?:basic|bearer|token|apikey|negotiate|ntlm)[ \t]+)?"
    r"(?:[^\s\"'\\\d]{0,16}\d|[^\s\"'\\]{16}|[^\"'\n\\]{0,400},|digest|aws4)"
)
_BEARER = (
    r"bearer(?:[ \t]+|[\"']?[ \t]{0,4}[:=][ \t]{0,4})[\"']?"
    r"(?=[a-z0-9._~+/=\-]{8})(?=[a-z._~+/=\-]*\d|[a-z0-9._~+/=\-]{16})"
)
_USERINFO = r":(?=[^\s@]{1,600}@|//[^\s@]{1,600}@)"
_COOKIE = r"cookie(?:\\*[\"']?\s{0,4}:|\s{0,4}=\s{0,4}[\"'`])"
_AUTH_FIELD = r"_auth[ \t]{0,4}=|\"auth\"\s{0,4}:"


def may_name_secret(text: str, low: str, *, is_pair: bool) -> bool:
    """Returns whether `text` may have the name of a secret with a value; `low` is `text` in lower case,
    and `is_pair` whether it has `:` or `=`.

    One letter is found three times as fast as a word, so most words are looked for only if a rare letter of theirs is
    there.
    """
    if len(low) > _LONGEST_LINE:
        return any(word in low for word in _ROOTS)
    searches: tuple[tuple[str, str], ...] = ()
    if "k" in low:
        if "token" in low:
            searches = _TOKEN
        if "key" in low:
            searches += _SOME_AND_VALUED_KEY
    if "cre" in low:
        if "secret" in low:
            searches += _SECRET
        if "credential" in low:
            searches += _CREDENTIAL
    if "p" in low:
        if "pass" in low:
            searches += _PASS
        if "w" in low and "pw" in low:
            searches += _PWD
    if not searches:
        return (is_pair and _has_other_field(low)) or ("PIN" in text and _has_pin(text))
    return _may_be_valued(text, low, searches, is_pair=is_pair)


def _has_pin(text: str) -> bool:
    return SEARCH[_PIN](text) is not None


def _has_other_field(low: str) -> bool:
    """Returns whether an address without the words above may have a secret field."""
    return (
        ("?" in low or "&" in low)
        and ("sig" in low or "auth" in low)
        and _has_field(low)
    )


def _may_be_valued(
    text: str, low: str, searches: tuple[tuple[str, str], ...], *, is_pair: bool
) -> bool:
    """Returns whether a name that is there may have a value."""
    search = ASCII_SEARCH if low.isascii() else SEARCH
    is_marked = is_pair or _is_marked(low)
    if not is_marked and search[r"\d"](low) is None:
        return False
    for some, valued in searches:
        found = search[some](low)
        if found is not None and _has_secret(low, valued, found.start()):
            return True
    return ("PIN" in text and _has_pin(text)) or (
        is_marked
        and (
            (is_pair and ("?" in low or "&" in low) and _has_field(low))
            or _is_named_otherwise(text, low)
        )
    )


def _is_marked(low: str) -> bool:
    """Returns whether something besides `:` and `=` may mark a value: a quote, an element, an option, a netrc entry."""
    return (
        "'" in low
        or "<" in low
        or ("-" in low and "--" in low)
        or ("password" in low and ("login" in low or "user" in low))
    )


def _has_secret(low: str, valued: str, start: int) -> bool:
    """Examines the text precisely, from where a quick search matched."""
    search = ASCII_SEARCH if low.isascii() else SEARCH
    start = max(start - _LONGEST_KIND, 0)
    return bool(
        search[valued](low, start)
        or search[SPELLED](low, start)
        or search[_ELEMENT](low, start)
    )


def _is_named_otherwise(text: str, low: str) -> bool:
    """Returns whether there may be a variable in capitals, an option, a private key or a netrc file."""
    return bool(
        (("=" in low or "'" in low) and text != low and _has_capital_name(text))
        or ("-" in low and "--" in low and _has_option(low))
        or ("v" in low and ("private key" in low or "private-lines" in low))
        or (
            "password" in low
            and ("login" in low or "user" in low)
            and SEARCH[_NETRC](low)
        )
    )


def _has_option(low: str) -> bool:
    """Returns whether the name of an option may be that of a secret."""
    options = low[low.find("--") :]
    return bool(
        (
            ("k" in options and ("token" in options or "key" in options))
            or "cre" in options
            or ("p" in options and ("pass" in options or "pwd" in options))
        )
        and SEARCH[_ANY_OPTION](options)
        and SEARCH[_OPTION](options)
    )


def _has_field(low: str) -> bool:
    """Returns whether an address or the body of a form may have a secret field."""
    if "&" in low:
        return bool(
            (SEARCH[_ANY_FIELD](low) and SEARCH[_FIELD](low)) or SEARCH[_BODY](low)
        )
    query = low[low.find("?") :]
    return bool(
        (
            "ke" in query
            or "cre" in query
            or "pa" in query
            or "pwd" in query
            or "sig" in query
            or "auth" in query
        )
        and SEARCH[_FIELD](query)
    )


def _has_capital_name(text: str) -> bool:
    return (
        ("K" in text and ("TOKEN" in text or "KEY" in text))
        or ("C" in text and "CRE" in text)
        or ("P" in text and ("PASS" in text or "PWD" in text))
    ) and SEARCH[_CAPITAL](text) is not None


def may_hold_header(low: str) -> bool:
    """Returns whether there may be an authorization or cookie header, or a password for curl."""
    if len(low) > _LONGEST_LINE:
        return True
    return bool(
        ("authorization" in low and SEARCH[_AUTHORIZATION](low))
        or (("_auth" in low or '"auth"' in low) and SEARCH[_AUTH_FIELD](low))
        or ("bearer" in low and SEARCH[_BEARER](low))
        or ("cookie" in low and "=" in low and SEARCH[_COOKIE](low))
        or ("curl" in low and ("-u" in low or "-user" in low))
    )


def may_hold_command(low: str) -> bool:
    """Returns whether there may be a command with a password after a one-letter option."""
    return (
        (
            "-p" in low
            and ("login" in low or ("q" in low and "mysql" in low) or "sshpass" in low)
        )
        or ("-a" in low and "redis-cli" in low)
        or ("-u" in low and "smbclient" in low)
        or ("|" in low and ("chpasswd" in low or ("echo" in low and "sudo" in low)))
        or (("'" in low or '"' in low) and "identified" in low)
    )


def may_hold_userinfo(text: str) -> bool:
    """Returns whether there may be a password in an address, also in one without `://`."""
    return SEARCH[_USERINFO](text) is not None


def may_hold_row(low: str) -> bool:
    """Returns whether there may be a row of a file with PostgreSQL's passwords or with cookies."""
    return (
        ("\t" in low and ("\ttrue\t" in low or "\tfalse\t" in low))
        or ":*:" in low
        or ":543" in low
    )
