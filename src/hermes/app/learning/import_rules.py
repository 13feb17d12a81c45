"""Converts permissions of Claude Code and codex to rules of `policy.yaml`.

What another agent denies is forbidden here. What it allows is checked against the policy first: a rule is not imported
if it would allow what the policy forbids, or what the policy always asks about.
"""

import ast
import itertools
import re
import shlex
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from hermes.app.learning.import_plan import PlannedRule
from hermes.learning.change import LearningError
from hermes.learning.imports.claude_code import SETTINGS_NAMES
from hermes.learning.imports.json_fields import Object
from hermes.learning.imports.openclaw import read_json5, read_small
from hermes.learning.imports.sources import SkippedItem
from hermes.primitives.files import PRIVATE_FILE, replace_file
from hermes.primitives.untyped import list_in, object_in
from hermes.settings.key_shapes import is_secret_value
from hermes.text.translation import translator
from hermes.tools.policy import ApprovalPolicy, Circumstances, RuleFile
from hermes.tools.policy.rules import List, PolicyRule

t = translator(__name__)


_MAX_RULES = 1_000
_MAX_CHOICES = 50  # of one rule of codex
_CLAUDE_LISTS: tuple[tuple[str, List], ...] = (
    ("deny", "forbid"),
    ("ask", "ask"),
    ("allow", "allow"),
)
_CODEX_DECISIONS: dict[str, List] = {
    "forbidden": "forbid",
    "prompt": "ask",
    "allow": "allow",
}
_FILE_TOOLS = ("Read", "Edit", "Write", "MultiEdit", "NotebookEdit")
_NEVER_ALLOWED = ("rm -rf /", "-c 'rm -rf /'", "-rf /", "/ -delete")
"""Endings of commands that the policy forbids if the program of a rule acts on them."""
_SHELL_SIGNS = re.compile(r"[|&;<>$`(){}\n\\*?\[\]]")


class ForeignRule(msgspec.Struct, frozen=True):
    """A permission of another agent: its list here, its original text, and the resulting rule."""

    list: List
    original: str
    rule: PolicyRule


def claude_rules(source: Path, left: list[SkippedItem]) -> list[ForeignRule]:
    """Returns the permissions in the settings of Claude Code."""
    found: list[ForeignRule] = []
    for name in SETTINGS_NAMES if source.is_dir() else ():
        try:
            permissions = object_in(read_json5(source / name), "permissions")
        except LearningError as error:
            left.append(SkippedItem(name, error.message))
            continue
        for theirs, title in _CLAUDE_LISTS:
            for text in list_in(permissions, theirs)[:_MAX_RULES]:
                found += _translated(title, str(text)[:500], left)
        if permissions.get("defaultMode") == "bypassPermissions":
            left.append(
                SkippedItem(
                    "bypassPermissions", t.logged("no rule allows everything here")
                )
            )
    return found


def _translated(
    title: List, text: str, left: list[SkippedItem]
) -> Iterator[ForeignRule]:
    try:
        made, rule = _claude_rule(title, text.strip())
        yield ForeignRule(made, text, rule)
    except ValueError as error:
        left.append(SkippedItem(f"{title} {text}", str(error)))


def _claude_rule(title: List, text: str) -> tuple[List, PolicyRule]:
    """Returns the rule for one permission. Raises ValueError with the reason if there is none."""
    shape = re.fullmatch(r"(\w+)(?:\((.*)\))?", text, re.DOTALL)
    if shape is None:
        raise ValueError(t.logged("it is no permission"))
    tool, inside = shape[1], (shape[2] or "").strip()
    if tool.startswith("mcp__"):
        return title, _mcp_rule(tool)
    if tool == "Bash":
        return title, _command_rule(title, inside)
    if tool == "WebFetch" and inside.startswith("domain:"):
        host = inside.removeprefix("domain:").strip().lower()
        if not re.fullmatch(r"[a-z0-9.-]+", host):
            raise ValueError(t.logged("a host here is a name without patterns"))
        return "network" if title == "allow" else title, PolicyRule(host=host)
    if tool in _FILE_TOOLS and inside:
        return title, PolicyRule(path=_path(inside))
    raise ValueError(t.logged("there is no such rule here"))


def _mcp_rule(tool: str) -> PolicyRule:
    _, server, *name = tool.split("__")
    if not name or not all(name):
        raise ValueError(t.logged("a rule here names one tool of a server"))
    return PolicyRule(tool=f"mcp.{server}.{'__'.join(name)}")


def _command_rule(title: List, inside: str) -> PolicyRule:
    command = re.sub(r"(:\*|\s\*)$", "", inside)
    is_prefix = command != inside
    if command in ("", "*"):
        raise ValueError(t.logged("no rule is about every command here"))
    if _SHELL_SIGNS.search(command):
        raise ValueError(
            t.logged("words are compared whole here; it has patterns or operators")
        )
    if title == "allow" and not is_prefix:
        raise ValueError(
            t.logged(
                "it allows one exact command; a rule here would also allow longer ones"
            )
        )
    program, *arguments = shlex.split(command)
    return PolicyRule(program=program, arguments=tuple(arguments))


def _path(inside: str) -> str:
    """Returns a path in the policy's form: absolute, or below the home folder. `//x` is absolute in Claude Code."""
    path = re.sub(r"(/\*\*(/\*)?|/\*)$", "", inside)
    if path.startswith("//"):
        path = path[1:]
    elif not path.startswith("~/"):
        raise ValueError(t.logged("its path is relative to a project"))
    if re.search(r"[*?\[\]{}]", path):
        raise ValueError(t.logged("a path here has no patterns"))
    return path


