"""Events that are not messages: sessions, turns, tool calls, and the bus itself."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, TypeAlias

import msgspec
from msgspec import Meta

from hermes.schema.event_base import Event
from hermes.schema.messages import Usage
from hermes.schema.tool_spec import ToolSpec

SessionKind: TypeAlias = Literal["root", "branch", "child"]
Reach: TypeAlias = Literal["workspace", "network", "machine"]
"""How far a call reaches: the working directory, also the network, or everything the user can."""
Mode: TypeAlias = Literal["ask", "auto-edit", "plan", "full"]
"""What runs without asking."""
TurnEnd: TypeAlias = Literal[
    "done", "interrupted", "failed", "crashed", "refused", "budget"
]
SpokenReplies: TypeAlias = Literal["off", "on", "tts"]
"""Replies are never spoken, only to voice notes, or always."""


class SessionCreated(Event, frozen=True, kw_only=True):
    """A session started. Always the first row of its log."""

    topic: ClassVar[str] = "session.created"

    kind: Annotated[
        SessionKind,
        Meta(
            description="`branch` copies its parent's rows; `child` works for its parent."
        ),
    ] = "root"
    parent: Annotated[
        str, Meta(description="Session it was branched from or works for.")
    ] = ""
    parent_seq: Annotated[int, Meta(description="Last row copied from the parent.")] = 0
    root: Annotated[
        str, Meta(description="First session of the lineage; empty for a root.")
    ] = ""
    surface: Annotated[
        str,
        Meta(description="Where it was started (cli, tui, dashboard, telegram...)."),
    ] = ""
    cwd: Annotated[str, Meta(description="Working directory it was started in.")] = ""
    place: Annotated[
        str,
        Meta(
            description="Machine that has this folder; empty if every machine may have it."
        ),
    ] = ""
    person: Annotated[
        str,
        Meta(
            description="Whose memory it uses: one of several people in chat apps; empty for the user's own."
        ),
    ] = ""


class SessionTitled(Event, frozen=True, kw_only=True):
    """A session got a title, from its user or automatically."""

    topic: ClassVar[str] = "session.titled"
    sensitive: ClassVar[tuple[str, ...]] = ("title",)

    title: Annotated[str, Meta(description="The new title; empty removes it.")]
    by: Annotated[
        Literal["user", "model", "hermes"], Meta(description="Who chose it.")
    ] = "user"


class SessionMarked(Event, frozen=True, kw_only=True):
    """Sessions were pinned, archived, put into a folder, or looked at."""

    topic: ClassVar[str] = "session.marked"
    durable: ClassVar[bool] = False

    sessions: Annotated[tuple[str, ...], Meta(description="Their ids.")]


class SessionImported(Event, frozen=True, kw_only=True):
    """A session's rows came from a file; everything before this row happened elsewhere."""

    topic: ClassVar[str] = "session.imported"

    source: Annotated[str, Meta(description="Id the session had in the file.")]
    rows: Annotated[int, Meta(description="How many rows were imported.")]


class SessionRecovered(Event, frozen=True, kw_only=True):
    """A damaged database was rebuilt; this session's readable rows were kept."""

    topic: ClassVar[str] = "session.recovered"

    kept: Annotated[int, Meta(description="Rows that were readable.")]
    lost: Annotated[
        int, Meta(description="Rows known to be missing before the last readable one.")
    ]
    file: Annotated[str, Meta(description="Where the damaged file was kept.")]


class TurnStarted(Event, frozen=True, kw_only=True):
    """Hermes started to work on the user's messages."""

    topic: ClassVar[str] = "agent.turn.started"

    inputs: Annotated[
        tuple[int, ...], Meta(description="`seq` of the messages it answers.")
    ] = ()
    runtime: Annotated[str, Meta(description="Which engine runs the turn.")] = "native"


class TurnEnded(Event, frozen=True, kw_only=True):
    """The turn ended, for whatever reason."""

    topic: ClassVar[str] = "agent.turn.ended"
    reasons: ClassVar[tuple[str, ...]] = ("detail",)

    reason: Annotated[TurnEnd, Meta(description="How it ended.")]
    detail: Annotated[str, Meta(description="Details for the user.")] = ""
    failure: Annotated[
        str,
        Meta(
            description="If the model failed: the class of the failure, such as `rate_limited` or `billing`."
        ),
    ] = ""
    usage: Annotated[
        Usage | None, Meta(description="Sum over the turn's model calls.")
    ] = None
    limit: Annotated[
        Literal["", "steps", "spending"],
        Meta(description="Which limit ended it, if the reason is `budget`."),
    ] = ""


