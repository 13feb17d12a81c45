"""The base of all sections of the settings, and what several of them share."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

AMOUNT = r"^$|^\$\s*\d+(\.\d+)?$|^\d+(\.\d+)?\s*([kKmM]?\s*(tokens?)?|usd|dollars?)$"
Port = Annotated[
    int,
    Meta(ge=0, le=65535, description="The port to listen on; 0 for any free port."),
]


class Section(Struct, frozen=True, forbid_unknown_fields=True):
    """What every section is: frozen, and closed to keys that don't exist."""


class ListenSettings(Section, frozen=True):
    """Where an HTTP server of ours listens, and its TLS. Each server has its own port, and describes its own URLs."""

    host: Annotated[str, Meta(description="The address to listen on.")] = "127.0.0.1"
    port: Port = 0
    public_urls: tuple[str, ...] = ()
    behind_proxy: Annotated[
        bool, Meta(description="A reverse proxy in front of it handles TLS.")
    ] = False
    tls_cert: Annotated[str, Meta(description="Path of the TLS certificate.")] = ""
    tls_key: Annotated[
        str, Meta(description="Path of the certificate's private key.")
    ] = ""
