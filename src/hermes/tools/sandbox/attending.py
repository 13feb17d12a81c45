"""Lets the attendant answer on the event loop, as long as a command runs."""

import asyncio
import platform
from collections.abc import Callable

from hermes.tools.sandbox.confinement import Fence, Started
from hermes.tools.sandbox.seccomp import calls_of
from hermes.tools.sandbox.seccomp_notify import Attendant


def attend(
    started: Started, fence: Fence, is_own: Callable[[int], bool]
) -> Callable[[], None]:
    """Begins answering a command's questions, if it can ask any; returns how to end it."""
    calls = calls_of(platform.machine())
    if started.notices < 0 or calls is None:
        return lambda: None
    attendant = Attendant(
        started.notices, calls, (fence.workspace, fence.temporary), is_own
    )
    loop = asyncio.get_running_loop()

    def serve() -> None:
        if not attendant.attend():
            loop.remove_reader(attendant.notices)

    def end() -> None:
        loop.remove_reader(attendant.notices)
        attendant.close()

    loop.add_reader(attendant.notices, serve)
    return end
