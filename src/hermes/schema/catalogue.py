"""The catalogue: every event class by topic, and `docs/events.md` made from it."""

from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from threading import Lock
from typing import get_args, get_origin

import msgspec

from hermes.schema import events
from hermes.schema.event_base import ENVELOPE_FIELDS, Event
from hermes.schema.events import OwnCommandRan, SpokenRepliesSet
from hermes.schema.messages import MESSAGES

_OTHERS: tuple[type[Event], ...] = (
    events.SessionCreated,
    events.SessionTitled,
    events.SessionMarked,
    events.SessionImported,
    events.SessionRecovered,
    events.SessionPrompted,
    events.SessionAgentChosen,
    events.SessionModelChosen,
    events.MessagePinned,
    events.MessageUnpinned,
    SpokenRepliesSet,
    events.SessionCompacted,
    events.SessionTrimmed,
    events.CompactionFailed,
    events.SessionUndone,
    events.SessionRedone,
    events.CodexThread,
    events.PermissionsRevoked,
    events.ModeChanged,
    events.SessionScored,
    events.TurnStarted,
    events.Steered,
    events.MessageWithdrawn,
    events.InterruptRequested,
    events.TurnEnded,
    events.TurnChecked,
    events.ToolStarted,
    events.ApprovalRequested,
    events.ApprovalAnswered,
    events.QuestionAsked,
    events.QuestionAnswered,
    events.ModelRetried,
    events.ReplyRejected,
    events.LoginExpired,
    events.AuxiliaryCalled,
    events.PictureDescribed,
    events.PictureReduced,
    events.PictureWithheld,
    events.ModelPreparing,
    events.MessageDelta,
    events.ReasoningDelta,
    events.ToolGenerating,
    events.ToolProgress,
    events.RecursionStopped,
    events.StoreUnreachable,
    events.StoreReachable,
    events.Gap,
    OwnCommandRan,
)

_LOADED_LATER = (
    ("hermes.schema.gateway", "GATEWAY_EVENTS"),
    ("hermes.schema.tui", "TUI_EVENTS"),
    ("hermes.schema.learning", "LEARNING_EVENTS"),
    ("hermes.schema.goals", "GOAL_EVENTS"),
    ("hermes.schema.schedules", "SCHEDULE_EVENTS"),
    ("hermes.schema.mcp", "MCP_EVENTS"),
    ("hermes.schema.boards", "KANBAN_EVENTS"),
)
"""Events that most sessions don't have: the modules, and the names of their tuples. The first two are needed most
often."""


class EventCatalogue(Mapping[str, type[Event]]):
    """Event classes by topic. Those of `_LOADED_LATER` are loaded, module by module, when a topic is not among the others.
    Any thread may use it.
    """

    def __init__(self) -> None:
        self._known = {cls.topic: cls for cls in (*MESSAGES, *_OTHERS)}
        self._unloaded = list(_LOADED_LATER)
        self._loading = Lock()

    def __getitem__(self, topic: str) -> type[Event]:
        if topic not in self._known:
            self._load_until(topic)
        return self._known[topic]

    def __iter__(self) -> Iterator[str]:
        return iter(self._whole())

    def __len__(self) -> int:
        return len(self._whole())

    def _whole(self) -> Mapping[str, type[Event]]:
        if self._unloaded:
            self._load_until(None)
        return self._known

    def _load_until(self, topic: str | None) -> None:
        """Loads modules until the topic is known; all of them for None."""
        with self._loading:
            while self._unloaded and topic not in self._known:
                module, name = self._unloaded[0]
                later: tuple[type[Event], ...] = getattr(import_module(module), name)
                self._known = {**self._known, **{cls.topic: cls for cls in later}}
                self._unloaded = self._unloaded[1:]


CATALOGUE: Mapping[str, type[Event]] = EventCatalogue()

RESERVED_NAMESPACES = (
    "api",
    "codex",
    "cron",
    "dashboard",
    "hermes",
    "hook",
    "memory",
    "model",
    "policy",
    "skill",
    "tool",
)
"""First topic segments that are reserved for Hermes but not used yet."""


