"""The shapes of common providers' keys and tokens, and where a text may contain one."""

import binascii
import re
from collections.abc import Callable
from functools import cache

HIDDEN = "********"
"""What replaces a secret."""
AMPERSAND = r"&(?![&\s]|amp;|[\w.\-\[\]%]{1,60}=|$)"
"""Matches `&` within a value, and not before the next field or command."""
_RUN_LENGTH = 16
"""Every key has this many letters, digits, `_` and `-` in a row; few ordinary words do."""
_LONG_RUN = b"a" * _RUN_LENGTH
find_long_run = re.compile(_LONG_RUN).search
"""Finds a long run in `key_classes`, twice as fast as `bytes.find` does."""
KEY_CLASSES = bytes(
    97 if chr(byte).isascii() and (chr(byte).isalnum() or chr(byte) in "_-") else 32
    for byte in range(256)
)
"""Translates a text to `a` for every character that a key may have, and a blank for every other."""
_HEX = "0123456789abcdef-"
_SHORTEST_ENCODED = 20
_FIRST_OF_FOUR = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdef"
"""Every fourth character of base64, if it encodes ASCII."""
_BEFORE_DOT = ("SG.", "hvs.", "hvb.", "atlasv1.", "ya29.", "xoxe.", "8Q~")
_ENDS_BEFORE_DOT = frozenset(start[-2] for start in _BEFORE_DOT)
_SEPARATED = (  # unique prefixes; any key material may follow
    "sk-|sk_|rk_live_|rk_test_|csk-|gsk_|ghp_|gho_|ghu_|ghs_|ghr_|github_pat_|glpat-|glptt-|gldt-|glrt-|glcbt-|glsoat-"
    "|xoxa-|xoxb-|xoxc-|xoxd-|xoxe-|xoxe\\.xoxp-|xoxe\\.xoxb-|xoxo-|xoxp-|xoxr-|xoxs-|xapp-|hf_|xai-|pplx-|nvapi-|npm_"
    "|pypi-|dckr_pat_|dop_v1_|doo_v1_|dor_v1_|shpat_|shpca_|shppa_|shpss_|GOCSPX-|whsec_|lin_api_|ntn_|figd_|tskey-"
    "|tvly-|sntrys_|sntryu_|syt_|glsa_|sbp_|phx_|PMAK-|CFPAT-|NRAK-|rubygems_|sq0atp-|sq0csp-|r8_|jina_|pscale_tkn_"
    "|pscale_pw_|vercel_|AIza|ATATT3|ATBB|hvs\\.|hvb\\.|atlasv1\\.|ya29\\.|AGE-SECRET-KEY-1"
)
# Words such as `sk-learn-contrib` start alike: a key has a digit, a capital or a long run of letters.
_BODY = r"(?=[a-z_\-]{0,100}+[A-Z0-9]|[a-z_\-]{0,40}[a-z]{16})[A-Za-z0-9_\-]{12,}"
_EXACT = (
    r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,}"
    r"|(?<![_\-])eyJ[A-Za-z0-9_\-]{16,}(?:\.[A-Za-z0-9_\-]{16,}){1,4}"
    r"|SG\.[A-Za-z0-9_\-]{16,}\.[A-Za-z0-9_\-]{16,}"
    r"|[MNO][A-Za-z0-9]{23,27}\.[A-Za-z0-9_\-]{6,7}\.[A-Za-z0-9_\-]{27,}"  # Discord
    r"|(?:dapi|key-|SK)[0-9a-f]{32}"  # Databricks, Mailgun, Twilio
    r"|LTAI[A-Za-z0-9]{16,}|oy2[a-z0-9]{43}|secret_[A-Za-z0-9]{40,}"
)
_ANYWHERE = (  # not only at the start of a word
    r"(?<!\d)\d{8,10}:[A-Za-z0-9_\-]{34,36}(?![A-Za-z0-9_\-])"  # Telegram, also as `/bot123456789:.../getMe`
    r"|(?<=hooks\.slack\.com/services/)T[A-Z0-9]+/B[A-Z0-9]+/[A-Za-z0-9]{16,}"
    r"|(?<=/api/webhooks/)\d{15,}/[A-Za-z0-9_\-]{40,}"  # Discord
    r"|[A-Za-z0-9_~.\-]{3}8Q~[A-Za-z0-9_~.\-]{31,}"  # Azure
    r"|(?<![\w/:.])1//0[A-Za-z0-9_\-]{20,}"  # Google's refresh tokens
)
_WEBHOOK = r"hooks\.slack\.com/|/webhooks/"
# The beginnings of the shapes, by their first letter: far faster to search than the shapes.
_BEGINS = (
    r"(?:s(?:k[-_]|hp[acps]|ntry|yt_|bp_|q0|ecret_)|g(?:sk_|h[oprsu]_|ithub_pat_|l[a-z]{2,4}-)|x(?:ox|app-|ai-)|r(?:k_|8_|ubygems_)"
    r"|A(?:Iza|KIA|SIA|BIA|CCA|TATT3|TBB|GE-)|p(?:plx-|ypi-|hx_|scale_)|d(?:ckr_|o[opr]_v1_|api)|n(?:vapi-|pm_|tn_)|c(?:sk-)"
    r"|h(?:f_|v[bs]\.)|t(?:skey-|vly-)|(?:eyJ|SK|lin_api_|figd_|jina_|key-|whsec_|vercel_|oy2|GOCSPX-|PMAK-|CFPAT-|NRAK-|LTAI))"
)
_STARTS = frozenset(
    [prefix.replace("\\", "")[:3] for prefix in _SEPARATED.split("|")]
    + ["AKI", "ASI", "ABI", "ACC", "LTA", "dap", "key", "sec", "eyJ", "oy2"]
    + [f"SK{digit}" for digit in "0123456789abcdef"]
)
"""The first three letters of every shape."""
# The second letters keep most words out before the branches are tried.
_BEGINS_WITHIN = (
    rf"[-_](?=[ACGLNPSacdefghjklnoprstvwxy][8ABCEGIKMOSTabcefhiklnopqrstuvy]){_BEGINS}"
)
# What most long runs are: words, a hash or a UUID, an SSH public key, or joined words and numbers (none of which starts
# like a key). The first part is too short to be base64 of a secret.
_ORDINARY_PART = rf"(?:[0-9BDEFHIJKMOQRT-Zbimquz]|(?!(?=.[8ABCEGIKMOSTabcefhiklnopqrstuvy]){_BEGINS}))"
_END = r"(?![A-Za-z0-9_\-])"
_ORDINARY = (
    rf"(?:[a-z]{{1,15}}+(?:[_\-]++[a-z]{{1,15}}+)*+{_END}|[0-9a-f\-]{{16,}}+{_END}|AAAA[A-Za-z0-9]++{_END}"
    rf"|{_ORDINARY_PART}[A-Za-z0-9]{{0,19}}+(?:[_\-]++{_ORDINARY_PART}[A-Za-z0-9]*+)*+{_END})"
)
_SHORTEST_BODY = 12
_BEGINS_PART = rf"(?:^|[-_]){_BEGINS}"
KEY = rf"(?<![A-Za-z0-9])(?:(?:{_SEPARATED}){_BODY}|{_EXACT})|{_ANYWHERE}"
_HEAD = rf"(?<![A-Za-z0-9])(?:{_SEPARATED}|AKIA|ASIA|eyJ)"
_JOIN = (  # how a long string continues: on the next line, or as the next part of a sum
    r"(?:[\"'`]?[ \t]{0,9}[+\\]?[ \t]{0,9}\r?\n[ \t]{0,80}(?:[>|#+][ \t]{0,9})?[\"'`]?"
    r"|[\"'`][ \t]{0,9}\+[ \t]{0,9}[\"'`])"
)
SPLIT_KEY = rf"({_HEAD}[A-Za-z0-9_\-]{{0,200}})((?:{_JOIN}[A-Za-z0-9_\-]{{4,200}})+)"
PRIVATE_KEY = (
    r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:(?:[^\-]|-(?!----)){0,20000}+-----END [A-Z0-9 ]{0,40}-----"
    r"|(?:(?:Proc-Type|DEK-Info|Version|Comment): [^\n]*|[A-Za-z0-9+/=\s>|]|\\[nr])*+)"  # cut off
    r"|-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY"
    r"|(?<=Private-Lines: )\d+\s[A-Za-z0-9+/=\s]+"  # PuTTY
)


