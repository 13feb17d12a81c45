"""What every answer tells a browser: run only our own scripts, show this page in no other, guess nothing."""

from collections.abc import Iterable
from typing import TypeAlias

Headers: TypeAlias = list[tuple[bytes, bytes]]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "font-src 'self'; connect-src 'self'; manifest-src 'self'; worker-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
_ALWAYS: Headers = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
]
_OURS = frozenset(name for name, _ in _ALWAYS)
_CORS = b"access-control-"


def guarded(headers: Iterable[tuple[bytes, bytes]], *, secure: bool) -> Headers:
    """The headers of an answer with ours; a plugin can neither loosen them nor open the answer to other pages."""
    kept = [
        (name, value)
        for name, value in headers
        if name.lower() not in _OURS and not name.lower().startswith(_CORS)
    ]
    if not any(name.lower() == b"cache-control" for name, _ in kept):
        kept.append((b"cache-control", b"no-store"))
    lasting = [(b"strict-transport-security", b"max-age=31536000")] if secure else []
    return [*kept, *_ALWAYS, *lasting]
