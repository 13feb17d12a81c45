"""Quick tests whether a line can hold a secret that is named: by a field, an option, a header or a command.

They run for every line that is logged or shown, so each decides in one search what a careful look would take ten times
as long for. They may say yes too often, but never no where `named_secrets` would mask something.
"""

from hermes.settings.key_shapes import SEARCH
from hermes.settings.spelled_secrets import SPELLED

_LONGEST_LINE = 2_000
"""In longer text the careful look costs less than asking here first."""
_LONGEST_KIND = 12
"""How much of a name may come before the word that the quick search finds: `encryption key`."""
_ROOTS = ("key", "token", "secret", "pass", "pwd", "cred", "sig", "auth")
_KINDS_OF_KEY = (  # how the words before `key` end: api, private, access, secret, auth, ...
    "pi|te|ss|et|th|on|ng|er|oy|se|nt|ed|ce|in|ac|ge|ok"
)
_KEY = rf"key(?:(?<=(?:{_KINDS_OF_KEY})key)|(?<=(?:{_KINDS_OF_KEY})[_.\-]key))"
_PASSWORD = r"(?:pass(?:w(?:or)?d|phrase)?|pwd)"  # noqa: S105 - a pattern
_WORD = rf"(?:token|secret|credential|{_PASSWORD}|{_KEY})s?(?:_?\d{{1,2}})?"
_SEPARATOR = r"\\*+[\"'`]?+\]?+\s{0,4}+(?:=>|:=|[:=](?![:=]))[ \t]{0,8}+"
_STOPS = r"\s\"'`,;&<>(){}\[\]\\|"
_COUNT = r"\d.,:_/%+\-"
_QUOTED = (  # except what is empty, a placeholder or a sentence; where an escaped quote ends is not looked for
    r"(?:\\+[\"'`]|([\"'`])(?!\1|\$[{(]|[{(]|\*{1,40}\1|<[^>\"'`]{0,80}>?\1|\[[^\]\"'`]{0,80}\]?\1"
    r"|[a-z,\-]{1,40}(?: [a-z0-9,\-]{1,40}){1,20}[.!?…]\1|(?:none|null|true|false)\1))"
)
_LONG_VALUE = rf"[^{_STOPS}]{{60}}|[a-z]{{16}}"
_BARE = (  # a digit and something else than a number; after `12` even a `k`, which may have been a capital
    rf"(?=[^{_STOPS}]{{6}})(?!(?:\.{{0,2}}|~)/)"
    rf"(?:{_LONG_VALUE}|(?=[^{_STOPS}\d]{{0,60}}\d)[{_COUNT}]{{0,60}}[^{_STOPS}{_COUNT}])"
)
# Fewer steps than `_SEPARATOR` for the same words, and a little more permissive.
_TO_VALUE = (
    r"(?:[:=](?![:=])>?+|:=)[ \t]*+(?:[|>][+\-]?\d?[ \t]*+(?=\r?\n))?+(?:\r?\n\s*+)?+"
)
_SOME_VALUE = (
    rf"[\"'`\\]|(?=[^{_STOPS}]{{6}})(?:[^{_STOPS}\d]{{0,60}}+\d|[^{_STOPS}]{{16}})"
)
# A sentence or a label, and a value with a digit.
_SPELLED_VALUE = (
    rf"(?<=[\s\"'`])(?![:=])(?:[^{_STOPS}\d]{{0,60}}+\d"
    r"|(?:is|was|are|for|of|set|reset|changed|equals)[ \t:=][^\d\n]{0,140}+\d)"
)
_AFTER_NAME = r"s?+_?+\d{0,2}+(?:>|[\\\"'`\]\s]*+"
_AFTER_KEY = rf"{_AFTER_NAME}(?:{_TO_VALUE}(?:{_SOME_VALUE})|{_SPELLED_VALUE}))"
_AFTER_PASS = (
    rf"{_AFTER_NAME}(?:{_TO_VALUE}(?:\d{{4}}|{_SOME_VALUE})|{_SPELLED_VALUE}))"
)
# A quick search for a name with some value, and a closer one.
_SOME_TOKEN = rf"token{_AFTER_KEY}"
_SOME_KEY = rf"key(?>(?<=[a-z_.\-]key)|(?<=(?:{_KINDS_OF_KEY}) key)){_AFTER_KEY}"
_SOME_PASS = rf"pass[wordphasec]*+{_AFTER_PASS}"
_SOME_SECRET = rf"secret{_AFTER_KEY}"
_SOME_PWD = rf"pwd{_AFTER_PASS}"
_SOME_CREDENTIAL = rf"credential(?:{_AFTER_KEY}|s?+[ \t])"
_VALUED = rf"s?(?:_?\d{{1,2}})?{_SEPARATOR}(?:{_QUOTED}|{_BARE})"
_VALUED_PIN = rf"(?:{_VALUED}|s?(?:_?\d{{1,2}})?{_SEPARATOR}\d{{4}})"
_VALUED_TOKEN = rf"token{_VALUED}"
_VALUED_KEY = rf"{_KEY}{_VALUED}"
_VALUED_PASS = rf"{_PASSWORD}{_VALUED_PIN}"
_VALUED_SECRET = rf"secret{_VALUED}"
_VALUED_PWD = rf"pwd{_VALUED_PIN}"
_VALUED_CREDENTIAL = rf"credential{_VALUED}"
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
_PIN = r"PIN(?<![A-Za-z]PIN)(?: code| number)?\s{0,4}(?:[:=]|is|was)[ \t]{0,4}\d{4}"
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
    has_token = has_key = has_pass = has_pwd = False
    if "k" in low:
        has_token, has_key = "token" in low, "key" in low
    has_secret = "secret" in low
    has_credential = "credential" in low
    if "p" in low:
        has_pass, has_pwd = "pass" in low, "w" in low and "pwd" in low
        if "P" in text and "PIN" in text and SEARCH[_PIN](text):
            return True
    is_named = (
        has_token or has_key or has_secret or has_credential or has_pass or has_pwd
    )
    is_marked = is_pair or (is_named and _is_marked(low))
    if not is_marked and (not is_named or SEARCH["[0-9]"](low) is None):
        return False
    if (
        (has_token and _has_secret(low, _SOME_TOKEN, _VALUED_TOKEN))
        or (has_key and _has_secret(low, _SOME_KEY, _VALUED_KEY))
        or (has_secret and _has_secret(low, _SOME_SECRET, _VALUED_SECRET))
        or (has_credential and _has_secret(low, _SOME_CREDENTIAL, _VALUED_CREDENTIAL))
        or (has_pass and _has_secret(low, _SOME_PASS, _VALUED_PASS))
        or (has_pwd and _has_secret(low, _SOME_PWD, _VALUED_PWD))
    ):
        return True
    if is_pair and ("?" in low or "&" in low):
        is_field = is_named or "sig" in low or "auth" in low
        if is_field and _has_field(low):
            return True
    return is_marked and is_named and _is_named_otherwise(text, low)


