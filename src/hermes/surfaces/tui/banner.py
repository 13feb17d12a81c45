"""The first lines of a chat: the model, its limits, the session and the most important keys."""

from collections.abc import Iterator

from hermes import __version__
from hermes.codex.engine_choice import CODEX
from hermes.providers.routing import ModelRoute
from hermes.surfaces.terminal.style import Style
from hermes.surfaces.terminal.text import clean, wrap
from hermes.text.translation import to_translate, translator

t = translator(__name__)

HONEST = to_translate(
    "A small local model for simple file tasks. It is often wrong on facts and advice, and may claim things it did not"
    " do. Nothing leaves this machine."
)
LARGER = to_translate("Connect a larger model: /setup")
RUN_BY_CODEX = to_translate(
    "Codex runs your turns: your messages, and what it reads for you, go to the model configured in codex."
    " To switch back to Hermes: /codex-runtime off"
)


def banner(
    model: ModelRoute,
    session: str,
    style: Style,
    columns: int,
    *,
    resumed: bool,
    facts: str = "",
) -> Iterator[str]:
    """Yields the lines, each at most `columns` wide."""
    yield from wrap(
        f"Hermes {__version__} · {_name(model)}".rstrip(),
        columns,
    )
    if model.provider == CODEX:
        yield from wrap(t.marked(RUN_BY_CODEX), columns)
    elif model.embedded:
        yield from (style.yellow(line) for line in wrap(t.marked(HONEST), columns))
        yield t.marked(LARGER)
    if facts:
        yield from (style.dim(line) for line in wrap(clean(facts), columns))
    kind = t("Resuming session") if resumed else t("Session")
    yield from (style.dim(line) for line in wrap(f"{kind} {session}", columns))
    yield from (
        style.dim(line)
        for line in wrap(
            t("/help for commands, Ctrl-C interrupts, Ctrl-D quits"), columns
        )
    )
    yield ""


def _name(model: ModelRoute) -> str:
    if not model.embedded:
        return f"{model.provider} {model.model}"
    from hermes.providers.local_model import full_name

    return full_name(model.model)
