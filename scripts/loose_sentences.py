"""Find untranslated sentences that a person may read: a text of several words outside `t(...)`.

Docstrings, log messages, patterns, what models read (`Meta`), and lines that end with `# not translated` or
`// not translated` are left out; on the first line of a function, or on the first or last line of a statement, the
comment applies to all of it.
"""

import ast
import functools
import re

from hermes.schema.catalogue import CATALOGUE
from hermes.surfaces.web import override
from sentences import SOURCE, calls_of, is_translated, syntax_tree

_SEVERAL_WORDS = re.compile(
    r"[A-Za-z]{2,}[,.:;]? +[A-Za-z]{2,}[^\n]* [a-z]{2,}|^[A-Z][a-z]+ [a-z]{2,}"
)
_NOT_SHOWN = frozenset(
    {
        "log",
        "re",
        "lazy_pattern",
        "Meta",
        "getLogger",
        "TypeVar",
        "BackgroundTasks",
        "Arg",  # help of a command's parameter: the command table has it
        "Endpoint",
        "RepeatedErrors",  # names what failed, for the log
        "ToolSpec",
        "override",
        "threading",
        "word_set",
    }
)
_REASON_MAKERS = frozenset(("asks", "forbidden", "unclear", "Unreadable"))
"""Functions with which the policy makes reasons. scripts/sentences.py collects those."""
_SQL = re.compile(
    r"\s*(?:--|ALTER|AND|ATTACH|BEGIN|CASE|CREATE|DELETE|DROP|FROM|INSERT|JOIN|LEFT|LOCK|NOTIFY|ON|ORDER|PRAGMA"
    r"|RETURNING|ROLLBACK|SELECT|SET|UNION|UPDATE|VALUES|WHERE|WITH)\b"
)
_PATTERN = re.compile(r"\(\?[:i]|\\[bws]")
_COLUMNS = re.compile(r"[a-z_]+(?:, [a-z_]+)+")
_COMMAND_LINE = re.compile(r"^[ {}]*(?:/|hermes )[^.,;:()?!]*$")
_OPENING = re.compile(r"^\s*#|[(\[{]  # ")
"""A comment line that applies to the next line."""
_ESCAPE = "not translated"
_WORD = re.compile(r"[A-Za-z]{2}")

_WIRE = "errors that a program reads: part of an interface"
_DELIVERY = "what went wrong with a platform, for the log and the status"
_MARKUP = "code and markup for another program"
ENGLISH = {
    "src/hermes/commands/completion.py": _MARKUP,
    "src/hermes/commands/table.py": "scripts/sentences.py takes the table itself",
    "src/hermes/surfaces/acp/": _WIRE,
    "src/hermes/surfaces/dashboard/bundles.py": _MARKUP,
    "src/hermes/surfaces/dashboard/ingest.py": _WIRE,
    "src/hermes/surfaces/dashboard/routes/feeds.py": _WIRE,
    "src/hermes/surfaces/gateway/adapter.py": _DELIVERY,
    "src/hermes/surfaces/gateway/adapters/": _DELIVERY,
    "src/hermes/surfaces/gateway/api_server/": _WIRE,
    "src/hermes/surfaces/gateway/connection.py": _DELIVERY,
    "src/hermes/surfaces/gateway/files.py": _DELIVERY,
    "src/hermes/surfaces/gateway/mcp_server/": _WIRE,
    "src/hermes/surfaces/gateway/outgoing.py": _DELIVERY,
    "src/hermes/surfaces/gateway/platform_lease.py": _DELIVERY,
    "src/hermes/surfaces/gateway/rest_client.py": _DELIVERY,
    "src/hermes/surfaces/gateway/sender.py": _DELIVERY,
    "src/hermes/surfaces/gateway/supervisor.py": _DELIVERY,
    "src/hermes/surfaces/web/": _WIRE,
}
"""Modules and packages whose sentences stay English, and why. Sentences for people in them are still translated."""

