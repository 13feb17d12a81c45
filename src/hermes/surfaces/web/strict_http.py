"""Refuses ambiguous HTTP requests, whose end two servers could see in different places."""

import h11

_BLANKS = (b" ", b"\t")


class StrictConnection(h11.Connection):
    """An h11 connection that refuses folded headers, and Content-Length beside Transfer-Encoding; h11 accepts both."""

    # pyrefly: ignore[missing-override-decorator]
    def next_event(self) -> "type[h11.NEED_DATA | h11.PAUSED] | h11.Event":
        if self.their_state is h11.IDLE:
            _require_plain(self.trailing_data[0])
        return super().next_event()


def _require_plain(data: bytes) -> None:
    """Raises if the request's head, once complete, can be read in more than one way."""
    head, end, _ = data.lstrip(b"\r\n").replace(b"\r\n", b"\n").partition(b"\n\n")
    if not end:
        return
    lines = head.split(b"\n")[1:]
    if any(line.startswith(_BLANKS) for line in lines):
        raise h11.RemoteProtocolError(
            "a header continues on a second line", error_status_hint=400
        )
    names = [line.partition(b":")[0].strip().lower() for line in lines]
    if b"transfer-encoding" in names and (
        b"content-length" in names or names.count(b"transfer-encoding") > 1
    ):
        raise h11.RemoteProtocolError(
            "Content-Length and Transfer-Encoding in one request", error_status_hint=400
        )
