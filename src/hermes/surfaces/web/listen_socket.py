"""A socket to listen on, made the same way for every server of Hermes, and whether a certificate can be used."""

import socket

from hermes.errors import HermesError, SettingsError, os_reason

_BACKLOG = 2048  # connections that wait to be accepted


def listen(host: str, port: int, *, who: str, hint: str) -> socket.socket:
    """Listens at once: from here on a visitor waits, and is not sent away. HermesError when that is not possible."""
    name = (host or "::").strip("[]")
    family = socket.AF_INET6 if ":" in name else socket.AF_INET
    listener = socket.socket(
        family, socket.SOCK_STREAM, socket.IPPROTO_TCP
    )  # asyncio looks at it: without delay
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((name, port))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        why = os_reason(error)
        raise HermesError(
            f"{who} can't listen on {host}:{port} ({why}).", hint=hint
        ) from error
    listener.set_inheritable(False)
    return listener


def require_certificate(cert: str, key: str, *, section: str) -> None:
    """SettingsError when a certificate and its key, where they are set, can't be used together."""
    if not cert or not key:
        return
    import ssl

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(
            cert, key, password=_no_password
        )
    except (OSError, ValueError) as error:  # an SSLError is one
        why = (
            (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
        )
        raise SettingsError(
            f"The certificate can't be used: {cert} with the key {key} ({why.lower()}).",
            hint=f"Set {section}.tls_cert and {section}.tls_key to PEM files that belong together, without a password.",
        ) from error


def _no_password() -> str:
    """Nobody is there to be asked."""
    raise ValueError("the key has a password")