class RuleCheck(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False
):
    """One command of the project's rules, and its result."""

    command: str
    outcome: Literal["passed", "failed", "not_run"]
    detail: str = ""
    """The exit code and the time, or why it did not run."""
    output: str = ""
    """The end of its output, if it failed."""


class TurnChecked(Event, frozen=True, kw_only=True):
    """A turn that changed files was checked by the project's rules, and its answer was compared with what changed."""

    topic: ClassVar[str] = "agent.turn.checked"
    reasons: ClassVar[tuple[str, ...]] = ("detail",)
    sensitive: ClassVar[tuple[str, ...]] = ("checks", "detail")

    ok: Annotated[
        bool, Meta(description="Whether everything passed that was to be checked.")
    ] = True
    detail: Annotated[str, Meta(description="The result in words.")] = ""
    checks: Annotated[
        tuple[RuleCheck, ...],
        Meta(description="The commands of the rules, with their results."),
    ] = ()
    changed: Annotated[int, Meta(description="How many files the turn changed.")] = 0
    protected: Annotated[
        tuple[str, ...],
        Meta(description="Files that changed although the rules protect them."),
    ] = ()
    unchanged: Annotated[
        tuple[str, ...],
        Meta(description="Files that the answer says were changed, but were not."),
    ] = ()


class ToolStarted(Event, frozen=True, kw_only=True):
    """A tool call is about to run; written before its effect."""

    topic: ClassVar[str] = "agent.tool.started"
    sensitive: ClassVar[tuple[str, ...]] = ("arguments",)

    call_id: Annotated[str, Meta(description="Id of the tool call.")]
    name: Annotated[str, Meta(description="Name of the tool.")]
    arguments: Annotated[str, Meta(description="Arguments as JSON text.")]


class Steered(Event, frozen=True, kw_only=True):
    """Messages that arrived during the turn were passed to the model."""

    topic: ClassVar[str] = "agent.turn.steered"

    inputs: Annotated[tuple[int, ...], Meta(description="`seq` of those messages.")]


class MessageWithdrawn(Event, frozen=True, kw_only=True):
    """A person took back a message that no turn had read yet."""

    topic: ClassVar[str] = "agent.message.withdrawn"

    message: Annotated[int, Meta(description="`seq` of the message.")]
    by: Annotated[str, Meta(description="The surface it was taken back from.")] = ""


class InterruptRequested(Event, frozen=True, kw_only=True):
    """Somebody asked the running turn to stop."""

    topic: ClassVar[str] = "agent.interrupt.requested"

    by: Annotated[str, Meta(description="Surface that asked.")] = ""


class SessionPrompted(Event, frozen=True, kw_only=True):
    """The system prompt and the tools were fixed; every request from here on repeats them byte for byte."""

    topic: ClassVar[str] = "session.prompted"
    sensitive: ClassVar[tuple[str, ...]] = ("system",)

    system: Annotated[
        tuple[str, ...],
        Meta(description="Stable part, project context, circumstances."),
    ]
    tools: Annotated[
        tuple[ToolSpec, ...], Meta(description="Tools as the model sees them.")
    ] = ()
    agent: Annotated[
        str, Meta(description="The agent file that they are for; empty for none.")
    ] = ""


class SessionAgentChosen(Event, frozen=True, kw_only=True):
    """The session works as an agent from a file, from the next turn on."""

    topic: ClassVar[str] = "session.agent_chosen"

    agent: Annotated[
        str, Meta(description="Name of the agent; empty for Hermes itself.")
    ] = ""


class SessionModelChosen(Event, frozen=True, kw_only=True):
    """A model was chosen for the session. It answers from the next turn on, also when the session is resumed."""

    topic: ClassVar[str] = "session.model_chosen"

    model: Annotated[
        str,
        Meta(
            description="`MODEL` or `PROVIDER:MODEL`; empty for that of the settings."
        ),
    ] = ""


class MessagePinned(Event, frozen=True, kw_only=True):
    """The user pinned a message: compaction keeps it word for word."""

    topic: ClassVar[str] = "session.message_pinned"
    sensitive: ClassVar[tuple[str, ...]] = ("text",)

    text: Annotated[str, Meta(description="The message.")]
    by: Annotated[
        Literal["user", "assistant"], Meta(description="Whose message it is.")
    ] = "user"


