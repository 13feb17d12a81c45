"""The effect of reading, writing, emptying or removing the file that a word names."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from hermes.text.translation import translator
from hermes.tools.policy.effects import (
    WORK,
    Effect,
    Level,
    asks,
    forbidden,
    worst,
)
from hermes.tools.policy.paths import (
    TEMPORARY,
    PathContext,
    is_elsewhere,
    is_endless,
    is_stream,
)
from hermes.tools.policy.shell_words import Word
from hermes.tools.sensitive import is_build_product

t = translator(__name__)

_EXPOSING_NAME = r"(SECRET|TOKEN|PASSW|API_?KEY|CREDENTIAL|PRIVATE_?KEY)"
_SECRET_VARIABLE = rf"(?i)\$\{{?!?\w*{_EXPOSING_NAME}"
_EXPOSING_FILES = "id_rsa id_ed25519 shadow sudoers .netrc .env credentials .git-credentials .npmrc"  # not translated
_WORTH_KEEPING = (
    r"(?i)\.(py|pyi|js|jsx|ts|tsx|go|rs|c|h|cc|cpp|hpp|java|kt|swift|rb|php|cs|scala|clj|ex|exs|hs|ml|lua|pl|r|jl|sql|md|rst"
    r"|toml|ya?ml|json|ini|cfg|html|css|scss|vue|svelte|sh|db|sqlite3?|csv|xlsx?|docx?|pdf|parquet|ipynb)$"
)


def secret_reason(context: PathContext, word: Word) -> str:
    """Why reading the file a word names needs approval; empty if it does not."""
    if not word.known and re.search(_SECRET_VARIABLE, word.text):
        return t.logged("it shows a password, key or token")
    for spelled in _spelled_paths(word):
        paths = context.paths(spelled)
        files = [path for path in paths if not _is_stream_or_source(path)]
        reason = context.guard.secret(files, context.workspace)
        if reason:
            return reason
        if word.pattern and any(_may_match_secret(path.name) for path in paths):
            return t.logged(
                "{pattern} may stand for files that hold secrets", pattern=word.text
            )
    return ""


def _spelled_paths(word: Word) -> Iterator[Word]:
    """A word, and each part of it that may be a path: after `=`, `@` or `:`."""
    yield word
    text = word.text
    parts = [text.partition("="), text.partition("@"), text.rpartition(":")]
    for _, sign, rest in parts:
        if sign and rest and not rest.startswith("//"):
            yield Word(rest, word.known, word.pattern, tilde=rest.startswith("~"))


def _is_stream_or_source(path: Path) -> bool:
    return is_stream(str(path)) or is_endless(str(path))


def _may_match_secret(pattern: str) -> bool:
    literal = re.sub(r"\[.*?\]|[*?]", "", pattern)
    return len(literal) >= 2 and any(
        fnmatchcase(name, pattern) for name in _EXPOSING_FILES.split()
    )


def read_files(words: Iterable[Word], context: PathContext) -> Effect:
    """Reading files. Secrets need approval."""
    reasons = [secret_reason(context, word) for word in words]
    return worst(asks(reason) for reason in reasons if reason)


def write_files(words: Iterable[Word], context: PathContext) -> Effect:
    """Creating or changing files."""
    return worst([WORK, *_protected(words, context)])


def _protected(words: Iterable[Word], context: PathContext) -> Iterator[Effect]:
    """The effects of writing outside the workspace, or to files that can change what runs later."""
    for word in words:
        effect = _protection(word, context)
        if effect is not None:
            yield effect


def _protection(word: Word, context: PathContext) -> Effect | None:
    if is_stream(word.text):
        return None
    paths = context.paths(word)
    if rule := _project_rule(paths, context):
        return rule
    for path in paths:
        inside = context.is_inside(path)
        if context.is_temporary(path) and not inside:
            continue
        reason = context.guard.write_reason((path,), context.workspace)
        is_new_secret = (
            inside and context.guard.only_private(path) and not path.exists()
        )
        if reason and not is_new_secret:
            once = bool(context.guard.protected_reason(paths, context.workspace))
            return Effect(Level.ASK, reason, "workspace" if inside else "machine", once)
    return None


def _project_rule(paths: Iterable[Path], context: PathContext) -> Effect | None:
    """The refusal if the project's rules protect one of these paths; None if they don't."""
    if context.protects is None:
        return None
    found = next(filter(None, map(context.protects, paths)), "")
    if not found:
        return None
    return forbidden(t.logged("the project's rules protect {rule}", rule=found))


def remove_files(words: Sequence[Word], context: PathContext) -> Effect:
    """Removing files."""
    paths = [path for word in words for path in context.paths(word)]
    if rule := _project_rule(paths, context):
        return rule
    if all(is_expendable(context, word) for word in words):
        return WORK
    if any(is_elsewhere(context, word) for word in words):
        return asks("it deletes files outside the workspace", "machine")
    return asks("it deletes files that you may not be able to recover")


def empty_files(words: Sequence[Word], context: PathContext) -> Effect:
    """Discarding the content of files."""
    matters = [
        word for word in words if word.known and not is_expendable(context, word)
    ]
    emptied = [asks("it empties a file")] if matters else []
    return worst([WORK, *_protected(words, context), *emptied])


def replace_files(words: Sequence[Word], context: PathContext) -> Effect:
    """Writing output over files."""
    replaced = [
        asks(t.logged("it replaces the existing file {name}", name=path.name))
        for word in words
        for path in context.paths(word)
        if re.search(_WORTH_KEEPING, path.name)
        and not is_expendable(context, word)
        and _has_content(path)
    ]
    return worst([WORK, *_protected(words, context), *replaced])


def _has_content(path: Path) -> bool:
    try:
        return path.is_file() and path.stat().st_size > 0
    except OSError:
        return True


FILE_EFFECTS: dict[str, Callable[[Sequence[Word], PathContext], Effect]] = {
    "read": read_files,
    "write": write_files,
    "remove": remove_files,
    "empty": empty_files,
    "replace": replace_files,
}
"""What happens to files, by the value of a program's `operands` or `target` field."""


def is_expendable(context: PathContext, word: Word) -> bool:
    """Whether a word surely names something temporary, or something that a build creates again."""
    paths = context.paths(word)
    return (
        bool(paths)
        and word.known
        and all(_is_expendable(context, path) for path in paths)
    )


def _is_expendable(context: PathContext, path: Path) -> bool:
    if context.is_inside(path):
        relative = path.relative_to(context.workspace)
        return path != context.workspace and is_build_product(relative)
    is_whole_folder = path in TEMPORARY or path.name in ("*", ".*")
    return context.is_temporary(path) and not is_whole_folder