_MODEL = "what a model reads or says"
_TOOL = "what a tool returns: a model reads it"
_PROGRAMMER = "errors of a programming interface"
NOT_FOR_PEOPLE = {
    "src/hermes/app/attachments.py": _TOOL,
    "src/hermes/app/boards/attachment_tools.py": _TOOL,
    "src/hermes/app/boards/card_context.py": _MODEL,
    "src/hermes/app/boards/card_toolset.py": _TOOL,
    "src/hermes/app/boards/worker_tools.py": _TOOL,
    "src/hermes/app/deferred_tools/": _TOOL,
    "src/hermes/app/delegate_tool.py": _TOOL,
    "src/hermes/app/goals/judge.py": _MODEL,
    "src/hermes/app/schedules/tools.py": _TOOL,
    "src/hermes/app/send_tool.py": _TOOL,
    "src/hermes/app/session_documents.py": _MARKUP,
    "src/hermes/bridge/metrics.py": _WIRE,
    "src/hermes/codex/items.py": _TOOL,
    "src/hermes/codex/projector.py": _TOOL,
    "src/hermes/codex/tool_lending.py": _TOOL,
    "src/hermes/codex/tools_server.py": _TOOL,
    "src/hermes/core/arguments.py": _MODEL,
    "src/hermes/core/calls.py": _MODEL,
    "src/hermes/core/context_window.py": _MODEL,
    "src/hermes/core/fence.py": _MODEL,
    "src/hermes/core/history.py": _MODEL,
    "src/hermes/core/ports.py": _MODEL,
    "src/hermes/core/prompt.py": _MODEL,
    "src/hermes/core/reply_check.py": _MODEL,
    "src/hermes/core/turn.py": _MODEL,
    "src/hermes/events/": _PROGRAMMER,
    "src/hermes/mcp/results.py": _TOOL,
    "src/hermes/primitives/files.py": _PROGRAMMER,
    "src/hermes/primitives/repeated_errors.py": "for the log",
    "src/hermes/providers/embedded/claims.py": _MODEL,
    "src/hermes/providers/embedded/code_fix.py": _MODEL,
    "src/hermes/providers/embedded/decision.py": _MODEL,
    "src/hermes/providers/embedded/diff_review.py": _MODEL,
    "src/hermes/providers/embedded/examples.py": _MODEL,
    "src/hermes/providers/embedded/facts.py": _MODEL,
    "src/hermes/providers/embedded/folder_view.py": _MODEL,
    "src/hermes/providers/embedded/native_prompt.py": _MODEL,
    "src/hermes/providers/embedded/small_prompt.py": _MODEL,
    "src/hermes/providers/embedded/talk_reply.py": _MODEL,
    "src/hermes/providers/embedded/tasks/": _MODEL,
    "src/hermes/providers/embedded/work_reply.py": _MODEL,
    "src/hermes/schema/catalogue.py": "the page docs/events.md",
    "src/hermes/testing/": "fakes, and what models say in tests",
    "src/hermes/text/language.py": "frequent words of languages",
    "src/hermes/tools/ask_user.py": _TOOL,
    "src/hermes/tools/browser/browser_tools.py": _TOOL,
    "src/hermes/tools/browser/incidents.py": _TOOL,
    "src/hermes/tools/browser/proxy.py": _TOOL,
    "src/hermes/tools/browser/session.py": _TOOL,
    "src/hermes/tools/documents/": _TOOL,
    "src/hermes/tools/files/": _TOOL,
    "src/hermes/tools/process/": _TOOL,
    "src/hermes/tools/python/": _TOOL,
    "src/hermes/tools/session_search.py": _TOOL,
    "src/hermes/tools/todo.py": _TOOL,
    "src/hermes/tools/tool.py": _TOOL,
    "src/hermes/tools/web/": _TOOL,
    "src/hermes/trajectories/compression.py": _MODEL,
    "src/hermes/trajectories/sharegpt.py": _MODEL,
}
"""Modules and packages below the surfaces whose texts people don't read, and who does. Their errors are translated."""

FOR_PROGRAMS = {
    "CompressionError": "a detail of a failed request",
    "NotShrunk": "kept beside a picture for the model",
    "NotText": "the policy's own",
    "ToolFailed": "a model reads it",
    "UnreadableVerdict": "the judge's model reads it",
    "Unresolved": "the policy's own",
    "WireClosed": "for the log",
    "_Stopped": "for the log",
}
"""Errors whose messages stay English, and who reads them. Every other error's message is translated."""


def loose_in_errors(source: str) -> list[str]:
    """Return the untranslated error messages in a module below the surfaces."""
    return [
        f"{part.lineno}: {ast.unparse(part)[:80]}"
        for node in calls_of(source)
        if isinstance(node.func, ast.Name) and node.func.id in _translated_errors()
        for part in (
            *node.args,
            *(one.value for one in node.keywords if one.arg == "hint"),
        )
        if _has_words(part)
    ]


