"""Taking a person's answer to the session that asked."""

from hermes.app.session_service import SessionService
from hermes.surfaces.terminal.approval import PersonAnswer


async def deliver_answer(
    service: SessionService, given: PersonAnswer, session: str
) -> bool:
    """Answers for the session, or for the child of it that asked. False when nobody waits for it (any more)."""
    session = given.session or session
    if given.word is None:
        return await service.reply(session, given.call_id, given.text, by="cli")
    return await service.answer(
        session,
        given.call_id,
        given.word,
        by="cli",
        shown=given.shown,
        reason=given.text,
    )
