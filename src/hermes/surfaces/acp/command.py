"""`hermes acp`: serves one editor on stdin and stdout until it closes its end."""

import asyncio
import os
import stat
import sys
from importlib.util import find_spec
from typing import Annotated, Any

from hermes.app import App, build
from hermes.children.own_python import hermes_command, replace_process
from hermes.commands.command import command
from hermes.commands.context import CommandContext
from hermes.errors import HermesError, UsageError
from hermes.settings import Secrets
from hermes.text.install_words import install_hint
from hermes.text.translation import in_language, translator

t = translator(__name__)


_MAX_MESSAGE_BYTES = 50 * 1024 * 1024


@command("acp")
def serve_editor(
    context: CommandContext,
    *,
    setup: Annotated[
        bool, "connect a model instead, as editors do in a terminal"
    ] = False,
) -> int:
    """Serve an editor (Zed, JetBrains, Neovim ...) by the Agent Client Protocol, on stdin and stdout."""
    if setup:
        replace_process(hermes_command("setup"))
    if find_spec("acp") is None:
        raise HermesError(t("Editors need the extra `acp`."), hint=install_hint("acp"))
    if sys.stdin.isatty() or not _can_stream():
        raise UsageError(
            t(
                "`hermes acp` talks to an editor, which starts it: there is nothing to type here."
            ),
            hint=t(
                "Set up your editor: docs/guide/editors.md. To chat in this terminal: hermes"
            ),
        )
    output = os.dup(1)
    os.dup2(2, 1)  # what anything else prints must not reach the protocol
    with build(context.settings, context.home) as app, in_language(None):
        asyncio.run(_serve(app, context.secrets, output))
    return 0


def _can_stream() -> bool:
    """Whether stdin is a pipe or a socket, as an editor's is; a file or /dev/null can't be waited for."""
    mode = os.fstat(0).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


async def _serve(app: App, secrets: Secrets, output: int) -> None:
    from acp import AgentSideConnection

    from hermes.app.agent import Agent
    from hermes.surfaces.acp.editor_agent import EditorAgent

    reader, writer = await _streams(output)
    agent = Agent(app, secrets, surface="editor")
    editor = EditorAgent(app, agent, secrets)
    connection = AgentSideConnection(
        editor, writer, reader, listening=False, use_unstable_protocol=True
    )
    try:
        await connection.listen()
    finally:
        await connection.close()
        await editor.close()
        await agent.close()


async def _streams(output: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_MAX_MESSAGE_BYTES)
    await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer
    )
    transport: Any
    transport, protocol = await loop.connect_write_pipe(
        asyncio.streams.FlowControlMixin, os.fdopen(output, "wb")
    )
    return reader, asyncio.StreamWriter(transport, protocol, None, loop)