class _Patterns(dict[str, "re.Pattern[str]"]):
    """Compiles a pattern on first use: most runs of Hermes never need it."""

    def __missing__(self, pattern: str) -> "re.Pattern[str]":
        compiled = self[pattern] = re.compile(pattern)
        return compiled


class _Searches(dict[str, "Callable[..., re.Match[str] | None]"]):
    """The `search` methods of patterns, looked up once because they run for every line."""

    def __missing__(self, pattern: str) -> "Callable[..., re.Match[str] | None]":
        search = self[pattern] = PATTERNS[pattern].search
        return search


class _AsciiSearches(dict[str, "Callable[..., re.Match[str] | None]"]):
    """The `search` of patterns for text that is ASCII, where they match the same in two thirds of the time."""

    def __missing__(self, pattern: str) -> "Callable[..., re.Match[str] | None]":
        search = self[pattern] = re.compile(ascii_pattern(pattern)).search
        return search


class _Matches(dict[str, "Callable[..., re.Match[str] | None]"]):
    """The same for `match`, in any text, because these patterns use no character categories."""

    def __missing__(self, pattern: str) -> "Callable[..., re.Match[str] | None]":
        match = self[pattern] = PATTERNS[pattern].match
        return match


@cache
def ascii_pattern(pattern: str) -> str:
    r"""Returns a pattern with `\s`, `\d` and `\w` spelled out for ASCII.

    `re` looks a character of a spelled-out set up in a table, but calls a function for each category.
    """
    return re.sub(_SET_OR_ESCAPE, _spelled_out, pattern)


