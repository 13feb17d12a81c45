"""Checks what the model says it did against what ran. A sentence that contradicts the log is not shown."""

import re
from collections.abc import Iterator

from hermes.providers.embedded.conversation import CallStep, RequestExchange
from hermes.providers.embedded.folder_view import named_files

_DONE = (
    "add|append|appli|appl|bump|chang|commit|copi|correct|creat|delet|edit|fix|format|improv|insert|install|modif|mov|"
    "refactor|remov|renam|repair|replac|rewr|sav|set|stor|updat|wr|writ|mad"
)


def _claim(auxiliaries: str) -> re.Pattern[str]:
    """Returns a pattern of sentences that say that something was done. A relative clause only describes."""
    return re.compile(
        rf"\b(?:I|we)(?:'ve| have)?(?: also| now| just| successfully)* "
        rf"(?:{_DONE})(?:\w*ed|t|ten|ote|otten|de|et)?\b(?! (?:to|not|no)\b)"
        rf"|(?<!\bthat )(?<!\bwhich )\b(?:{auxiliaries})(?: now| been| successfully| already)* (?:{_DONE})(?:\w*ed|ten)\b"
        r"|\bis now\b|\bare now\b|\bnow (?:has|holds|contains|returns|prints|divides|works)\b|\bto fix (?:it|this|the \w+), I\b"
        r"|\bich habe\b.*\b(?:geändert|hinzugefügt|erstellt|gelöscht|korrigiert|gespeichert|umbenannt)"
        r"|\bj'ai (?:ajouté|modifié|créé|supprimé|corrigé|renommé)|\bhe (?:añadido|cambiado|creado|eliminado|corregido)",
        re.IGNORECASE,
    )


_CLAIM = _claim("has|have|was|were|is|are")
_TALK_CLAIM = _claim("has|have|was|were")  # "settings are stored in a file" explains
_TESTS_PASS = re.compile(r"\btests?\b[^.]{0,30}\b(?:pass|succeed)", re.IGNORECASE)
_ABOUT_FILES = re.compile(
    r"\b(?:file|folder|directory|reminder|to-do|Datei|Ordner|fichier|archivo)\b",
    re.IGNORECASE,
)
_NO_FILE = re.compile(
    r"\bthere (?:is|are|was) no (?:such |[\w'-]+ )?(?:files?|folders?|director(?:y|ies))\b|\bno such (?:file|folder)\b"
    r"|\bfile\b[^.]{0,40}\b(?:does not|doesn't) exist\b",
    re.IGNORECASE,
)
_ABOUT_FOLDER = re.compile(
    r"\b(?:files?|folders?|director\w*|project|repo\w*|code|here|tests?|Datei\w*|Ordner|fichiers?|dossier|archivos?|carpeta)\b",
    re.IGNORECASE,
)
_DENIAL = re.compile(
    r"\b(?:not|n't|no|never|nothing|could|would|should|if|once|nicht|pas|no)\b",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
_FAILED = re.compile(r"\b[1-9]\d* (?:failed|error)|\bFAILED\b|Traceback", re.IGNORECASE)
_TESTED = re.compile(r"test|spec|\bpass(?:ed|es)?\b|\bok\b", re.IGNORECASE)
_CHANGING = frozenset(("write", "append", "replace", "run", "todo"))
_HELP = (
    "Name the file and the exact change, or connect a larger model with `hermes setup`."
)


def sentences(text: str) -> Iterator[str]:
    """Yields the sentences of a text, each with the whitespace after it; joined, they are the text again."""
    start = 0
    for end in _SENTENCE_END.finditer(text):
        yield text[start : end.end()]
        start = end.end()
    if start < len(text):
        yield text[start:]


def is_false_claim(sentence: str, exchange: RequestExchange) -> bool:
    """Returns whether a sentence claims that something was done which the log does not show."""
    if _DENIAL.search(sentence):
        return False
    changed = [step for step in exchange.steps if _changed(step)]
    if _TESTS_PASS.search(sentence):
        return not _tests_passed(exchange.steps)
    if _CLAIM.search(sentence) is None:
        return False
    if not changed:
        return True
    names = named_files(sentence)
    touched = " ".join(step.line for step in changed)
    return bool(names) and not any(name in touched for name in names)


def talk_claims_a_change(text: str) -> bool:
    """Returns whether an answer that ran no tools claims to have changed a file."""
    return any(
        _TALK_CLAIM.search(sentence)
        and not _DENIAL.search(sentence)
        and (named_files(sentence) or _ABOUT_FILES.search(sentence))
        for sentence in sentences(text)
    )


def misses_what_nobody_named(answer: str, request: str) -> bool:
    """Returns whether an answer mentions a missing file although the request is not about files."""
    if named_files(request) or _ABOUT_FOLDER.search(request):
        return False
    return _NO_FILE.search(answer) is not None


def honest_ending(exchange: RequestExchange) -> str:
    """Returns the text that replaces a false claim."""
    changed = [step for step in exchange.steps if _changed(step)]
    failed = [step for step in exchange.steps if not step.ok and step.result.strip()]
    if changed:
        done = "; ".join(dict.fromkeys(_short(step) for step in changed))
        return f"What was really done: {done}. Nothing else was changed or checked."
    if failed:
        reason = failed[-1].result.strip().splitlines()[0].rstrip(".")
        return f"Nothing was changed: {reason}. {_HELP}"
    return f"I have not changed anything. {_HELP}"


def _changed(step: CallStep) -> bool:
    return step.ok and step.action is not None and step.action.verb in _CHANGING


def _tests_passed(steps: tuple[CallStep, ...]) -> bool:
    """Returns whether a command that looks like a test ran after the last change and shows no failure."""
    for step in reversed(steps):
        verb = step.action.verb if step.action is not None else ""
        if verb == "run" and step.ok:
            is_test = _TESTED.search(f"{step.line}\n{step.result}") is not None
            return is_test and _FAILED.search(step.result) is None
        if verb in _CHANGING and step.ok:
            return False
    return False


def _short(step: CallStep) -> str:
    line = step.line.partition("\n")[0].rstrip(":")
    return line if len(line) <= 80 else line[:79] + "…"
