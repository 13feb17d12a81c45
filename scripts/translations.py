"""Keep the translations in `src/hermes/locales` complete: `check` them (the default), or `update` them.

Every sentence comes from the code: from calls of a module's `t(...)` in Python and on the page, and from the command
table. `update` adds new sentences to each language (untranslated), drops those that are gone, and compiles the files.
`check` fails if a language lacks a sentence, has other placeholders or a wrong number of plural forms, or if a module of
any package has a sentence outside the catalogue. `NOT_MOVED` lists the modules that still do, with the number of such
sentences; it may only shrink. `export` prints what a language lacks as JSON, `import FILE` adds such a file.
"""

import argparse
import gc
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from compile_locales import LOCALES, compile_locales
from hermes.text.po_file import PoKey, parse_po, write_po
from hermes.text.translation import LANGUAGES
from loose_sentences import (
    ENGLISH,
    NOT_FOR_PEOPLE,
    loose_in_errors,
    loose_in_javascript,
    loose_in_python,
    loose_in_reasons,
)
from sentences import ROOT, every_sentence, placeholders

NOT_MOVED = ROOT / "scripts" / "not_translated.txt"
CODES = [code for code in LANGUAGES if code != "en"]
_SURFACES = ("src/hermes/commands/", "src/hermes/surfaces/")

_ONE = "nplurals=1; plural=0;"
_NOT_ONE = "nplurals=2; plural=(n != 1);"
_ABOVE_ONE = "nplurals=2; plural=(n > 1);"
_SLAVIC = "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 && (n%100<12 || n%100>14) ? 1 : 2);"
_IRISH = (
    "nplurals=5; plural=(n==1 ? 0 : n==2 ? 1 : n>2 && n<7 ? 2 : n>6 && n<11 ? 3 : 4);"
)
_ARABIC = "nplurals=6; plural=(n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 : n%100>=11 ? 4 : 5);"
PLURALS = {
    **dict.fromkeys(("zh", "zh-hant", "ja", "ko"), _ONE),
    **dict.fromkeys(("de", "es", "tr", "af", "it", "hu"), _NOT_ONE),
    **dict.fromkeys(("fr", "pt"), _ABOVE_ONE),
    **dict.fromkeys(("uk", "ru"), _SLAVIC),
    "ga": _IRISH,
    "ar": _ARABIC,
}
"""The plural rules of the CLDR, in gettext's notation."""


def header(code: str) -> str:
    return (
        f"Language: {code}\nMIME-Version: 1.0\nContent-Type: text/plain; charset=UTF-8\n"
        f"Content-Transfer-Encoding: 8bit\nPlural-Forms: {PLURALS[code]}\n"
    )


def form_count(code: str) -> int:
    """The number of plural forms in a language."""
    return int(PLURALS[code].partition("=")[2].partition(";")[0])


def read(code: str) -> dict[PoKey, tuple[str, ...]]:
    """Return the translations in a language's file; empty if there is no file."""
    path = LOCALES / f"{code}.po"
    found = parse_po(path.read_text("utf-8")) if path.exists() else {}
    found.pop(PoKey("", ""), None)
    return found


def missing(code: str, sentences: list[PoKey]) -> list[PoKey]:
    have = read(code)
    return [key for key in sentences if key not in have]


def problems_of(code: str, sentences: list[PoKey]) -> Iterator[str]:
    """Yield the problems of one language."""
    have = read(code)
    for key in sentences:
        forms = have.get(key)
        where = f"{code}: {key.context}: {key.text!r}"
        if forms is None:
            yield f"{where} is not translated"
            continue
        expected = form_count(code) if key.plural else 1
        if len(forms) != expected:
            yield f"{where} has {len(forms)} forms, not {expected}"
        yield from (f"{where}: {why}" for form in forms for why in _wrong(key, form))
    yield from (
        f"{code}: {key.context}: {key.text!r} is no longer in the code"
        for key in have.keys() - set(sentences)
    )


def _wrong(key: PoKey, form: str) -> Iterator[str]:
    """Yield the problems of a translation. A plural form may omit the number, as in `one file`."""
    needed = placeholders(key.plural or key.text)
    found = placeholders(form)
    optional = {"count"} if key.plural else set()
    if {name for name in needed ^ found if name.partition(":")[0] not in optional}:
        yield f"has the placeholders {sorted(found)}, not {sorted(needed)}"
    if form.strip() != form and key.text.strip() == key.text:
        yield "begins or ends with a space"
    if (form.count("\n") > 0) != (key.text.count("\n") > 0):
        yield "has line breaks where the sentence has none, or none where it has"