def codex_rules(source: Path, left: list[SkippedItem]) -> list[ForeignRule]:
    """Returns the rules of codex (`rules/*.rules`). General permissions in its config.toml are only named."""
    if not source.is_dir():
        return []
    try:
        config = tomllib.loads(read_small(source / "config.toml"))
    except tomllib.TOMLDecodeError as error:
        left.append(SkippedItem("config.toml", str(error)[:100]))
        config = Object()
    for key, value in (
        ("approval_policy", "never"),
        ("sandbox_mode", "danger-full-access"),
    ):
        if config.get(key) == value:
            left.append(
                SkippedItem(
                    f"{key} {value}", t.logged("no rule allows everything here")
                )
            )
    found: list[ForeignRule] = []
    for path in sorted(source.glob("rules/*.rules")):
        try:
            calls = ast.parse(read_small(path)).body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            left.append(SkippedItem(path.name, t.logged("it can't be read")))
            continue
        for statement in calls[:_MAX_RULES]:
            found += _codex_rule(path.name, statement, left)
    return found


def _codex_rule(
    file: str, statement: ast.stmt, left: list[SkippedItem]
) -> list[ForeignRule]:
    """Returns the rules of one `prefix_rule(pattern=[...], decision="...")`; a word may be a list of alternatives."""
    text = ast.unparse(statement)[:200]
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or ast.unparse(call.func) != "prefix_rule":
        left.append(SkippedItem(f"{file}: {text}", t.logged("it is no prefix_rule")))
        return []
    try:
        given = {one.arg: ast.literal_eval(one.value) for one in call.keywords}
        title = _CODEX_DECISIONS[given.get("decision", "allow")]
        words = [
            [one] if isinstance(one, str) else list(one) for one in given["pattern"]
        ]
        return [
            ForeignRule(
                title,
                shlex.join(choice),
                PolicyRule(program=choice[0], arguments=tuple(choice[1:])),
            )
            for choice in itertools.islice(itertools.product(*words), _MAX_CHOICES)
        ]
    except (ValueError, KeyError, TypeError, IndexError):
        left.append(
            SkippedItem(f"{file}: {text}", t.logged("its pattern can't be used here"))
        )
        return []


def judge(
    rules: list[ForeignRule], home: Path, left: list[SkippedItem]
) -> tuple[PlannedRule, ...]:
    """Returns the rules to import: those that are new and that the policy would follow."""
    file = RuleFile(home)
    if file.problem:
        left.append(SkippedItem("permissions", file.problem))
        return ()
    book = file.current()
    found: list[PlannedRule] = []
    for one in rules:
        made = PlannedRule(one.list, one.rule, one.original)
        words = (one.rule.program, *one.rule.arguments)
        planned = [other.rule for other in found if other.list == one.list]
        if one.rule in (*getattr(book, one.list), *planned):
            why = t.logged("it is already here")
        elif any(is_secret_value(word) for word in words):
            why = t.logged("it contains a key")
        elif one.list in ("forbid", "ask"):
            why = ""
        else:
            why = _objection(one, home, rules)
        if why:
            left.append(SkippedItem(f"{one.list} {one.original}", why))
        else:
            found.append(made)
    return tuple(found)


def _objection(one: ForeignRule, home: Path, rules: list[ForeignRule]) -> str:
    """Returns why a permission is not imported; empty if it may be."""
    stricter = [
        other
        for other in rules
        if other.list in ("forbid", "ask") and other.rule == one.rule
    ]
    if stricter:
        return t.logged(
            "the same settings also say: {list} {original}",
            list=stricter[0].list,
            original=stricter[0].original,
        )
    if one.rule.path:
        return t.logged("files outside the project are asked about here")
    if one.rule.program:
        return _trial(one, home)
    book, rule = RuleFile(home).current(), one.rule
    found = book.for_tool(rule.tool) if rule.tool else book.for_host(rule.host)
    return (
        t.logged(
            "your policy says: {list} {rule}", list=found[0], rule=found[1].describe()
        )
        if found
        else ""
    )


def _trial(one: ForeignRule, home: Path) -> str:
    """Returns why the policy would not follow a rule about a program, tested with a copy of policy.yaml."""
    command = shlex.join((one.rule.program, *one.rule.arguments))
    with tempfile.TemporaryDirectory(prefix="hermes-import-") as folder:
        trial, workspace = Path(folder) / "home", Path(folder) / "workspace"
        trial.mkdir(mode=0o700)
        workspace.mkdir()
        current = RuleFile(home).path
        if current.is_file():
            replace_file(trial / current.name, current.read_bytes(), mode=PRIVATE_FILE)
        verdict, reason = _decision(trial, command, workspace)
        if verdict == "forbid":
            return t.logged("the policy never allows it: {reason}", reason=reason)
        if verdict == "allow":
            return t.logged("it runs without asking already")
        for text in (f"{command} {words}" for words in _NEVER_ALLOWED):
            if _decision(trial, text, workspace)[0] == "forbid":
                return t.logged(
                    "the policy never allows everything that begins so: {text}",
                    text=text,
                )
        RuleFile(trial).add_rule(one.list, one.rule)
        verdict, reason = _decision(trial, command, workspace)
    if verdict != "allow":
        return t.logged(
            "the policy asks about it whatever the rules say: {reason}", reason=reason
        )
    return ""


def _decision(home: Path, command: str, workspace: Path) -> tuple[str, str]:
    policy = ApprovalPolicy("ask", Circumstances(home, Path.home(), sandboxed=True))
    decision = policy.check(command, workspace, "workspace")
    return decision.verdict, decision.reason