def _published() -> list[str]:
    """The first segments of the topics that Hermes publishes."""
    return sorted({topic.partition(".")[0] for topic in CATALOGUE if "." in topic})


def _names(namespaces: Iterable[str]) -> str:
    return ", ".join(f"`{name}.*`" for name in namespaces)


def _head() -> str:
    return f"""\
# Events

Everything Hermes does is an event. Subscribe with `hermes_events`:

```python
from hermes_events import publish, subscribe, unsubscribe

seen = []
handle = subscribe("agent.tool.*", seen.append)
publish("agent.tool.started", {{"name": "read_file"}})
assert seen[0]["type"] == "agent.tool.started" and seen[0]["src"] == "agent"
unsubscribe(handle)
```

The API (`publish`, `subscribe`, `unsubscribe`, `stream`, `stats`), the envelope and the pattern syntax are **stable**. Topic
names and payload fields **may still change**.

**Patterns.** Topics are dotted names. In a pattern, `*` matches exactly one segment and `**` matches zero or more segments,
anywhere (`a.**.z`).

**Envelope.** A subscriber gets a frozen `dict` with the payload's keys at the top level, plus `type` (the topic), `ts` (unix
seconds) and `src` (the first segment of the topic). Events of a session also carry `session_id`, `turn_id` and, if they are
durable, the cursor `epoch`, `seq`. Events of a child session carry `root_session_id`. Payload fields never have these names:
{", ".join(f"`{name}`" for name in ENVELOPE_FIELDS)}.
Every field listed below is always present, even if it has its default value.

**Payloads.** A payload is any mapping. Dicts and lists become frozen copies; tuples stay tuples. A value that JSON can't
represent never raises an error: subscribers in the same process get it unchanged, other processes and the dashboard page get a
string, and `stats().unencodable` counts such events.

**Namespaces.** Hermes publishes {_names(_published())} and the topic `gap`, as listed below.
Reserved for later versions: {_names(RESERVED_NAMESPACES)}.
`feed.*` and `pub.*` are messages of the dashboard's feeds, never events. Plugins publish under `plugin.<name>.*`, or under
their own name if it is not one of these.

**Durable** events are rows of the session's log and are written before they are published. **Transient** events are only
published. **Sensitive** fields may hold secrets or private text.
"""


def render_markdown() -> str:
    """The text of `docs/events.md`."""
    lines = [_head()]
    for topic in sorted(CATALOGUE):
        lines += _render_event(CATALOGUE[topic])
    return "\n".join(lines)


def _render_event(cls: type[Event]) -> Iterator[str]:
    yield f"## `{cls.topic}`\n"
    kind = "Durable" if cls.durable else "Transient"
    role = f", message of role `{cls.role}`" if cls.role else ""
    yield f"{' '.join((cls.__doc__ or '').split())} *{kind}{role}.*\n"
    fields = msgspec.structs.fields(cls)
    if not fields:
        return
    yield "| field | type | default | what it is |\n|---|---|---|---|"
    for field in fields:
        note = " *(sensitive)*" if field.name in cls.sensitive else ""
        default = "" if field.required else f"`{_default(field)}`"
        yield f"| `{field.name}` | `{_type_name(field.type)}` | {default} | {_description(field.type)}{note} |"
    yield ""


def _default(field: msgspec.structs.FieldInfo) -> str:
    value = field.default if field.default is not msgspec.NODEFAULT else None
    return msgspec.json.encode(value).decode()


def _description(annotation: object) -> str:
    for meta in get_args(annotation)[1:]:
        if isinstance(meta, msgspec.Meta) and meta.description:
            return meta.description
    return ""


def _type_name(annotation: object) -> str:
    if hasattr(annotation, "__metadata__"):
        return _type_name(get_args(annotation)[0])
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is None:
        return getattr(annotation, "__name__", str(annotation)).replace(
            "NoneType", "null"
        )
    if getattr(origin, "__name__", "") == "Literal":
        return " or ".join(str(arg) for arg in args)
    if origin is tuple:
        return f"list of {_type_name(args[0])}"
    return " or ".join(_type_name(arg) for arg in args)
