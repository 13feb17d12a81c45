"""The bodies of requests and responses of the routes of a chat."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from hermes.app.engine import ApprovalMode
from hermes.core.context_usage import CompactionPreview, ContextPart
from hermes.surfaces.dashboard.routes.sessions import StartedSession


class ImageBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A picture; `data` is base64."""

    media_type: str
    data: str


class FileBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A document or another file; `data` is base64."""

    name: Annotated[str, Meta(min_length=1, max_length=200)]
    data: str


class EarlierAttachments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Attachments of an earlier message: the row `seq` of a session, and which of them go along again."""

    session: str
    seq: int
    images: Annotated[
        list[int], Meta(max_length=100, description="Places in the message's list.")
    ] = []
    files: Annotated[
        list[str], Meta(max_length=100, description="Paths, as the message has them.")
    ] = []
    recordings: Annotated[
        list[int], Meta(max_length=100, description="Places in the message's list.")
    ] = []


class MessageAccepted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    text: Annotated[str, Meta(max_length=4_000_000)]
    delivery: Literal["queue", "steer", "interrupt"] = "queue"
    images: Annotated[list[ImageBody], Meta(max_length=20)] = []
    files: Annotated[
        list[FileBody],
        Meta(
            max_length=20,
            description="Files to read: documents (PDF, Office, EPUB, e-mail) and text.",
        ),
    ] = []
    recordings: Annotated[
        list[str],
        Meta(
            max_length=100,
            description="The recordings in which its words were said, as `POST /api/speech/transcriptions` names them.",
        ),
    ] = []
    earlier: Annotated[
        EarlierAttachments | None,
        Meta(description="What goes along again when a message is edited."),
    ] = None
    model: Annotated[
        str | None,
        Meta(
            description="Another model from this turn on; empty for the model in the settings."
        ),
    ] = None
    approvals: Annotated[
        ApprovalMode | None,
        Meta(
            description="The approval mode from this turn on; anything but 'ask' needs the scope 'approve'."
        ),
    ] = None


class Taken(StartedSession, frozen=True):
    """A message that is on disk; `remarks` lists files it names that were not attached."""

    remarks: tuple[str, ...] = ()


class ApprovalAnswerBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    answer: Literal["once", "session", "always", "deny"]
    shown: Annotated[
        str,
        Meta(
            description="Hash of the request as the user saw it; required for all but `deny`."
        ),
    ] = ""
    reason: Annotated[
        str,
        Meta(
            max_length=10_000, description="Why the call is denied; the model reads it."
        ),
    ] = ""
    rule: Annotated[
        str,
        Meta(
            max_length=10_000,
            description="The request's `scope`, if `always` should cover all of it and not only the same call.",
        ),
    ] = ""


class Mode(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    approvals: Annotated[
        ApprovalMode,
        Meta(
            description="The approval mode; anything but 'ask' needs the scope 'approve'."
        ),
    ]


class QuestionReply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    text: str
    plan: Annotated[
        str,
        Meta(
            max_length=200_000,
            description="The plan that was asked about, as the user changed it.",
        ),
    ] = ""
    recordings: Annotated[
        list[str],
        Meta(
            max_length=100,
            description="The recordings in which it was said; they are kept in the session's media folder.",
        ),
    ] = []


class Counted(msgspec.Struct, frozen=True):
    """Whether the answer counted; another one may have come first."""

    counted: bool


class BranchAt(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    at: int | None = None
    back: Annotated[int, Meta(ge=0)] = 0


class Back(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    turns: Annotated[int, Meta(ge=1)] = 1
    force: bool = False
    files: bool = True


class BackQuery(msgspec.Struct, frozen=True):
    turns: Annotated[int, Meta(ge=1)] = 1
    force: bool = False


class Deletes(msgspec.Struct, frozen=True):
    """Files that an undo would delete, because the turns created them."""

    deletes: tuple[str, ...]


class Forth(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    force: bool = False


class DiffQuery(msgspec.Struct, frozen=True):
    turn: str = ""


class Diff(msgspec.Struct, frozen=True):
    diff: str
    turn: Annotated[str, Meta(description="The turn; empty if there is none.")] = ""


class Filling(msgspec.Struct, frozen=True):
    """What fills the model's context window; `next` is what compaction would do."""

    parts: tuple[ContextPart, ...]
    used: int
    counted: Annotated[
        bool,
        Meta(description="Whether the provider counted it; otherwise it is estimated."),
    ]
    window: int
    full: Annotated[
        int, Meta(description="The number of tokens at which compaction starts.")
    ]
    next: CompactionPreview


class Identified(msgspec.Struct, frozen=True):
    id: str


class OpenQuestions(msgspec.Struct, frozen=True):
    waiting: list[dict[str, Any]]