_SET_OR_ESCAPE = r"\[(?:\^)?\]?(?:[^\]\\]|\\.)*\]|\\."
_ASCII_SETS = {r"\s": r" \t-\r\x1c-\x1f", r"\d": "0-9", r"\w": "A-Za-z0-9_"}
_ASCII_ESCAPES = {escape: f"[{one}]" for escape, one in _ASCII_SETS.items()} | {
    r"\S": r"[^ \t-\r\x1c-\x1f]"
}


def _spelled_out(found: "re.Match[str]") -> str:
    if found[0][0] == "\\":
        return _ASCII_ESCAPES.get(found[0], found[0])
    return re.sub(r"\\.", lambda one: _ASCII_SETS.get(one[0], one[0]), found[0])


PATTERNS = _Patterns()
SEARCH = _Searches()
ASCII_SEARCH = _AsciiSearches()
MATCH = _Matches()


def compiled_for(text: str, pattern: str) -> "re.Pattern[str]":
    """Returns a pattern of `PATTERNS` that finds the same in `text`, faster if that is ASCII."""
    return PATTERNS[ascii_pattern(pattern) if text.isascii() else pattern]


def compiled(pattern: str) -> "re.Pattern[str]":
    """Returns a pattern of `PATTERNS`."""
    return PATTERNS[pattern]


def key_classes(text: str) -> bytes:
    """Returns `text` after `KEY_CLASSES`, a byte for each character."""
    encoded = text.encode() if text.isascii() else text.encode("ascii", "replace")
    return encoded.translate(KEY_CLASSES)