def update(
    sentences: list[PoKey], added: Mapping[str, Mapping[PoKey, tuple[str, ...]]]
) -> None:
    """Write and compile every language, with the translations `added` to each."""
    for code in CODES:
        have = {**read(code), **added.get(code, {})}
        # Start with the translation of the same sentence in another module.
        same = {(key.text, key.plural): forms for key, forms in have.items()}
        for key in sentences:
            if key not in have and (forms := same.get((key.text, key.plural))):
                have[key] = forms
        empty = {
            key: ("",) * (form_count(code) if key.plural else 1) for key in sentences
        }
        listed = {key: have.get(key, empty[key]) for key in sentences}
        (LOCALES / f"{code}.po").write_text(write_po(listed, header(code)), "utf-8")
    compile_locales(LOCALES)


def loose_sentences(root: Path = ROOT) -> dict[str, list[str]]:
    """The sentences outside the catalogue, by module. Modules without any are left out."""
    found: dict[str, list[str]] = {}
    source_folder = root / "src" / "hermes"
    for path in sorted(source_folder.rglob("*.py")):
        name = path.relative_to(root).as_posix()
        if name.startswith(tuple(ENGLISH)):
            continue
        source = path.read_text("utf-8")
        loose = loose_in_reasons(source)
        if not name.startswith(_SURFACES):
            loose += loose_in_errors(source)
        if not name.startswith(tuple(NOT_FOR_PEOPLE)):
            loose += loose_in_python(source)
        if loose:
            found[name] = list(dict.fromkeys(loose))
    page = source_folder / "surfaces" / "dashboard" / "static"
    for path in sorted(page.rglob("*.js")):
        if "vendor" in path.parts:
            continue
        if loose := loose_in_javascript(path.read_text("utf-8")):
            found[path.relative_to(root).as_posix()] = loose
    return found


def not_moved() -> dict[str, int]:
    """The listed modules with sentences outside the catalogue, and how many each may have."""
    lines = NOT_MOVED.read_text("utf-8").splitlines() if NOT_MOVED.exists() else []
    rows = [line.split() for line in lines if line and not line.startswith("#")]
    return {path: int(number) for path, number in rows}


def loose_problems(
    loose: Mapping[str, list[str]], listed: Mapping[str, int]
) -> Iterator[str]:
    """Yield a problem for each module with more or fewer sentences outside the catalogue than listed."""
    for path in sorted({*loose, *listed}):
        found, known = loose.get(path, []), listed.get(path, 0)
        if len(found) > known:
            yield from (f"{path}: outside the catalogue: {one}" for one in found)
        elif len(found) < known:
            yield f"{NOT_MOVED.name}: {path} has {len(found)} sentences outside the catalogue, not {known}: lower the number"


def check(sentences: list[PoKey]) -> list[str]:
    problems = [one for code in CODES for one in problems_of(code, sentences)]
    return [*problems, *loose_problems(loose_sentences(), not_moved())]


def exported(code: str, sentences: list[PoKey]) -> str:
    rows = [list(key) for key in missing(code, sentences)]
    return json.dumps(rows, ensure_ascii=False, indent=0)


def imported(path: Path) -> dict[str, dict[PoKey, tuple[str, ...]]]:
    """Read {language: [[context, text, plural, form, ...], ...]}."""
    data = json.loads(path.read_text("utf-8"))
    return {
        code: {PoKey(*row[:3]): tuple(row[3:]) for row in rows}
        for code, rows in data.items()
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    actions = ("check", "update", "export", "import", "loose", "list")
    parser.add_argument("action", nargs="?", default="check", choices=actions)
    parser.add_argument(
        "value", nargs="?", default="", help="a file, module or language"
    )
    given = parser.parse_args()
    gc.disable()  # syntax trees have no cycles, and there are many
    sentences = every_sentence()
    match given.action:
        case "update":
            update(sentences, {})
        case "import":
            update(sentences, imported(Path(given.value)))
        case "export":
            print(exported(given.value or "de", sentences))
        case "loose":
            for path, found in loose_sentences().items():
                if given.value in path:
                    print("\n".join(f"{path}: {one}" for one in found))
        case "list":
            about = "# Modules with sentences outside the catalogue, and how many. This list may only shrink.\n"
            rows = [f"{path} {len(one)}" for path, one in loose_sentences().items()]
            NOT_MOVED.write_text(about + "\n".join(rows) + "\n", "utf-8")
        case _:
            problems = check(sentences)
            sys.stderr.write("".join(f"{one}\n" for one in problems[:100]))
            print(
                f"{len(sentences)} sentences, {len(CODES)} languages, {len(problems)} problems."
            )
            return 1 if problems else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
