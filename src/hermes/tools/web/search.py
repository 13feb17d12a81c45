"""What `web_search` does: it asks a search service. Which one is a setting, or whichever has a key; one needs none."""

from collections.abc import Sequence

from hermes.core.ports import ToolContext
from hermes.errors import ToolFailed
from hermes.schema.tools import ToolResult
from hermes.tools.web.backends.backend import Backend, WebResult
from hermes.tools.web.invisible import one_line


class Searcher:
    """Asks the backends in turn until one answers."""

    def __init__(self, backends: Sequence[Backend]) -> None:
        self._backends = tuple(backends)

    async def search(self, context: ToolContext, query: str, count: int) -> ToolResult:
        """What the first service that answers has found."""
        problems: list[str] = []
        for backend in self._backends:
            context.show(f"Asking {backend.name}\n")
            try:
                hits = await backend.search(query, count)
            except ToolFailed as error:
                problems.append(f"{backend.name}: {error.message} {error.hint}".strip())
                continue
            return ToolResult(
                text=_listed(hits[:count], problems), source=f"{backend.name} search"
            )
        raise ToolFailed("No search service answered. " + " ".join(problems))


def _listed(hits: Sequence[WebResult], problems: Sequence[str]) -> str:
    lines = [f"({problem} Asked the next one.)" for problem in problems]
    for number, hit in enumerate(hits, 1):
        when = f" ({one_line(hit.date, 40)})" if hit.date else ""
        lines.append(
            f"{number}. {one_line(hit.title, 200) or '(no title)'}{when}\n   {one_line(hit.url, 1000)}"
        )
        if hit.excerpt.strip():
            lines.append(f"   {one_line(hit.excerpt, 500)}")
    return "\n".join(lines) if hits else "\n".join([*lines, "Nothing was found."])