def loose_in_reasons(source: str) -> list[str]:
    """Return the reasons for the log that are plain English sentences instead of `t.logged(...)`."""
    constants = {
        target.id: node.value
        for node in syntax_tree(source).body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    found: list[str] = []
    for node in calls_of(source):
        if not isinstance(node.func, ast.Name):
            continue
        fields = _reason_fields().get(node.func.id, ())
        given = [one.value for one in node.keywords if one.arg in fields]
        if node.func.id in _REASON_IS_SECOND:
            given += node.args[1:2]
        found += [
            f"{node.lineno}: {node.func.id}: {ast.unparse(part)[:80]}"
            for part in given
            if _has_words(_meant(part, constants))
        ]
    return found


def _meant(part: ast.expr, constants: dict[str, ast.expr]) -> ast.expr:
    """Return the value of a name that the module assigns."""
    return constants.get(part.id, part) if isinstance(part, ast.Name) else part


_REASON_IS_SECOND = frozenset(("JobOutcome", "JudgeAnswer"))


@functools.cache
def _reason_fields() -> dict[str, tuple[str, ...]]:
    """Return the fields that hold reasons, by class name, for events and for classes that become events."""
    events = {one.__name__: one.reasons for one in CATALOGUE.values() if one.reasons}
    return {**events, "RunEnding": ("reason",), "RuleCheck": ("detail",)}


def _has_words(part: ast.expr) -> bool:
    match part:
        case ast.Constant(value=str(text)):
            return bool(_WORD.search(text)) and not _COMMAND_LINE.match(text)
        case ast.JoinedStr(values=values):
            return any(_has_words(one) for one in values)
        case ast.IfExp():
            return _has_words(part.body) or _has_words(part.orelse)
        case _:
            return False


@functools.cache
def _translated_errors() -> frozenset[str]:
    """Return the names of `HermesError` and its subclasses, except those that stay English."""
    bases = {
        node.name: {base.id for base in node.bases if isinstance(base, ast.Name)}
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(syntax_tree(path.read_text("utf-8")))
        if isinstance(node, ast.ClassDef)
    }
    found = {"HermesError"}
    while more := {name for name, above in bases.items() if above & found} - found:
        found |= more
    return frozenset(found - FOR_PROGRAMS.keys())


def loose_in_python(source: str) -> list[str]:
    """Return the untranslated sentences of one module."""
    finder = _Finder(source.split("\n"))
    finder.visit(syntax_tree(source))
    return finder.found


class _Finder(ast.NodeVisitor):
    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self.found: list[str] = []

    @override
    def visit(self, node: ast.AST) -> None:
        if not (isinstance(node, ast.stmt) and self._is_exempt(node)):
            super().visit(node)

    def _is_exempt(self, node: ast.stmt) -> bool:
        """Whether a comment on a statement's first or last line exempts it."""
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        ends = [first, last] if not hasattr(node, "body") else [first]
        return any(_ESCAPE in self._lines[one] for one in ends)

    @override
    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):  # a constant is a docstring
            self.generic_visit(node)

    @override
    def visit_Call(self, node: ast.Call) -> None:
        root = node.func
        while isinstance(root, ast.Attribute):
            root = root.value
        name = root.id if isinstance(root, ast.Name) else ""
        if is_translated(node) or name in _REASON_MAKERS:
            for keyword in node.keywords:
                self.visit(keyword.value)
        elif name not in _NOT_SHOWN and name not in FOR_PROGRAMS:
            self.generic_visit(node)

    @override
    def visit_Subscript(self, node: ast.Subscript) -> None:
        """Leaves out `Annotated[str, "help"]`: the command table has it."""
        if not (isinstance(node.value, ast.Name) and node.value.id == "Annotated"):
            self.generic_visit(node)

    @override
    def visit_arg(self, node: ast.arg) -> None:
        """Leaves out annotations."""

    @override
    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    @override
    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        head = self._lines[node.lineno - 1 : node.body[0].lineno - 1]
        if any(_ESCAPE in line for line in head):
            return
        for part in (*node.body, *node.args.defaults):
            self.visit(part)

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815 - ast names it

    @override
    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        text = "".join(
            str(part.value) if isinstance(part, ast.Constant) else "{}"
            for part in node.values
        )
        self._take(text, node)
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                self.visit(part.value)

    @override
    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self._take(node.value, node)

    def _take(self, text: str, node: ast.expr) -> None:
        if not _SEVERAL_WORDS.search(text) or _COMMAND_LINE.match(text):
            return
        if _SQL.match(text) or _COLUMNS.fullmatch(text) or _PATTERN.search(text):
            return
        lines = self._lines[node.lineno - 1 : node.end_lineno]
        above = self._lines[max(node.lineno - 2, 0)]
        if _OPENING.search(above):
            lines.append(above)
        if not any(_ESCAPE in line for line in lines):
            self.found.append(f"{node.lineno}: {text[:80]}")


_JS_TEXT = re.compile(r'"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`')
_JS_CALL = re.compile(r'(?<![\w.])t\(\s*"(?:[^"\\]|\\.)*"(?:\s*,\s*"(?:[^"\\]|\\.)*")?')
_JS_COMMENT = re.compile(r"^\s*(?://|\*|/\*).*$|\s// .*$|/\*\*.*?\*/", re.MULTILINE)
_MARKUP_TEXT = re.compile(
    r"(?<![=>])(?:(?<! )>|>(?![ =]))([^<>${}`]*[A-Za-z]{2,}[^<>${}`]*)<"
)
"""Words between two HTML tags. A `>` with spaces around it, `>=`, `=>` and `>>` are JavaScript."""


def loose_in_javascript(source: str) -> list[str]:
    """Return the untranslated sentences of one JavaScript module."""
    kept = "\n".join("" if _ESCAPE in line else line for line in source.split("\n"))
    text = _JS_CALL.sub("t(", _JS_COMMENT.sub("", kept))
    text = re.sub(r"<(code|kbd)\b.*?</\1>", "", text, flags=re.DOTALL)
    text = re.sub(r'\bclass="[^"]*"', "", text)
    found = [one.strip() for one in _MARKUP_TEXT.findall(text) if one.strip()]
    for plain, template in _JS_TEXT.findall(text):
        shown = plain or re.sub(r"<[^>]*>|\$\{[^}]*\}", " ", template)
        if _SEVERAL_WORDS.search(shown) and "=" not in shown:
            found.append(" ".join(shown.split())[:80])
    return list(dict.fromkeys(found))
