"""What a running dashboard leaves in `dashboard/running.json`, for other processes of the same user."""

import msgspec


class Running(msgspec.Struct, frozen=True):
    """Where it is, and a token that is good for publishing alone."""

    url: str
    pub_url: str
    token: str
    pid: int