class MessageUnpinned(Event, frozen=True, kw_only=True):
    """A message is no longer pinned."""

    topic: ClassVar[str] = "session.message_unpinned"

    pinned: Annotated[
        int, Meta(description="`seq` of the `session.message_pinned` row.")
    ]


class SessionUndone(Event, frozen=True, kw_only=True):
    """Turns were undone: the model no longer sees them. Their rows stay in the log."""

    topic: ClassVar[str] = "session.undone"

    since: Annotated[
        int, Meta(description="`seq` of the row that began the first undone turn.")
    ]
    turns: Annotated[
        tuple[str, ...], Meta(description="The undone turns, newest first.")
    ] = ()
    kept: Annotated[
        str,
        Meta(
            description="Name of the snapshot of the files before the undo; empty if there is none."
        ),
    ] = ""
    restored: Annotated[int, Meta(description="How many files were restored.")] = 0


class SessionRedone(Event, frozen=True, kw_only=True):
    """The last undo was reversed: the model sees those turns again."""

    topic: ClassVar[str] = "session.redone"

    undone: Annotated[int, Meta(description="`seq` of the `session.undone` row.")]


class CodexThread(Event, frozen=True, kw_only=True):
    """The session has a thread in codex, which knows the conversation up to here."""

    topic: ClassVar[str] = "session.codex_thread"

    thread: Annotated[str, Meta(description="Codex's id of the thread.")]
    owner: Annotated[
        str,
        Meta(description="Session it was created for; a branch does not continue it."),
    ]
    known: Annotated[
        str, Meta(description="Hash of the conversation that the thread contains.")
    ] = ""
    turn: Annotated[
        str,
        Meta(
            description="Turn that codex is running after that; empty once it has ended."
        ),
    ] = ""
    permissions: Annotated[
        str,
        Meta(
            description="Permission profile that Hermes asked for, as in plan mode; empty for codex's own settings."
        ),
    ] = ""


class SessionCompacted(Event, frozen=True, kw_only=True):
    """The conversation was compacted: the model sees a summary in place of its middle. The log
    keeps all of it.
    """

    topic: ClassVar[str] = "session.compacted"
    sensitive: ClassVar[tuple[str, ...]] = ("summary",)

    summary: Annotated[str, Meta(description="What the model reads instead.")]
    head: Annotated[int, Meta(description="How many messages at the beginning stay.")]
    tail: Annotated[int, Meta(description="How many messages at the end stay.")]
    kept: Annotated[
        int,
        Meta(
            description="The user's last message between them, which also stays; 0 if none does."
        ),
    ] = 0
    before: Annotated[
        int, Meta(description="About how many tokens the conversation had.")
    ] = 0
    after: Annotated[int, Meta(description="About how many tokens it has now.")] = 0
    provider: Annotated[str, Meta(description="Provider that wrote the summary.")] = ""
    model: Annotated[str, Meta(description="Model that wrote it.")] = ""
    usage: Annotated[
        Usage | None, Meta(description="Tokens and cost of that call.")
    ] = None


class SessionTrimmed(Event, frozen=True, kw_only=True):
    """The conversation was trimmed without a model: the model sees references in place of old
    results. The log keeps them.
    """

    topic: ClassVar[str] = "session.trimmed"

    call_ids: Annotated[
        tuple[str, ...], Meta(description="The calls whose results they were.")
    ]
    freed: Annotated[int, Meta(description="How many characters they had.")] = 0
    pictures: Annotated[
        int,
        Meta(
            description="The user's pictures in this many messages from the beginning are pointers too."
        ),
    ] = 0


class CompactionFailed(Event, frozen=True, kw_only=True):
    """The conversation could not be compressed. Nothing was removed; Hermes will try again later."""

    topic: ClassVar[str] = "session.compaction_failed"
    reasons: ClassVar[tuple[str, ...]] = ("detail",)

    detail: Annotated[str, Meta(description="Why.")]


class ModelRetried(Event, frozen=True, kw_only=True):
    """A model call failed and is retried, perhaps elsewhere; what was streamed of the reply is void."""

    topic: ClassVar[str] = "agent.model.retried"
    reasons: ClassVar[tuple[str, ...]] = ("detail",)

    reason: Annotated[str, Meta(description="Class of the failure.")]
    detail: Annotated[str, Meta(description="What the provider said.")] = ""
    attempt: Annotated[int, Meta(description="Number of the next attempt.")] = 0
    delay: Annotated[float, Meta(description="Seconds until the next attempt.")] = 0.0
    provider: Annotated[str, Meta(description="Provider of the next attempt.")] = ""
    model: Annotated[str, Meta(description="Model of the next attempt.")] = ""
    request_id: Annotated[
        str, Meta(description="The provider's id of the request that failed.")
    ] = ""
    timing: Annotated[
        str, Meta(description="How far the answer came, and how long that took.")
    ] = ""


