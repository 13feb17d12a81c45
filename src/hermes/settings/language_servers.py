"""The settings of language servers, whose errors in changed files reach the model."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from hermes.settings.section import Section

_ABOUT = "empty for one that is on your PATH, `off` for none."


class LanguageServerSettings(Section, frozen=True):
    """Language servers: after a turn that changed files, their errors in these files reach the model."""

    python: Annotated[
        str, Meta(description=f"The server for Python, as a command; {_ABOUT}")
    ] = ""
    go: Annotated[
        str, Meta(description=f"The server for Go, as a command; {_ABOUT}")
    ] = ""
    rust: Annotated[
        str, Meta(description=f"The server for Rust, as a command; {_ABOUT}")
    ] = ""
    typescript: Annotated[
        str,
        Meta(
            description=f"The server for TypeScript and JavaScript, as a command; {_ABOUT}"
        ),
    ] = ""
