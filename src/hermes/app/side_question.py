"""A question beside the conversation: the model sees the whole conversation, and neither question nor answer is
kept."""

import asyncio

from hermes.app.agent import Agent
from hermes.app.app import App
from hermes.app.session_journal import read_history
from hermes.core.budget import request_tokens
from hermes.core.complete import complete
from hermes.core.history import ConversationHistory
from hermes.errors import HermesError
from hermes.schema.events import AuxiliaryCalled
from hermes.schema.messages import AssistantMessage, ToolFinished, UserMessage
from hermes.schema.model import ModelRequest
from hermes.text.translation import translator

t = translator(__name__)


_ASIDE = (
    "(A side question. Answer it briefly from what you know and from this conversation, without calling tools. The work "
    "goes on afterwards as if it had not been asked.)\n\n"  # not translated
)
_MAX_OUTPUT_TOKENS = 4_000


async def ask_beside(app: App, agent: Agent, session: str, question: str) -> str:
    """The answer to a side question. The log gets only what it cost. Raises HermesError."""
    engine = agent.engine(session)
    history = await asyncio.to_thread(read_history, app.store, session)
    request = ModelRequest(
        system=history.system,
        messages=(*_closed(history), UserMessage(text=_ASIDE + question)),
        tools=history.tools,
        cache_key=session,
        max_output_tokens=_MAX_OUTPUT_TOKENS,
    )
    await asyncio.to_thread(engine.check_budget, session, request_tokens(request))
    reply = await complete(engine.model, request)
    called = AuxiliaryCalled(
        task="btw", provider=reply.provider, model=reply.model, usage=reply.usage
    )
    await asyncio.to_thread(app.record, session, called)
    if not reply.text.strip():
        raise HermesError(
            t.later("The model gave no answer."),
            hint=t.later("Ask in the conversation."),
        )
    return reply.text.strip()


def _closed(
    history: ConversationHistory,
) -> list[UserMessage | AssistantMessage | ToolFinished]:
    """The messages so far. A call that still runs has no result, and no service accepts such a conversation."""
    messages = list(history.messages)
    while (
        messages
        and isinstance(messages[-1], AssistantMessage)
        and messages[-1].tool_calls
    ):
        messages.pop()
    return messages
