"""Removes disguises from a text: invisible characters, lookalikes, spacing, digits, encodings.

Each reading is plain lower-case text. Readings are only searched for patterns, never shown.
"""

import base64
import binascii
import codecs
import re
import unicodedata
from collections.abc import Callable, Iterator

from hermes.text.translation import translator

t = translator(__name__)


_TAG = "[\U000e0000-\U000e007f]"
_LETTER_TAG = "[\U000e0020-\U000e007f]"
_INVISIBLE = (
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff]+"
)
_HIDDEN_IN_WORD = "(?<=[A-Za-z])[\u00ad\u034f\u115f\u1160\u180e\u200b-\u200f\u2060-\u2064\u3164\ufeff]+(?=[A-Za-z])"
_ZERO_WIDTH = "[\u200b\u2060-\u2064\u180e]"
_CARRYING = "[\ufe00-\ufe0f\U000e0100-\U000e01ef]{3,}"
_OVERRIDES = "[\u202d\u202e\u2066-\u2068]"
# A pattern that begins with a character class matches several times as fast as one that begins with a lookbehind.
_RUN = (
    r"[^\W_](?<![^\W_]{2})[ .\-_*|/]{1,3}(?:[^\W_][ .\-_*|/]{1,3}){3,}[^\W_](?![^\W_])"
)
_SAME_SIGNS = r"([^\w\n])\1{40,}+"
"""Matches a long run of the same character: filler, which is cut to 40."""
_EVERY, _SAME_IN_SAMPLE = 5, r"([^\w\n])\1{7}"
"""A quick test for such a run: in a sample of every fifth character, the same one occurs eight times in a row."""
_WORD_WITH_DIGIT = r"(?<![\w@$!])[^\W0134578]*+[0134578@$!][\w@$!]*+"
_WORD_OR_REST = r"[\w@$!]++|[^\w@$!]++"
_WORD_BYTES = bytes(
    byte if chr(byte).isalnum() or chr(byte) in "_@$!" else ord(" ")
    for byte in range(256)
)
"""Replaces ASCII characters that can't be part of such a word with a space."""
_MAX_WORD_CHARS = 40  # longer words are keys and other data
_BASE64 = r"[A-Za-z0-9+/_-]{16,}={0,2}"
_WRAPPED = r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{16,}+(?:\r?\n[ \t>#*]{0,8}[A-Za-z0-9+/_-]{4,}+)+={0,2}"
_MARKUP = r"[<*~`\-](?:(?<=<)(?:!--[^<>]{0,200}-->|/?[a-z]{1,10}>)|(?<=-)\r?\n[ \t]*|(?<=[*~`])[*~`]*)"
_MAX_DECODE_DEPTH = 3  # encodings inside encodings
_ESCAPED_BYTES = r"(?:[\\%](?:(?<=\\)[xX]|(?<=%))[0-9a-fA-F]{2}){6,}"
_HEX = r"[0-9a-fA-F](?<!\w[0-9a-fA-F])[0-9a-fA-F] ?(?:[0-9a-fA-F]{2} ?){11,}\b"
_ESCAPED = r"(\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2})"
_PERCENT = r"((?:%[0-9a-fA-F]{2})++)"
_LETTER_OR_SPACE = bytes(
    ord(
        "a"
        if chr(byte).isalnum() or chr(byte) == "?"
        else " "
        if chr(byte) in " .-_*|/"
        else "x"
    )
    for byte in range(256)
)
"""Letters, digits and what is not ASCII; what may be between the letters of a word; everything else."""
_BASE64_OR_NOT = bytes(
    ord("b" if re.match(r"[A-Za-z0-9+/_-]", chr(byte)) else "x") for byte in range(256)
)
_HEX_OR_NOT = bytes(
    ord("b" if re.match("[0-9a-fA-F]", chr(byte)) else "x") for byte in range(256)
)
_DIGITS = str.maketrans("0134578@$!", "oieastbasi")
_JOINED = str.maketrans("\0", " ", " .-_*|/")
# Letters of other alphabets that look like Latin ones.
_LOOKALIKES = str.maketrans(
    "аеорсухіјѕԁԛԝɡһӏвмнткгαορνικτυεηρχγωßıłøđᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢꮖꮐꭱꮪꮯꮲꮃꮤ",
    "aeopcyxijsdqwghlbmhtkraopviktuenpxywsilodabcdefghijklmnoprstuvwyzigrscpwt",
) | {
    first + place: ord("a") + place
    for first in (0x1F1E6, 0x1F150, 0x1F170)
    for place in range(26)
}  # flags, and letters in black circles and squares
_TELLING = (
    "ignore",
    "disregard",
    "forget",
    "instruct",
    "previous",
    "prompt",
    "system",
    "password",
    "approve",
    "secret",
)
_ROTATED = tuple(codecs.encode(word, "rot13") for word in _TELLING)
_REVERSED = tuple(word[::-1] for word in _TELLING)
_WINDOW_CHARS = 100_000
"""Characters that are scanned; of a longer text, the start and the end."""


def hidden(text: str) -> str:
    """Returns what the text holds that a reader cannot see; empty if nothing."""
    if text.isascii():
        return ""
    if re.search(_TAG, text) and not _only_flags(text):
        return t.logged("invisible characters of the Unicode tag block")
    if re.search(_HIDDEN_IN_WORD, text) or re.search(_ZERO_WIDTH, text):
        return t.logged("invisible characters between letters")
    if re.search(_CARRYING, text):
        return t.logged("a run of invisible characters, which can hide text")
    if re.search(_OVERRIDES, text):
        return t.logged("characters that change the writing direction")
    return ""


def readings(text: str) -> Iterator[str]:
    """Yields the text in every reading that differs from the one before."""
    if len(text) > _WINDOW_CHARS:
        text = f"{text[: _WINDOW_CHARS // 2]}\n{text[-_WINDOW_CHARS // 2 :]}"
    seen: set[str] = set()
    for candidate in _candidates(text):
        folded = candidate.replace("\r", " ").casefold()
        if folded in seen:
            continue
        plain = _without_filler(folded)
        if plain.strip() and (plain == folded or plain not in seen):
            yield plain
        seen |= {folded, plain}


def _without_filler(text: str) -> str:
    if not re.search(_SAME_IN_SAMPLE, text[::_EVERY]):
        return text
    return re.sub(_SAME_SIGNS, lambda run: run[1] * 40, text)


def _candidates(text: str, depth: int = 0) -> Iterator[str]:
    yield text
    shown = _visible(text)
    yield shown
    stripped = _without_accents(shown)
    yield stripped
    if not stripped.isascii():
        yield stripped.translate(_LOOKALIKES)
    yield _without_digits(stripped)
    yield re.sub(_MARKUP, "", stripped).replace("_", " ")
    if "&" in shown or "%" in shown or "\\" in shown:
        import html  # its table of names is large and rarely needed

        plain = _each_once(_PERCENT, html.unescape(shown), _unquoted)
        yield _each_once(_ESCAPED, plain, _unescaped)
    if _may_be_spaced(shown) and re.search(_RUN, shown):
        yield re.sub(_RUN, lambda run: _joined(run[0]), shown)
    if depth < _MAX_DECODE_DEPTH and (inner := "\n".join(_decoded(shown))):
        yield from _candidates(inner, depth + 1)
    # Rotated and reversed text does not contain such a word by chance.
    if any(word in stripped for word in _ROTATED):
        yield codecs.encode(stripped, "rot13")
    if any(word in stripped for word in _REVERSED):
        yield stripped[::-1]


def _each_once(pattern: str, text: str, change: Callable[[str], str]) -> str:
    """Replaces what the group of a pattern finds. What occurs many times is changed once."""
    parts = re.split(pattern, text)
    changed = {part: change(part) for part in {*parts[1::2]}}
    return "".join(map(changed.get, parts, parts))


def _unquoted(percents: str) -> str:
    return bytes.fromhex(percents.replace("%", "")).decode("utf-8", "replace")


def _unescaped(code: str) -> str:
    return bytes.fromhex(code[2:].rjust(4, "0")).decode("utf-16-be", "surrogatepass")


def _may_be_spaced(text: str) -> bool:
    """Returns whether there may be a word that is written letter by letter; far faster than the pattern of one."""
    kinds = text.encode("ascii", "replace").translate(_LETTER_OR_SPACE)
    return b" a a a " in kinds.replace(b"  ", b" ").replace(b"  ", b" ")


def _without_accents(text: str) -> str:
    """Returns plain lower-case letters, without ligatures, full-width forms and accents."""
    if text.isascii():
        return text.casefold()
    folded = unicodedata.normalize("NFKC", text).casefold()
    parts = unicodedata.normalize("NFKD", folded)
    accents = [char for char in {*parts} if unicodedata.combining(char)]
    return re.sub(f"[{''.join(accents)}]+", "", parts) if accents else parts


def _visible(text: str) -> str:
    """Replaces tag characters with the letters they stand for, and removes other invisible ones."""
    if text.isascii():
        return text
    letters = re.sub(_LETTER_TAG, lambda tag: chr(ord(tag[0]) - 0xE0000), text)
    return re.sub(_INVISIBLE, "", letters)


def _only_flags(text: str) -> bool:
    """Returns whether tag characters only spell the flags of England, Scotland and Wales."""
    rest = re.sub("\U0001f3f4[\U000e0061-\U000e007a]{1,6}\U000e007f", "", text)
    return not re.search(_TAG, rest)


def _without_digits(text: str) -> str:
    """Replaces digits in words with the letters they look like."""
    if text.isascii():  # several times as fast as a pattern
        words = {*text.encode().translate(_WORD_BYTES).decode().split()}
    else:
        words = {*re.findall(_WORD_WITH_DIGIT, text)}
    letters = {word: _with_letters(word) for word in words}
    if all(word == changed for word, changed in letters.items()):
        return text
    parts = re.findall(_WORD_OR_REST, text)
    return "".join(map(letters.get, parts, parts))


def _with_letters(word: str) -> str:
    """Replaces digits in a word with the letters they look like; numbers and data stay."""
    if (
        len(word) > _MAX_WORD_CHARS
        or word.isalpha()
        or not any(char.isalpha() for char in word)
    ):
        return word
    return word.translate(_DIGITS)


def _joined(run: str) -> str:
    """Joins words that are written letter by letter. A wider or rarer gap ends a word."""
    words = re.split(r"[ .\-_*|/]{2,}", run)
    if len(words) == 1 and " " in run and re.search(r"[.\-_*|/]", run):
        words = run.split(" ")
    return "\0".join(words).translate(_JOINED)


def _decoded(text: str) -> Iterator[str]:
    data = text.encode("ascii", "replace")
    if b"b" * 16 in data.translate(_BASE64_OR_NOT):
        for found in re.finditer(_BASE64, text):
            yield from _as_text(_unbase64(found[0]))
        for found in re.finditer(_WRAPPED, text):
            yield from _as_text(_unbase64(re.sub(r"\s[ \t>#*]*", "", found[0])))
    if "\\" in text or "%" in text:
        yield from _from_hex(_ESCAPED_BYTES, text)
    if b"b" * 24 in data.translate(_HEX_OR_NOT, delete=b" "):
        yield from _from_hex(_HEX, text)


def _from_hex(pattern: str, text: str) -> Iterator[str]:
    for found in re.finditer(pattern, text):
        digits = re.sub(r"\\[xX]|%|\s", "", found[0])
        with_pairs = digits[: len(digits) // 2 * 2]
        yield from _as_text(bytes.fromhex(with_pairs))


def _unbase64(word: str) -> bytes:
    word = word.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(word + "=" * (-len(word) % 4))
    except (binascii.Error, ValueError):
        return b""


def _as_text(data: bytes) -> Iterator[str]:
    wide = len(data) >= 16 and not any(data[1:17:2])
    try:
        text = data.decode("utf-16-le" if wide else "utf-8")
    except UnicodeDecodeError:
        return
    if len(text) >= 8 and (text.isprintable() or "".join(text.split()).isprintable()):
        yield text