def _is_marked(low: str) -> bool:
    """Returns whether something besides `:` and `=` may mark a value: a quote, an element, an option, a netrc entry."""
    return (
        "'" in low
        or "<" in low
        or ("-" in low and "--" in low)
        or ("password" in low and ("login" in low or "user" in low))
    )


def _has_secret(low: str, some: str, valued: str) -> bool:
    """Takes a closer look from where a quick search finds something."""
    found = SEARCH[some](low)
    if found is None:
        return False
    start = max(found.start() - _LONGEST_KIND, 0)
    return bool(
        SEARCH[valued](low, start)
        or SEARCH[SPELLED](low, start)
        or SEARCH[_ELEMENT](low, start)
    )


def _is_named_otherwise(text: str, low: str) -> bool:
    """Returns whether there may be a variable in capitals, an option, a private key or a netrc file."""
    return bool(
        (("=" in low or "'" in low) and text != low and _has_capital_name(text))
        or (
            "-" in low
            and "--" in low
            and SEARCH[_ANY_OPTION](low)
            and SEARCH[_OPTION](low)
        )
        or ("v" in low and ("private key" in low or "private-lines" in low))
        or (
            "password" in low
            and ("login" in low or "user" in low)
            and SEARCH[_NETRC](low)
        )
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
        ("login" in low and "-p" in low)
        or ("q" in low and "mysql" in low and "-p" in low)
        or ("redis-cli" in low and "-a" in low)
        or ("sshpass" in low and "-p" in low)
        or ("smbclient" in low and "-u" in low)
        or ("echo" in low and "|" in low and "sudo" in low)
        or (("'" in low or '"' in low) and "identified" in low)
        or "chpasswd" in low
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
