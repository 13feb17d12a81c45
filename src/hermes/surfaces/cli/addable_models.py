"""`hermes model add` without a name: the local models that this machine can have, the best first."""

from pathlib import Path

from hermes.app.model_sources import choose_download, find_files
from hermes.providers.embedded import (
    CATALOGUE,
    KnownModel,
    LocalWeights,
    find,
    size_text,
)
from hermes.surfaces.terminal.style import stdout_style
from hermes.surfaces.terminal.weights_download import local_models, models_folder
from hermes.text.translation import translator

t = translator(__name__)


_NAME_COLUMNS = 28


def print_addable_models() -> None:
    """Prints the model files on this disk, then the models that Hermes knows, and which of them fits and why."""
    files, choice = find_files(), choose_download()
    style = stdout_style()
    if files:
        print(style.bold(t("On this machine already, of other programs:")))
        for one in files:
            _print_file(one)
        print()
    print(style.bold(t("Local models that Hermes knows:")))
    for entry in local_models().values():
        _print_entry(entry, is_best=entry.id == choice.entry.id)
    print(t("\n* fits this machine best. {sentence}", sentence=choice.sentence))
    print(t("To add one: hermes model add NAME, or the path of a GGUF file"))


def _print_file(one: LocalWeights) -> None:
    billions = one.facts.parameters / 1e9
    about = t(
        "{billions:.1f}B parameters, {size}, from {program}",
        billions=billions,
        size=size_text(one.size),
        program=one.program,
    )
    print(f"  {one.name:{_NAME_COLUMNS}}{about}")
    print(f"  {'':{_NAME_COLUMNS}}hermes model add {_quoted(one.path)}")


def _print_entry(entry: KnownModel, *, is_best: bool) -> None:
    is_here = find(entry, models_folder()) is not None
    size = size_text(entry.size)
    state = t("downloaded") if is_here else t("{size} to download", size=size)
    about = entry.description
    if entry.purpose:
        about = t("{model}, for {purpose}", model=about, purpose=entry.shown_purpose)
    mark = "*" if is_best and entry.id in CATALOGUE else " "
    print(f"{mark} {entry.id:{_NAME_COLUMNS}}{about}; {state}")


def _quoted(path: Path) -> str:
    import shlex

    return shlex.quote(str(path))
