"""The context of a worker: its card, earlier attempts, the results of parents, comments and files."""

from pathlib import Path

from hermes.app.app import App
from hermes.app.boards.board_service import Boards
from hermes.app.boards.listing import CardDetails, card_details
from hermes.primitives.files import create_private, make_private_folder
from hermes.schema.boards import Card, CardAttachment, CardRun

_MAX_TEXT_CHARS = 8_000  # characters of a body, a result or a comment
_MAX_COMMENTS = 20
_MAX_ATTEMPTS = 5
_MAX_FILES = 50
_TASK = """\
You work on a card of a board, by yourself; people look in now and then, and approvals and questions reach them. Do what the \
card says, to its end. Then close the card with exactly one of these tools: kanban_complete (it is done), \
kanban_request_review (somebody should look at it), kanban_block (you can't go on). A run that ends without one of them \
counts as failed. In long work, say now and then what you are doing with kanban_heartbeat.

{context}"""
_REVIEW = """\
You review a card of a board: somebody else did the work, and you judge whether it is right and complete. Look at the results \
themselves, not only at the summary. Then close the card with exactly one of these tools: kanban_complete (it is good), \
kanban_request_changes (say exactly what must change), kanban_block (you can't judge it).

{context}"""
_STILL_OPEN = (
    "Your card is still open. If the {work} is finished, close it now with kanban_complete or {other}; if you "
    "can't go on, close it with kanban_block and say what is missing; otherwise go on working."
)


def reminder(run: CardRun) -> str:
    """Returns the message for a worker that stopped without closing its card."""
    if run.phase == "review":
        return _STILL_OPEN.format(work="review", other="kanban_request_changes")
    return _STILL_OPEN.format(work="work", other="kanban_request_review")


def task_message(app: App, boards: Boards, card: Card, run: CardRun) -> str:
    """Returns the first message of a worker."""
    form = _REVIEW if run.phase == "review" else _TASK
    skills = "".join(f"\nUse the skill {name}." for name in card.skills)
    return form.format(context=card_context(app, boards, card.id)) + skills


def card_context(app: App, boards: Boards, name: str) -> str:
    """Returns a card as text, with everything that a worker needs to know about it."""
    details = card_details(boards, name, history=1)
    card = details.card
    parts = [
        f"# Card {card.id}: {card.title}",
        f"status: {card.status}; board: {card.board}; assignee: {card.assignee}; priority: {card.priority}"
        + (f"; labels: {', '.join(card.labels)}" if card.labels else ""),
        _cut(card.body),
        *_parents(details),
        *_attempts(details),
        *_comments(details),
        *_files(app, boards, details.attachments),
    ]
    if details.children:
        waiting = ", ".join(one.id for one in details.children)
        parts.append(f"Cards that wait for it: {waiting}")
    return "\n\n".join(part for part in parts if part)


def _cut(text: str) -> str:
    if len(text) <= _MAX_TEXT_CHARS:
        return text
    return f"{text[:_MAX_TEXT_CHARS]}\n[cut: {len(text) - _MAX_TEXT_CHARS:,} more characters]"


def _parents(details: CardDetails) -> list[str]:
    lines = [f"- {one.id} ({one.status}) {one.title}" for one in details.parents]
    return ["## Cards that came before (kanban_show has their results)\n" + "\n".join(lines)] if lines else []  # fmt: skip


def _attempts(details: CardDetails) -> list[str]:
    ended = [run for run in details.runs if run.ended][:_MAX_ATTEMPTS]
    lines = [
        f"- run {run.number} ({run.agent}): {run.outcome}. {_cut(run.reason)} {_cut(run.summary)}".rstrip()
        for run in reversed(ended)
    ]
    return ["## Earlier attempts\n" + "\n".join(lines)] if lines else []


def _comments(details: CardDetails) -> list[str]:
    lines = [
        f"- {one.by or 'user'}: {_cut(one.text)}"
        for one in details.comments[-_MAX_COMMENTS:]
    ]
    return ["## Comments\n" + "\n".join(lines)] if lines else []


def _files(app: App, boards: Boards, files: list[CardAttachment]) -> list[str]:
    lines = [
        f"- {one.name} ({one.size:,} bytes): {written_attachment(app, boards, one)}"
        for one in files[:_MAX_FILES]
    ]
    return ["## Files\n" + "\n".join(lines)] if lines else []


def written_attachment(app: App, boards: Boards, file: CardAttachment) -> Path:
    """Returns where a worker can read an attachment: in the folder of outputs, which every session may read."""
    target = app.home.cache / "outputs" / "kanban" / file.id / file.name
    if not target.exists():
        data = boards.read(lambda reader: reader.attachment_data(file.id)) or b""
        make_private_folder(target.parent)
        with create_private(target) as opened:
            opened.write(data)
    return target
