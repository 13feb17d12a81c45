"""Files of translations: what is written is read again, mistakes are named by their line."""

import gettext
import io

import pytest

from hermes.text.po_file import PoError, PoKey, parse_po, write_mo, write_po

HEAD = "Content-Type: text/plain; charset=UTF-8\nPlural-Forms: nplurals=2; plural=(n != 1);\n"
SENTENCES = {
    PoKey("a", 'Say "hi"\nnow'): ('Sag „hallo"\njetzt',),
    PoKey("a", "{count} file", "{count} files"): ("{count} Datei", "{count} Dateien"),
    PoKey("b", "Back"): ("Zurück",),
    PoKey("", "Back"): ("Retour",),
}


def test_what_is_written_is_read_again() -> None:
    found = parse_po(write_po(SENTENCES, HEAD))
    assert found.pop(PoKey("", "")) == (HEAD,)
    assert found == SENTENCES


def test_the_standard_library_reads_the_compiled_file() -> None:
    found = gettext.GNUTranslations(io.BytesIO(write_mo(SENTENCES, HEAD)))
    assert found.pgettext("b", "Back") == "Zurück"
    assert found.gettext("Back") == "Retour"
    assert found.npgettext("a", "{count} file", "{count} files", 5) == "{count} Dateien"


def test_texts_over_several_lines_and_empty_ones() -> None:
    text = '# a comment\nmsgid ""\n"one "\n"two"\nmsgstr "eins zwei"\n\nmsgid "x"\nmsgstr ""\n'
    assert parse_po(text) == {PoKey("", "one two"): ("eins zwei",)}


@pytest.mark.parametrize("line", ["msgid x", "hello", 'msgstr "open', "msgid 3"])
def test_a_mistake_is_named_by_its_line(line: str) -> None:
    with pytest.raises(PoError, match="line 2"):
        parse_po(f"\n{line}\n")
