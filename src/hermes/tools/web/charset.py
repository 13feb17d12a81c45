"""Decodes bytes to text: by the charset that the page declares, unless the bytes say otherwise."""

import codecs
import re

# The charsets of the web. Python has others that are not charsets (base64, zip), or that hide markup (UTF-7).
_KNOWN = """
    ascii utf-8 utf-8-sig utf-16 utf-16-le utf-16-be iso8859-1 iso8859-2 iso8859-3 iso8859-4 iso8859-5 iso8859-6
    iso8859-7 iso8859-8 iso8859-9 iso8859-10 iso8859-13 iso8859-14 iso8859-15 iso8859-16 cp866 koi8-r koi8-u mac-roman
    mac-cyrillic cp874 cp1250 cp1251 cp1252 cp1253 cp1254 cp1255 cp1256 cp1257 cp1258 gb2312 gbk gb18030 big5 big5hkscs
    euc_jp iso2022_jp shift_jis cp932 euc_kr cp949
"""
_WIDER = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
}
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_IN_HEADER = r"(?i)charset\s*=\s*[\"']?([a-z0-9_.:-]{1,40})"
_IN_PAGE = rb"(?i)<meta[^>]{0,300}charset\s{0,10}=\s{0,10}[\"']?([a-z0-9_.:-]{1,40})"
_IN_XML = rb"(?i)^\s{0,100}<\?xml[^>]{0,200}encoding\s{0,10}=\s{0,10}[\"']([a-z0-9_.:-]{1,40})"
_SNIFFED_BYTES = 2048
# Names that are in use but unknown to Python.
_OTHER_NAMES = {
    "utf8mb4": "utf-8",
    "unicode-1-1-utf-8": "utf-8",
    "iso-8859-6-i": "iso8859-6",
    "iso-8859-8-i": "iso8859-8",
    "iso-8859-8-e": "iso8859-8",
    "iso-8859-11": "cp874",
    "ansi": "cp1252",
    "ks_c_5601": "cp949",
}
_PREFIX = re.compile(r"^(?:x-)?(?:windows-|win-?|cp-|ms-?|ibm-)(?=\d)")


def decode(body: bytes, content_type: str = "") -> str:
    """Decodes a body. Never fails: undecodable bytes become replacement characters."""
    for bom, name in _BOMS:
        if body.startswith(bom):
            return body[len(bom) :].decode(name, errors="replace")
    declared = _declared(body, content_type)
    if declared.startswith("utf-16"):
        return body.decode(declared, errors="replace")
    try:
        return body.decode(
            "utf-8"
        )  # text in another charset is rarely valid UTF-8 by chance
    except UnicodeDecodeError as error:
        cut_at_end = error.end >= len(body) - 3 and error.start > len(body) - 4
        if declared == "utf-8" or (not declared and cut_at_end):
            return body.decode("utf-8", errors="replace")
    return body.decode(declared or "cp1252", errors="replace")


def _declared(body: bytes, content_type: str) -> str:
    """The charset that the header or the page names, by Python's name; empty if there is none or it is unknown."""
    in_header = re.search(_IN_HEADER, content_type)
    if in_header:
        known = _known(in_header[1])
        if known:
            return known
    start = body[:_SNIFFED_BYTES]
    found = re.search(_IN_XML, start) or re.search(_IN_PAGE, start)
    known = _known(found[1].decode("ascii")) if found else ""
    return (
        "utf-8" if known.startswith("utf-16") else known
    )  # a page whose own tag is readable as ASCII is not UTF-16


def is_known(name: str) -> bool:
    """Whether text in a charset of that name can be decoded without guessing."""
    return bool(_known(name))


def _known(name: str) -> str:
    plain = name.strip().lower()
    for spelling in (
        plain,
        _OTHER_NAMES.get(plain, ""),
        _PREFIX.sub("cp", plain),
        plain.removeprefix("x-"),
    ):
        try:
            found = codecs.lookup(spelling).name
        except (LookupError, ValueError):
            continue
        if found in _KNOWN.split():
            return _WIDER.get(found, found)
        return ""
    return ""