class ReplyRejected(Event, frozen=True, kw_only=True):
    """A reply could not be used; the model is asked again or the turn ends."""

    topic: ClassVar[str] = "agent.reply.rejected"
    reasons: ClassVar[tuple[str, ...]] = ("detail",)

    reason: Annotated[
        Literal[
            "empty",
            "truncated",
            "truncated_call",
            "bad_arguments",
            "unknown_tool",
            "looping",
        ],
        Meta(description="What was wrong with it."),
    ]
    detail: Annotated[str, Meta(description="The same as a sentence.")] = ""


class LoginExpired(Event, frozen=True, kw_only=True):
    """The login of an account no longer works; somebody has to sign in again. Written once for each login."""

    topic: ClassVar[str] = "agent.login.expired"
    reasons: ClassVar[tuple[str, ...]] = ("detail",)

    provider: Annotated[str, Meta(description="The provider of the account.")]
    account: Annotated[str, Meta(description="The account's id and label.")] = ""
    detail: Annotated[str, Meta(description="What the provider said.")] = ""
    command: Annotated[str, Meta(description="The command that signs in again.")] = ""


class ApprovalRequested(Event, frozen=True, kw_only=True):
    """A tool call waits for a person's approval."""

    topic: ClassVar[str] = "agent.approval.requested"
    sensitive: ClassVar[tuple[str, ...]] = ("summary", "arguments")

    call_id: Annotated[
        str, Meta(description="Id of the tool call; also names the request.")
    ]
    name: Annotated[str, Meta(description="Name of the tool.")]
    arguments: Annotated[str, Meta(description="Arguments as JSON text.")]
    summary: Annotated[str, Meta(description="Exactly what will happen, for a person.")]
    reason: Annotated[str, Meta(description="Why approval is needed.")] = ""
    reach: Annotated[Reach, Meta(description="How far it reaches if allowed.")] = (
        "workspace"
    )
    shape: Annotated[
        str, Meta(description="Exactly what the answer `always` covers.")
    ] = ""
    scope: Annotated[
        str,
        Meta(
            description="What the answer `session` covers, in words; if empty, the same as `shape`."
        ),
    ] = ""
    binding: Annotated[
        str,
        Meta(
            description="Hash of what the policy judged; if it is different when the call starts, the call stops."
        ),
    ] = ""
    expires: Annotated[
        float,
        Meta(description="Unix seconds after which it counts as denied; 0 for never."),
    ] = 0.0
    memorable: Annotated[
        bool,
        Meta(description="Whether an answer may apply to more than this one call."),
    ] = True
    similar: Annotated[
        int,
        Meta(description="How many calls like it were allowed in this session before."),
    ] = 0


class ApprovalAnswered(Event, frozen=True, kw_only=True):
    """A request was answered, by a person or because nobody could be asked."""

    topic: ClassVar[str] = "agent.approval.answered"
    sensitive: ClassVar[tuple[str, ...]] = ("reason",)

    call_id: Annotated[str, Meta(description="Id of the tool call.")]
    answer: Annotated[
        Literal["once", "session", "always", "deny"],
        Meta(description="The decision."),
    ]
    by: Annotated[
        str,
        Meta(
            description="Surface that answered; `nobody` when there was none to ask, `expired` when none did, `policy`."
        ),
    ] = ""
    shown: Annotated[
        str,
        Meta(
            description="Hash of the request as the user saw it; required for any answer but `deny`."
        ),
    ] = ""
    reason: Annotated[
        str,
        Meta(
            description="Why the user denied it; the model reads it together with the denial."
        ),
    ] = ""
    rule: Annotated[
        str,
        Meta(
            description="The rule that `always` made, in words: the request's `scope`; empty for only the same call."
        ),
    ] = ""


class PermissionsRevoked(Event, frozen=True, kw_only=True):
    """Answers for the rest of the session were taken back: such calls are asked about again."""

    topic: ClassVar[str] = "session.permissions_revoked"

    permissions: Annotated[
        tuple[str, ...], Meta(description="The scopes and shapes that no longer hold.")
    ]
    by: Annotated[str, Meta(description="Surface that took them back.")] = ""


