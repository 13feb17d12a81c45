"""Reads and writes `.po` files, gettext's format of translations for people, and writes `.mo` files, the one for programs."""

import json
import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

_MO_MAGIC = 0x950412DE
_HEADER_BYTES = 28


class PoKey(NamedTuple):
    """What is translated: a sentence of a module."""

    context: str
    text: str
    plural: str = ""


class PoError(ValueError):
    """A line can't be read."""


def parse_po(content: str) -> dict[PoKey, tuple[str, ...]]:
    """Returns the translations: one for a sentence, one for each form of a plural. Empty ones are left out."""
    found: dict[PoKey, tuple[str, ...]] = {}
    fields: dict[str, str] = {}
    field = ""
    for number, raw in enumerate([*content.split("\n"), 'msgid ""'], 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        keyword, quoted = ("", line) if line[0] == '"' else _split(line, number)
        is_next = keyword == "msgctxt" or (keyword == "msgid" and field != "msgctxt")
        if is_next:
            _add(found, fields)
            fields = {}
        field = keyword or field
        fields[field] = fields.get(field, "") + _unquoted(quoted, number)
    return found


def _split(line: str, number: int) -> tuple[str, str]:
    keyword, _, quoted = line.partition(" ")
    if keyword.partition("[")[0] not in ("msgctxt", "msgid", "msgid_plural", "msgstr"):
        raise PoError(
            f"line {number}: expected msgctxt, msgid or msgstr"
        )  # not translated
    return keyword, quoted.strip()


def _unquoted(quoted: str, number: int) -> str:
    try:
        text = json.loads(quoted)
    except ValueError as error:
        raise PoError(
            f"line {number}: expected a text in double quotes"
        ) from error  # not translated
    if not isinstance(text, str):
        raise PoError(
            f"line {number}: expected a text in double quotes"
        )  # not translated
    return text


def _add(found: dict[PoKey, tuple[str, ...]], fields: Mapping[str, str]) -> None:
    key = PoKey(
        fields.get("msgctxt", ""),
        fields.get("msgid", ""),
        fields.get("msgid_plural", ""),
    )
    forms = tuple(text for name, text in fields.items() if name.startswith("msgstr"))
    if all(forms) and forms:
        found[key] = forms


def write_po(translations: Mapping[PoKey, tuple[str, ...]], head: str) -> str:
    """Returns the text of a `.po` file, with the entries in their order. `head` is its header."""
    entries = [_entry(PoKey("", ""), (head,))]
    entries += [_entry(key, forms) for key, forms in translations.items()]
    return "\n\n".join(entries) + "\n"


def _entry(key: PoKey, forms: tuple[str, ...]) -> str:
    lines = [f"msgctxt {_quoted(key.context)}"] if key.context else []
    lines.append(f"msgid {_quoted(key.text)}")
    if key.plural:
        lines.append(f"msgid_plural {_quoted(key.plural)}")
        lines += [f"msgstr[{n}] {_quoted(form)}" for n, form in enumerate(forms)]
    else:
        lines.append(f"msgstr {_quoted(forms[0])}")
    return "\n".join(lines)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def write_mo(translations: Mapping[PoKey, tuple[str, ...]], head: str) -> bytes:
    """Returns the content of a `.mo` file, which `gettext` of the standard library reads."""
    rows = [(b"", head.encode())]
    rows += [
        (_mo_key(key), "\0".join(forms).encode()) for key, forms in translations.items()
    ]
    rows.sort()
    start = _HEADER_BYTES + 16 * len(rows)
    keys, after = _index((key for key, _ in rows), start)
    values, _ = _index((value for _, value in rows), after)
    second = _HEADER_BYTES + 8 * len(rows)
    header = struct.pack(
        "<7I", _MO_MAGIC, 0, len(rows), _HEADER_BYTES, second, 0, start
    )
    texts = [key for key, _ in rows] + [value for _, value in rows]
    return header + keys + values + b"".join(text + b"\0" for text in texts)


def mo_keys(content: bytes) -> Iterator[PoKey]:
    """Returns what a `.mo` file translates, without the entry of its header."""
    _, _, count, start = struct.unpack_from("<4I", content)
    for row in range(count):
        length, offset = struct.unpack_from("<2I", content, start + 8 * row)
        name = content[offset : offset + length].decode()
        before, separator, after = name.partition("\x04")
        context, texts = (before, after) if separator else ("", name)
        text, _, plural = texts.partition("\0")
        if text:
            yield PoKey(context, text, plural)


def _mo_key(key: PoKey) -> bytes:
    text = f"{key.context}\x04{key.text}" if key.context else key.text
    return (f"{text}\0{key.plural}" if key.plural else text).encode()


def _index(texts: Iterable[bytes], start: int) -> tuple[bytes, int]:
    """The lengths and offsets of texts that begin at `start`, and where they end."""
    packed = b""
    for text in texts:
        packed += struct.pack("<2I", len(text), start)
        start += len(text) + 1
    return packed, start
