"""The settings of Mattermost, WhatsApp, Signal and Matrix as chat platforms."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from hermes.settings.section import Section


class MattermostSettings(Section, frozen=True):
    """Mattermost. The bot's token is the secret MATTERMOST_TOKEN."""

    url: Annotated[
        str,
        Meta(
            description="URL of the Mattermost server, such as https://chat.example.org; empty to turn Mattermost off."
        ),
    ] = ""
    channels: Annotated[
        tuple[str, ...],
        Meta(
            description="Ids of channels in which Hermes reads every message, even without a mention."
        ),
    ] = ()


class WhatsAppSettings(Section, frozen=True):
    """WhatsApp, by Meta's Cloud API. The secrets are WHATSAPP_TOKEN, WHATSAPP_APP_SECRET and WHATSAPP_VERIFY_TOKEN."""

    phone_number_id: Annotated[
        str,
        Meta(
            pattern=r"^\d{0,32}$",
            description="Id of the phone number, as Meta's app dashboard shows it; empty to turn WhatsApp off.",
        ),
    ] = ""
    api_url: Annotated[
        str, Meta(description="URL of the Graph API, including its version.")
    ] = "https://graph.facebook.com/v26.0"


class SignalSettings(Section, frozen=True):
    """Signal, through the daemon of signal-cli. It has no password, so it must listen on this machine only."""

    account: Annotated[
        str,
        Meta(
            pattern=r"^(\+\d{4,20})?$",
            description="Phone number of the account in signal-cli, such as +4915112345678; empty to turn Signal off.",
        ),
    ] = ""
    url: Annotated[str, Meta(description="URL of the daemon's HTTP endpoint.")] = (
        "http://127.0.0.1:8080"
    )


class MatrixSettings(Section, frozen=True):
    """Matrix. The bot's access token is the secret MATRIX_ACCESS_TOKEN."""

    url: Annotated[
        str,
        Meta(
            description="URL of the homeserver, such as https://matrix.example.org; empty to turn Matrix off."
        ),
    ] = ""
    join_rooms: Annotated[
        bool,
        Meta(
            description="Join every room that somebody invites the bot to. Who may talk to Hermes there is another matter."
        ),
    ] = True
    rooms: Annotated[
        tuple[str, ...],
        Meta(
            description="Ids of rooms in which Hermes reads every message, even without a mention."
        ),
    ] = ()


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
