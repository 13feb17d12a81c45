"""A socket to listen on, made the same way for every server of Hermes."""

import socket

from hermes.errors import HermesError

_BACKLOG = 2048  # connections that wait to be accepted


def listen(host: str, port: int, *, who: str, hint: str) -> socket.socket:
    """Listens at once: from here on a visitor waits, and is not sent away. HermesError when that is not possible."""
    name = (host or "::").strip("[]")
    family = socket.AF_INET6 if ":" in name else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # asyncio looks at it: without delay
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((name, port))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        why = (error.strerror or str(error)).lower()
        raise HermesError(f"{who} can't listen on {host}:{port} ({why}).", hint=hint) from error
    listener.set_inheritable(False)
    return listener
