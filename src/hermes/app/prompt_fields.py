"""The front matter of a command or an agent: reads each key, and reports mistakes by line.

Claude Code and opencode use other names for some keys and values. Files from their folders may have keys and values
that mean nothing here. In Hermes' own files, an unknown key is an error: a mistyped `tools` must not give an agent
every tool.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from hermes.core.budget import parse_amount
from hermes.primitives.untyped import object_of
from hermes.settings.yaml_read import YamlTooDeep, parse_yaml
from hermes.text.formats import count
from hermes.text.translation import translator
from hermes.tools.project_rules import front_matter
from hermes.tools.toolsets import fits

t = translator(__name__)


_TOOL_NAMES = {
    "read": "read_file",
    "write": "write_file",
    "edit": "edit_file",
    "multiedit": "edit_file",
    "patch": "apply_patch",
    "bash": "terminal",
    "grep": "search_files",
    "glob": "list_files",
    "ls": "list_files",
    "list": "list_files",
    "webfetch": "web_fetch",
    "websearch": "web_search",
    "task": "delegate",
    "todowrite": "todo",
    "todoread": "todo",
}
"""Names that other agents give to tools."""
_MODES = {"default": "ask", "acceptedits": "auto-edit", "bypasspermissions": ""}
KNOWN_MODES = ("plan", "ask", "auto-edit", "full")
"""From the strictest to the one that asks least."""
_FOREIGN_MODES = frozenset(("subagent", "primary", "all", "dontask", "auto", ""))
_FOREIGN_MODELS = frozenset(("inherit", "sonnet", "opus", "haiku", "default"))
_AGENT_KEYS = (
    "name",
    "description",
    "model",
    "tools",
    "disallowed-tools",
    "mode",
    "budget",
    "skills",
)
_ALSO_UNDERSTOOD = (
    *("allowed-tools", "disallowedTools", "permissionMode", "maxTurns", "maxSteps"),
    *("steps", "color"),
)
"""Keys of Claude Code and opencode, for files that were copied from there."""
_BUDGET_KEYS = ("money", "tokens", "steps")
_MAX_YAML_CHARS = 64 * 1024
_MAX_STEPS = 10_000
_YAML_PLACE = re.compile(r" at byte \d+ line (\d+) column \d+$")


class FieldError(ValueError):
    """What is wrong with a file, and in which line."""

    def __init__(self, what: str, line: int = 0) -> None:
        super().__init__(what)
        self.line = line


class AgentBudget(msgspec.Struct, frozen=True):
    """The most that one turn of an agent may use. Empty and 0 mean no limit beside those of the settings."""

    money: str = ""
    tokens: str = ""
    steps: int = 0

    def __str__(self) -> str:
        steps = count(self.steps, "step") if self.steps else ""
        return ", ".join(part for part in (self.money, self.tokens, steps) if part)


class FrontMatter:
    """The keys of one file. `strict` is for our own agents: what nobody knows is an error. Raises FieldError."""

    def __init__(self, text: str, *, strict: bool) -> None:
        self.strict = strict
        head, self.body = front_matter(text)
        if strict and self.body == text and text.partition("\n")[0].strip() == "---":
            raise FieldError(t.logged("the front matter has no end: a line `---`"), 1)
        self._head = head
        found = self._parsed(head)
        self._facts = object_of(found)
        if found is not None and not isinstance(found, dict) and strict:
            raise FieldError(t.logged("expected lines like `description: TEXT`"), 2)
        if strict:
            self._check_keys()

    @staticmethod
    def _parsed(head: str) -> object:
        if not head.strip():
            return None
        try:
            return parse_yaml(head, max_expanded=_MAX_YAML_CHARS)
        except YamlTooDeep as error:
            raise FieldError(str(error), error.line + 1) from error
        except ValueError as error:
            what = (
                str(error).removeprefix("YAML parse error: ").strip()
            )  # not translated
            place = _YAML_PLACE.search(what)
            lines = head.count("\n") or 1
            line = min(int(place[1]), lines) if place else 1
            raise FieldError(_YAML_PLACE.sub("", what), line + 1) from error

    def _check_keys(self) -> None:
        for key in self._facts:
            if key not in (*_AGENT_KEYS, *_ALSO_UNDERSTOOD):
                import difflib

                near = difflib.get_close_matches(str(key), _AGENT_KEYS, 1)
                if near:
                    why = t.logged(
                        "unknown key {key!r}; did you mean {near}?",
                        key=str(key),
                        near=near[0],
                    )
                else:
                    why = t.logged(
                        "unknown key {key!r}; expected one of {keys}",
                        key=str(key),
                        keys=", ".join(_AGENT_KEYS),
                    )
                raise FieldError(why, self.line(key))

    def line(self, *keys: object) -> int:
        """The line of the file in which a key stands; 0 if none does."""
        for key in keys:
            for number, line in enumerate(self._head.splitlines(), 2):
                if re.match(rf"[\"']?{re.escape(str(key))}[\"']?\s*:", line):
                    return number
        return 0

    def get(self, *keys: str) -> object:
        """The value of the first of these keys that is there."""
        return next((self._facts[key] for key in keys if key in self._facts), None)

    def words(self, *keys: str) -> str:
        """A value as one line of text."""
        return one_line(self.get(*keys))

    def model(self) -> str:
        """The model that a file names. Other agents write `provider/model`, or words that mean nothing here."""
        name = self.words("model")
        if name.lower() in _FOREIGN_MODELS:
            return ""
        return name if ":" in name else name.replace("/", ":", 1)

    def mode(self) -> str:
        """The approval mode."""
        keys = ("mode", "permissionMode")
        name = self.words(*keys).lower()
        name = _MODES.get(name, name)
        if name in KNOWN_MODES:
            return name
        if self.strict and name not in _FOREIGN_MODES:
            expected = ", ".join(KNOWN_MODES)
            raise FieldError(
                t.logged(
                    "unknown mode {mode}; expected one of {modes}",
                    mode=repr(name),
                    modes=expected,
                ),
                self.line(*keys),
            )
        return ""

    def tools(self) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
        """The tools that are named (None for all), and those that are ruled out: a list, a text with commas, or names
        with yes and no."""
        value = self.get("tools", "allowed-tools")
        named, without = _tools(value)
        is_known = value is None or isinstance(value, (str, list, dict))
        if self.strict and not is_known:
            raise FieldError(t.logged("expected a list of tools, such as [files, web_fetch]"), self.line("tools"))  # fmt: skip
        refused, _ = _tools(self.get("disallowed-tools", "disallowedTools"))
        return named, (*without, *(refused or ()))

    def skills(self) -> tuple[str, ...]:
        """The skills that are in the prompt from the start."""
        value = self.get("skills")
        if isinstance(value, str):
            value = value.split(",")
        if not isinstance(value, list):
            return ()
        return tuple(dict.fromkeys(name for one in value if (name := str(one).strip())))

    def budget(self) -> AgentBudget:
        """What one turn may use."""
        value = self.get("budget")
        try:
            if isinstance(value, dict):
                return _budget(value)
            named = AgentBudget() if value is None else _amount(one_line(value))
        except ValueError as error:
            if self.strict:
                raise FieldError(f"budget: {error}", self.line("budget")) from error
            named = AgentBudget()
        steps = self.get("maxTurns", "maxSteps", "steps")
        if isinstance(steps, int) and 0 < steps <= _MAX_STEPS:
            return msgspec.structs.replace(named, steps=steps)
        return named


def _budget(value: Mapping[Any, Any]) -> AgentBudget:
    """Raises ValueError."""
    unknown = [str(key) for key in value if key not in _BUDGET_KEYS]
    if unknown:
        expected = ", ".join(_BUDGET_KEYS)
        raise ValueError(
            t.logged(
                "unknown key {unknown}; expected one of {expected}",
                unknown=repr(unknown[0]),
                expected=expected,
            )
        )
    money, tokens, steps = (value.get(key, "") for key in _BUDGET_KEYS)
    is_number = isinstance(steps, int) and not isinstance(steps, bool)
    if steps != "" and not (is_number and 0 < steps <= _MAX_STEPS):
        raise ValueError(
            t.logged("steps must be a number from 1 to {most}", most=_MAX_STEPS)
        )
    return AgentBudget(_money(money), _token_count(tokens), steps or 0)


def _money(value: object) -> str:
    """Raises ValueError."""
    if value == "":
        return ""
    amount = value if isinstance(value, str) else f"${value}"
    if parse_amount(amount)[0] != "usd":
        raise ValueError(
            t.logged(
                "{amount} is not an amount of money: write $0.50", amount=repr(amount)
            )
        )
    return amount


def _token_count(value: object) -> str:
    """Raises ValueError."""
    if value == "":
        return ""
    amount = str(value) if "token" in str(value) else f"{value} tokens"
    if parse_amount(amount)[0] != "tokens":
        raise ValueError(
            t.logged(
                "{amount} is not a number of tokens: write 200k", amount=repr(amount)
            )
        )
    return amount


def _amount(text: str) -> AgentBudget:
    """`$0.50` or `200k tokens`. Raises ValueError."""
    unit, _ = parse_amount(text)
    if unit == "usd":
        return AgentBudget(money=text)
    return AgentBudget(tokens=text)


def one_line(value: object) -> str:
    """A value of YAML as one line."""
    if isinstance(value, list):
        return " ".join(map(str, value))
    if value or value == 0:
        return " ".join(str(value).split())[:200]
    return ""


def _tools(value: object) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    if isinstance(value, str):
        value = [part for part in value.split(",") if part.strip()]
    if isinstance(value, dict):
        off = tuple(_tool(str(name)) for name, on in value.items() if on is False)
        on = tuple(_tool(str(name)) for name, on in value.items() if on is True)
        if "*" in off:  # opencode: nothing but what is switched on
            return on, tuple(name for name in off if name != "*")
        return None, off
    if isinstance(value, list):
        return tuple(dict.fromkeys(_tool(str(one)) for one in value)), ()
    return None, ()


def _tool(name: str) -> str:
    """Our name of a tool. `Bash(git diff:*)` is the terminal: the policy judges what it runs."""
    plain = name.partition("(")[0].strip()
    if plain.startswith("mcp__"):  # Claude Code's names of MCP tools
        server, _, tool = plain.removeprefix("mcp__").partition("__")
        return f"mcp.{server}.{tool or '*'}"
    return _TOOL_NAMES.get(plain.lower(), plain)


def names_tool(entry: str, name: str) -> bool:
    """Whether an entry means this tool: by its name, a pattern, its toolset, or the MCP server that it comes from."""
    if fits(entry, name):
        return True
    server = entry.removeprefix("mcp.")
    return name.startswith(f"mcp.{server}.")