class ModeChanged(Event, frozen=True, kw_only=True):
    """The user chose what runs without asking in a session."""

    topic: ClassVar[str] = "session.mode_changed"

    mode: Annotated[Mode, Meta(description="The new mode.")]
    by: Annotated[str, Meta(description="Surface that changed it.")] = ""


class SessionScored(Event, frozen=True, kw_only=True):
    """Somebody, or a check, judged what the session achieved."""

    topic: ClassVar[str] = "session.scored"

    score: Annotated[float, Meta(description="The score; 1 is the best by custom.")]
    by: Annotated[
        str, Meta(description="What judged it: `check`, `expected` or a person.")
    ] = ""
    detail: Annotated[str, Meta(description="The end of a check's output.")] = ""


class QuestionAsked(Event, frozen=True, kw_only=True):
    """A tool asks the user a question."""

    topic: ClassVar[str] = "agent.question.asked"
    sensitive: ClassVar[tuple[str, ...]] = ("text", "options", "plan")

    call_id: Annotated[
        str, Meta(description="Id of the tool call; also names the question.")
    ]
    text: Annotated[str, Meta(description="The question.")]
    options: Annotated[tuple[str, ...], Meta(description="Suggested answers.")] = ()
    plan: Annotated[
        str,
        Meta(description="A plan to accept, as Markdown; each option starts the work."),
    ] = ""
    expires: Annotated[
        float,
        Meta(
            description="Unix seconds after which nobody waits any more; 0 for never."
        ),
    ] = 0.0


class QuestionAnswered(Event, frozen=True, kw_only=True):
    """The user answered, or nobody could be asked."""

    topic: ClassVar[str] = "agent.question.answered"
    sensitive: ClassVar[tuple[str, ...]] = ("text", "plan")

    call_id: Annotated[str, Meta(description="Id of the tool call.")]
    text: Annotated[
        str | None, Meta(description="The answer; null when there is none.")
    ] = None
    plan: Annotated[
        str, Meta(description="The plan as the user changed it; empty if unchanged.")
    ] = ""
    by: Annotated[
        str, Meta(description="Surface that answered; `nobody` or `expired`.")
    ] = ""


class AuxiliaryCalled(Event, frozen=True, kw_only=True):
    """An auxiliary model was called, for example for a title; not part of the conversation."""

    topic: ClassVar[str] = "agent.auxiliary.called"

    task: Annotated[
        Literal[
            "title",
            "summary",
            "review",
            "vision",
            "search",
            "codex",
            "btw",
            "judge",
            "cards",
            "image",
        ],
        Meta(
            description="What the call was for; `codex` is a call inside codex without a message, `btw` a side question,"
            " `image` a picture that was made."
        ),
    ]
    provider: Annotated[str, Meta(description="Provider that was called.")] = ""
    model: Annotated[str, Meta(description="Model that was called.")] = ""
    usage: Annotated[Usage | None, Meta(description="Tokens and cost of the call.")] = (
        None
    )
    failure: Annotated[str, Meta(description="What went wrong, if anything.")] = ""


class PictureDescribed(Event, frozen=True, kw_only=True):
    """A model that can see described an image to the one that answers, which can't."""

    topic: ClassVar[str] = "agent.picture.described"
    sensitive: ClassVar[tuple[str, ...]] = ("source", "text")

    source: Annotated[str, Meta(description="The picture: a file or an address.")]
    text: Annotated[str, Meta(description="What it shows, or why that is not known.")]


class PictureReduced(Event, frozen=True, kw_only=True):
    """The provider rejected a picture; from now on a smaller copy is sent."""

    topic: ClassVar[str] = "agent.picture.reduced"
    reasons: ClassVar[tuple[str, ...]] = ("detail",)
    sensitive: ClassVar[tuple[str, ...]] = ("sources",)

    sources: Annotated[tuple[str, ...], Meta(description="File paths of the pictures.")]
    detail: Annotated[
        str, Meta(description="What happened, as a sentence for the user.")
    ]


