"""Quick tests whether a line can hold a secret that is named: by a field, an option, a header or a command.

They run for every line that is logged or shown, so each decides in one search what a careful look would take ten times
as long for. They may say yes too often, but never no where `named_secrets` would mask something.
"""

from hermes.settings.key_shapes import compiled

_LONGEST_LINE = 2_000
"""In longer text the careful look costs less than asking here first."""
_KINDS_OF_KEY = (  # how the words before `key` end: api, private, access, secret, auth, ...
    "pi|te|ss|et|th|on|ng|er|oy|se|nt|ed|ce|in|ac|ge|ok"
)
_KEY = rf"key(?:(?<=(?:{_KINDS_OF_KEY})key)|(?<=(?:{_KINDS_OF_KEY})[_.\-]key))"
_PASSWORD = r"(?:pass(?:w(?:or)?d|phrase)?|pwd)"  # noqa: S105 - a pattern
_WORD = rf"(?:token|secret|credential|{_PASSWORD}|{_KEY})s?(?:_?\d{{1,2}})?"
_SEPARATOR = r"\\*[\"'`]?\]?\s{0,4}(?:=>|:=|[:=](?![:=]))[ \t]{0,8}"
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
_VALUED = rf"s?(?:_?\d{{1,2}})?{_SEPARATOR}(?:{_QUOTED}|{_BARE})"
_VALUED_KEY = rf"{_KEY}{_VALUED}"
_VALUED_TOKEN = rf"token{_VALUED}"
_VALUED_SECRET = rf"secret{_VALUED}"
_VALUED_CREDENTIAL = rf"credential{_VALUED}"
_VALUED_PASSWORD = rf"{_PASSWORD}(?:{_VALUED}|s?(?:_?\d{{1,2}})?{_SEPARATOR}\d{{4}})"
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
_OPTION = rf"--[a-z0-9_.\-]{{0,80}}?{_WORD}(?:{_SEPARATOR}|[ \t]{{1,8}})(?!\*+(?:\s|$))[^\s\-<]"
_FORM = (
    r"[?&][a-z_\-]{0,20}(?:token|key|secret|password|passwd|auth|signature|sig)=[^&\s#\"']"
    rf"|[?&][a-z0-9_.\-]{{0,80}}?{_WORD}{_SEPARATOR}[^\s\"'`&<>]|{_WORD}{_SEPARATOR}[^{_STOPS}]{{1,1000}}&"
)
_NETRC = r"(?:login|user)\s+\S+\s+password[ \t]"
_ELEMENT = rf"{_WORD}>[^<]"
_AUTHORIZATION = (
    r"authorization\\*[\"']?\s{0,4}[:=]\s{0,4}\\*[\"']?\s{0,4}(?:(?:basic|bearer|token|apikey|negotiate|ntlm)[ \t]+)?"
    r"(?:[^\s\"'\\\d]{0,16}\d|[^\s\"'\\]{16}|[^\"'\n\\]{0,400},|digest|aws4)"
)
_BEARER = (
    r"bearer[ \t]+(?=[a-z0-9._~+/=\-]{8})(?=[a-z._~+/=\-]*\d|[a-z0-9._~+/=\-]{16})"
)
_COOKIE = r"cookie\\*[\"']?\s{0,4}:\s{0,4}\\*[\"']?[^\"'\n\\]*?[^=;\s]=[^;\s]"
_AUTH_FIELD = r"_auth[ \t]{0,4}=|\"auth\"\s{0,4}:"


def may_name_secret(text: str, low: str) -> bool:
    """Returns whether `text` may have the name of a secret with a value; `low` is `text` in lower case."""
    if not (
        "key" in low
        or "token" in low
        or "secret" in low
        or "pass" in low
        or "pwd" in low
        or "cred" in low
        or "sig" in low
        or "auth" in low
    ):
        return False
    if len(low) > _LONGEST_LINE:
        return True
    is_assigned = "=" in low
    if is_assigned or ":" in low:
        is_form = "?" in low or "&" in low
        if _has_value(low) or (is_form and compiled(_FORM).search(low)):
            return True
    if (is_assigned or "'" in low) and low != text and compiled(_CAPITAL).search(text):
        return True
    return ("--" in low and compiled(_OPTION).search(low) is not None) or _is_rare(low)


def _has_value(low: str) -> bool:
    return (
        ("key" in low and _is_valued(low, "key", _VALUED_KEY))
        or ("token" in low and _is_valued(low, "token", _VALUED_TOKEN))
        or ("secret" in low and _is_valued(low, "secret", _VALUED_SECRET))
        or ("pass" in low and _is_valued(low, "pass", _VALUED_PASSWORD))
        or ("pwd" in low and _is_valued(low, "pwd", _VALUED_PASSWORD))
        or ("cred" in low and _is_valued(low, "credential", _VALUED_CREDENTIAL))
    )


def _is_valued(low: str, word: str, pattern: str) -> bool:
    """Returns whether `pattern` matches at one of the places of `word`: far faster than a search for it."""
    matches, at = compiled(pattern).match, low.find(word)
    while at >= 0:
        if matches(low, at):
            return True
        at = low.find(word, at + 3)
    return False


def _is_rare(low: str) -> bool:
    """A private key, an element of XML, or a line of a netrc file."""
    if "private" in low and ("private key" in low or "private-lines" in low):
        return True
    if "</" in low and compiled(_ELEMENT).search(low):
        return True
    return (
        "password" in low
        and ("login" in low or "user" in low)
        and compiled(_NETRC).search(low) is not None
    )


def may_hold_header(low: str) -> bool:
    """Returns whether there may be an authorization or cookie header, or a password for curl."""
    if len(low) > _LONGEST_LINE:
        return True
    if "auth" in low and (
        ("authorization" in low and compiled(_AUTHORIZATION).search(low))
        or (("_auth" in low or '"auth"' in low) and compiled(_AUTH_FIELD).search(low))
    ):
        return True
    if "bearer" in low and compiled(_BEARER).search(low):
        return True
    if "cookie" in low and compiled(_COOKIE).search(low):
        return True
    return "curl" in low and ("-u" in low or "-user" in low)


def may_hold_command(low: str) -> bool:
    """Returns whether there may be a command with a password after a one-letter option."""
    return (
        ("-p" in low and ("mysql" in low or "sshpass" in low or "login" in low))
        or ("-a" in low and "redis-cli" in low)
        or ("identified" in low and ("'" in low or '"' in low))
    )
