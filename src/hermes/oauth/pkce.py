"""PKCE (RFC 7636): proves that whoever exchanges a code is the one who asked for it."""

import base64
import hashlib
import secrets

import msgspec


class Pkce(msgspec.Struct, frozen=True):
    """A verifier that only this process knows."""

    verifier: str = msgspec.field(default_factory=lambda: secrets.token_urlsafe(48))

    def __repr__(self) -> str:
        return "Pkce()"

    @property
    def challenge(self) -> str:
        """The challenge to send with the authorization request (method S256)."""
        digest = hashlib.sha256(self.verifier.encode()).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