class PictureWithheld(Event, frozen=True, kw_only=True):
    """An image is not sent to the model; text replaces it."""

    topic: ClassVar[str] = "agent.picture.withheld"
    reasons: ClassVar[tuple[str, ...]] = ("detail",)
    sensitive: ClassVar[tuple[str, ...]] = ("sources",)

    sources: Annotated[
        tuple[str, ...], Meta(description="File paths or addresses of the pictures.")
    ]
    why: Annotated[
        Literal["refused", "text_only"],
        Meta(
            description="`refused`: the provider rejected it; `text_only`: the model is not known to see pictures."
        ),
    ]
    detail: Annotated[
        str, Meta(description="What happened and how to change it, for the user.")
    ]


class ModelPreparing(Event, frozen=True, kw_only=True):
    """A local model is being prepared for its first answer on this machine."""

    topic: ClassVar[str] = "agent.model.preparing"
    durable: ClassVar[bool] = False

    done: Annotated[int, Meta(description="Steps done.")]
    total: Annotated[int, Meta(description="Number of steps.")]


class MessageDelta(Event, frozen=True, kw_only=True):
    """More of the reply being written."""

    topic: ClassVar[str] = "agent.message.delta"
    durable: ClassVar[bool] = False
    sensitive: ClassVar[tuple[str, ...]] = ("text",)

    text: Annotated[str, Meta(description="The next piece.")]


class ReasoningDelta(Event, frozen=True, kw_only=True):
    """More of the model's thinking."""

    topic: ClassVar[str] = "agent.reasoning.delta"
    durable: ClassVar[bool] = False
    sensitive: ClassVar[tuple[str, ...]] = ("text",)

    text: Annotated[str, Meta(description="The next piece.")]


class ToolGenerating(Event, frozen=True, kw_only=True):
    """The model started to write a tool call."""

    topic: ClassVar[str] = "agent.tool.generating"
    durable: ClassVar[bool] = False

    call_id: Annotated[
        str, Meta(description="Id of the tool call, if the provider gave one already.")
    ]
    name: Annotated[str, Meta(description="Name of the tool.")]


class ToolProgress(Event, frozen=True, kw_only=True):
    """A running tool printed something."""

    topic: ClassVar[str] = "agent.tool.progress"
    durable: ClassVar[bool] = False
    sensitive: ClassVar[tuple[str, ...]] = ("text",)

    call_id: Annotated[str, Meta(description="Id of the tool call.")]
    text: Annotated[str, Meta(description="New output.")]


class RecursionStopped(Event, frozen=True, kw_only=True):
    """A callback published inside callbacks, nested too deeply; that publish was not delivered."""

    topic: ClassVar[str] = "bus.recursion_stopped"
    durable: ClassVar[bool] = False

    stopped: Annotated[str, Meta(description="Topic that was not delivered.")]
    depth: Annotated[int, Meta(description="How deep publishing had nested.")]


class StoreUnreachable(Event, frozen=True, kw_only=True):
    """The database of the store can't be reached from this process. Everything waits until it is back."""

    topic: ClassVar[str] = "store.unreachable"
    durable: ClassVar[bool] = False

    reason: Annotated[str, Meta(description="What the connection failed with.")]


class StoreReachable(Event, frozen=True, kw_only=True):
    """The database of the store can be reached again."""

    topic: ClassVar[str] = "store.reachable"
    durable: ClassVar[bool] = False


class Gap(Event, frozen=True, kw_only=True):
    """A reader was too slow, or a bridge had no room: events are missing here."""

    topic: ClassVar[str] = "gap"
    durable: ClassVar[bool] = False

    dropped: Annotated[int, Meta(description="How many are missing.")]
    pattern: Annotated[str, Meta(description="Pattern of the stream.")]
    policy: Annotated[
        str, Meta(description="`drop_oldest`, `drop_newest`, `close`, or `spool_full`.")
    ]


class OwnCommandRan(Event, frozen=True, kw_only=True):
    """The user ran a command in the chat. The model reads its output with the user's next message."""

    topic: ClassVar[str] = "agent.command.ran"
    sensitive: ClassVar[tuple[str, ...]] = ("command", "output")

    command: Annotated[str, Meta(description="The command line.")]
    output: Annotated[str, Meta(description="What it printed, or the end of it.")] = ""
    code: Annotated[
        int, Meta(description="Its exit code; negative for the signal that ended it.")
    ] = 0


class SpokenRepliesSet(Event, frozen=True, kw_only=True):
    """The user said whether the replies of a session are spoken (`/voice`)."""

    topic: ClassVar[str] = "session.spoken_replies_set"

    mode: Annotated[
        SpokenReplies,
        Meta(description="off: never; on: replies to voice notes; tts: all replies."),
    ]