def may_hold_key(text: str, classes: bytes, start: int) -> bool:
    """Returns whether a long run in `text`, the first of them at `start`, can be a key or encode one; a hash, a UUID
    or words can't. Errs on the side of yes. `classes` is `text` after `KEY_CLASSES`.
    """
    while start >= 0:
        ordinary = MATCH[_ORDINARY](text, start)
        if ordinary is None:
            end = classes.find(b" ", start + _RUN_LENGTH)
            end = len(classes) if end < 0 else end
            if _is_key(text, start, end):
                return True
        else:
            end = ordinary.end()
        if start and text[start - 1] in ":./~" and _continues_key(text, start, end):
            return True
        if len(classes) - end <= _RUN_LENGTH:
            return False
        run = find_long_run(classes, end)
        start = -1 if run is None else run.start()
    return False


def _is_key(text: str, start: int, end: int) -> bool:
    """Returns whether a long run can be a key by itself, or encode one."""
    run = text[start:end]
    # Looking up three letters is far faster than searching for a pattern.
    if (
        run[:3] in _STARTS
        or (
            ("_" in run or "-" in run)
            and SEARCH[_BEGINS_WITHIN](text, start, end - _SHORTEST_BODY)
        )
    ) and _is_suspect(run):
        return True
    first = run[0]
    return first in _FIRST_OF_FOUR and (
        (
            run[4] in _FIRST_OF_FOUR
            and run[8] in _FIRST_OF_FOUR
            and run[12] in _FIRST_OF_FOUR
            and _may_be_encoded(run)
        )
        or (first in "MNO" and text[end : end + 1] == ".")
    )


def is_secret_value(text: str) -> bool:
    """Returns whether `text` contains the shape of a provider's key, or the start of a private key."""
    if "PRIVATE KEY" in text and compiled(PRIVATE_KEY).search(text):
        return True
    classes = key_classes(text)
    return may_hold_key(text, classes, classes.find(_LONG_RUN)) and bool(
        PATTERNS[KEY].search(text)
    )


def may_begin_key(text: str) -> bool:
    """Returns whether something in `text` starts like a key."""
    return compiled(_BEGINS).search(text) is not None


def _is_suspect(run: str) -> bool:
    """Returns whether `run`, or a part of it, starts like a key and is more than words."""
    return not _is_words(run) and compiled(_BEGINS_PART).search(run) is not None


def _may_be_encoded(run: str) -> bool:
    """Returns whether `run` can be base64 of text, and not a hash."""
    head = run[:_SHORTEST_ENCODED]
    if len(head) < _SHORTEST_ENCODED or "_" in head or "-" in head:
        return False
    decoded = binascii.a2b_base64(head)
    return decoded.isascii() and b"\0\0" not in decoded and run.strip(_HEX) != ""


def _continues_key(text: str, start: int, end: int) -> bool:
    """Returns whether a run follows the start of a key: `hvs.`, a Telegram bot's number, a
    webhook's address.
    """
    if text[start - 1] == "/":
        if text[start - 2] == "/":
            return text.startswith("1//0", start - 3)
        return "hooks" in text and _in_webhook(text, start)
    if text[start - 1] == ":":
        return 34 <= end - start <= 36 and text[start - 2].isdigit()
    return text[start - 2] in _ENDS_BEFORE_DOT and text.endswith(_BEFORE_DOT, 0, start)


def _is_words(run: str) -> bool:
    """Returns whether a long run is lower-case words, joined."""
    return (
        run.islower()
        and not run[-_RUN_LENGTH:].isalpha()
        and run.replace("_", "").replace("-", "").isalpha()
    )


def _in_webhook(text: str, start: int) -> bool:
    """Returns whether a webhook's address precedes `start`."""
    return compiled(_WEBHOOK).search(text, max(start - 100, 0), start) is not None
