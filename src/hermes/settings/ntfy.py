"""The settings of ntfy as a chat platform."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from hermes.settings.section import Section


class NtfySettings(Section, frozen=True):
    """ntfy: push notifications, and messages back. The access token is the secret NTFY_TOKEN.

    Whoever can write to the topic is the person `ntfy:TOPIC`. Hermes listens to that person only
    if the server refuses writers without a token.
    """

    url: Annotated[
        str, Meta(description="URL of the ntfy server; your own, or the public one.")
    ] = "https://ntfy.sh"
    topic: Annotated[
        str,
        Meta(
            pattern=r"^[-_A-Za-z0-9]{0,64}$",
            description="Topic to write to and to read; empty to turn ntfy off.",
        ),
    ] = ""
    priority: Annotated[
        int,
        Meta(
            ge=1,
            le=5,
            description="Priority of notifications, 1 to 5; a question has at least 4.",
        ),
    ] = 3
    click_url: Annotated[
        str,
        Meta(
            description="What a tap on a notification opens, such as the URL of your dashboard; empty for nothing."
        ),
    ] = ""
