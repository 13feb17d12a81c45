"""What an agent's file means for a session: its tools, skills and caps, checked against what there is."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from hermes.app.prompt_files import PromptFile
from hermes.core.budget import Cap, parse_amount
from hermes.errors import HermesError, SettingsError, in_sentences
from hermes.text.translation import translator

t = translator(__name__)


_Value = TypeVar("_Value")
MAX_LISTED_AGENTS = 40
"""The most agents that are named to a model."""


def tools_of(file: PromptFile, tools: Mapping[str, _Value]) -> dict[str, _Value]:
    """Those of a session's tools that an agent may use. Raises SettingsError if its file names tools, and none exists."""
    offered = file.offered(tools)
    if file.tools and not offered:
        names = ", ".join(file.tools)
        raise SettingsError(
            t.later(
                "{place}: the agent {name} would have no tools. This session has none of: {names}.",
                place=file.place("tools"),
                name=file.name,
                names=names,
            ),
            hint=t.later("See the names with: hermes tools"),
        )
    return offered


def skill_texts(file: PromptFile, view: Callable[[str], str]) -> list[str]:
    """The text of each of an agent's skills. Raises SettingsError if one is not there."""
    found: list[str] = []
    for name in file.skills:
        try:
            text = view(name)
        except HermesError as error:
            raise SettingsError(
                f"{file.place('skills')}: {in_sentences(error)}",
                hint=t.later("See: hermes skills list"),
            ) from error
        found.append(f'<skill name="{name}">\n{text}\n</skill>')
    return found


def caps_of(file: PromptFile) -> list[Cap]:
    """What one turn of an agent may use."""
    hint = t.later("Raise it in {place}.", place=file.place("budget"))
    caps: list[Cap] = []
    for text in filter(None, (file.budget.money, file.budget.tokens)):
        unit, limit = parse_amount(text)
        owner = f"the agent {file.name}"
        caps.append(Cap("turn", unit, limit, owner=owner, hint=hint))
    return caps


def listed_agents(files: list[PromptFile], without: str = "") -> list[tuple[str, str]]:
    """The agents that a task can be given to, each with its description. The built-in ones have commands of their own."""
    usable = (one for one in files if one.is_usable and one.path and one.name != without)  # fmt: skip
    return [(one.name, one.description) for one in usable][:MAX_LISTED_AGENTS]
