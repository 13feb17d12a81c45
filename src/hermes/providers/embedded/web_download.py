"""Downloads a file over HTTP from the model hub or another address: resumes, and retries while data still arrives.

The hub answers with a redirect to a file server. The redirect names the size and SHA-256 of the file, so a file that is
not the pinned one is refused before the download.
"""

import contextlib
import http.client
import os
import queue
import socket
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from email.message import Message
from pathlib import Path
from typing import IO, Literal, TypeAlias

import msgspec

from hermes.providers.embedded.catalogue import KnownModel, ModelHub
from hermes.providers.embedded.download_progress import Progress
from hermes.providers.embedded.weight_sources import (
    SourceFailed,
    part_path,
    partial_path,
    parts,
)
from hermes.text.translation import translator

t = translator(__name__)


HubAnswer: TypeAlias = Literal["present", "absent", "unreachable"]

PROBE_TIMEOUT_S = 2.0
_READ_BYTES = 1 << 18
_TEMPORARY_STATUSES = frozenset((408, 425, 429, 500, 502, 503, 504))
_RANGE_REFUSED = 416
_MAX_WAITING_CHUNKS = 16
_SILENCE_S = 1.0
_SILENT = t.logged("waiting for data")


class Transfer(msgspec.Struct, frozen=True, kw_only=True):
    """The timeouts of a download: seconds without any byte, and the delays before each retry."""

    timeout_s: float = 20.0
    retry_delays_s: tuple[float, ...] = (0.0, 1.0, 2.0, 4.0, 8.0)


class WebFile(msgspec.Struct, frozen=True, kw_only=True):
    """The file to download, with its expected size and hash."""

    url: str
    host: str
    size: int
    sha256: str


class _Interrupted(Exception):
    """The connection failed in a way that may be temporary."""


def from_web(
    file: WebFile, folder: Path, transfer: Transfer | None = None
) -> Iterator[Progress]:
    """Downloads the file, continuing an earlier download. Existing parts of wheels come first."""
    if parts(folder):
        raise SourceFailed(t.logged("not asked: parts from elsewhere are here already"))
    if urllib.parse.urlsplit(file.url).scheme not in {"http", "https"}:
        raise SourceFailed(t.logged("the address is not a web address"), file.url)
    folder.mkdir(parents=True, exist_ok=True)
    partial = partial_path(folder)
    if _size(partial) > file.size:
        partial.unlink()
    transfer = transfer or Transfer()
    failures, begun = 0, False
    while (have := _size(partial)) < file.size:
        try:
            yield from _download(file, partial, have, transfer.timeout_s)
        except _Interrupted as problem:
            if _size(partial) > have:
                failures, begun = 0, True
            failures += 1
            if not begun or failures > len(transfer.retry_delays_s):
                raise SourceFailed(str(problem), file.url) from problem
            yield Progress(source=f"{problem}; trying again", done=0, total=0)
            time.sleep(transfer.retry_delays_s[failures - 1])
    partial.rename(part_path(folder, 1))


def _download(
    file: WebFile, partial: Path, have: int, timeout_s: float
) -> Iterator[Progress]:
    """Makes one request and appends the data to the file."""
    with _open(file, partial, have, timeout_s) as response:
        resumed = response.status == http.HTTPStatus.PARTIAL_CONTENT
        _check_length(file, response, have if resumed else 0)
        with partial.open("ab" if resumed else "wb") as out:
            done = out.tell()
            for chunk in _chunks(response):
                done += len(chunk)
                if done > file.size:
                    raise _wrong_size(file, partial)
                out.write(chunk)
                yield Progress(
                    source=file.host if chunk else f"{file.host}: {_SILENT}",
                    done=done,
                    total=file.size,
                    detail=file.url,
                )
    if done < file.size:
        raise _Interrupted(t.logged("the connection ended early"))


@contextlib.contextmanager
def _open(
    file: WebFile, partial: Path, have: int, timeout_s: float
) -> Iterator[http.client.HTTPResponse]:
    """Sends the request. Raises _Interrupted for temporary errors, SourceFailed for permanent ones."""
    request = urllib.request.Request(file.url, headers=_headers(have))  # noqa: S310 - http or https, checked above
    opener = urllib.request.build_opener(_PinnedRedirects(file))
    try:
        response: http.client.HTTPResponse = opener.open(request, timeout=timeout_s)
    except urllib.error.HTTPError as error:
        with error:
            raise _refusal(file, partial, error.code) from error
    except (OSError, http.client.HTTPException) as error:
        raise _Interrupted(f"not reachable ({_reason(error)})") from error
    with response:
        yield response


def _headers(have: int) -> dict[str, str]:
    headers = {"User-Agent": "hermes", "Accept-Encoding": "identity"}
    return headers | ({"Range": f"bytes={have}-"} if have else {})


def _refusal(file: WebFile, partial: Path, status: int) -> Exception:
    """Turns an HTTP status into the matching error."""
    if status == _RANGE_REFUSED:
        partial.unlink(missing_ok=True)
        return _Interrupted(t.logged("the download must start again (416)"))
    if status in _TEMPORARY_STATUSES:
        return _Interrupted(f"busy ({status})")
    if status in {401, 403}:
        return SourceFailed(
            t.logged("refuses to give the file ({status})", status=status), file.url
        )
    if status in {404, 410}:
        return SourceFailed(
            t.logged("does not have the file ({status})", status=status), file.url
        )
    return SourceFailed(
        t.logged("answers with an error ({status})", status=status), file.url
    )


def _check_length(
    file: WebFile, response: http.client.HTTPResponse, start: int
) -> None:
    """Raises SourceFailed if the response gives another file size, or continues at another position."""
    if start and f"bytes {start}-" not in response.headers.get("Content-Range", ""):
        raise SourceFailed("can't continue a download", file.url)
    length = response.headers.get("Content-Length", "")
    if length.isdecimal() and start + int(length) != file.size:
        raise SourceFailed(t.logged("the file there has another size"), file.url)


def _wrong_size(file: WebFile, partial: Path) -> SourceFailed:
    partial.unlink(missing_ok=True)
    return SourceFailed(t.logged("the file there has another size"), file.url)


def _chunks(response: http.client.HTTPResponse) -> Iterator[bytes]:
    """Yields the data, and an empty chunk for each second without any. A thread reads, so that stalls can be shown."""
    arrived: queue.Queue[bytes | Exception] = queue.Queue(_MAX_WAITING_CHUNKS)
    closed = threading.Event()
    connection = socket.socket(fileno=os.dup(response.fileno()))

    def read() -> None:
        data: bytes | Exception = b" "
        while data and not isinstance(data, Exception) and not closed.is_set():
            try:
                data = response.read1(_READ_BYTES)
            except (OSError, ValueError, http.client.HTTPException) as error:
                data = error
            except AttributeError as error:  # the error of a response that was closed
                if not closed.is_set():
                    raise
                data = error
            arrived.put(data)

    threading.Thread(target=read, name="weights-download", daemon=True).start()
    try:
        while True:
            try:
                data = arrived.get(timeout=_SILENCE_S)
            except queue.Empty:
                yield b""
                continue
            if isinstance(data, Exception):
                raise _interruption(data) from data
            if not data:
                return
            yield data
    finally:
        closed.set()
        # Otherwise closing the response would wait for the thread, which may be waiting for data.
        with connection, contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(queue.Empty):
            while True:
                arrived.get_nowait()


def _interruption(error: Exception) -> _Interrupted:
    if isinstance(error, TimeoutError):
        return _Interrupted(t.logged("no data arrives"))
    return _Interrupted(
        t.logged("the connection broke ({reason})", reason=_reason(error))
    )


def _reason(error: Exception) -> str:
    cause = getattr(error, "reason", None) or error
    if isinstance(cause, TimeoutError):
        return "no answer"
    return getattr(cause, "strerror", None) or str(cause) or type(cause).__name__


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


class _PinnedRedirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects, unless one shows that the file is not the pinned one."""

    def __init__(self, file: WebFile) -> None:
        self._file = file

    # pyrefly: ignore[missing-override-decorator]
    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        if not _is_pinned(headers, self._file.size, self._file.sha256):
            fp.close()
            problem = t.logged("the file there is another version")
            raise SourceFailed(problem, self._file.url)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _is_pinned(headers: Message, size: int, sha256: str) -> bool:
    """Returns whether the hub's headers, if there are any, describe the pinned file."""
    linked_size = headers.get("X-Linked-Size", "")
    linked_etag = headers.get("X-Linked-ETag", "").removeprefix("W/").strip('"')
    if linked_size.isdecimal() and int(linked_size) != size:
        return False
    return len(linked_etag) != len(sha256) or linked_etag.lower() == sha256


def ask_hub(
    hub: ModelHub, entry: KnownModel, timeout_s: float = PROBE_TIMEOUT_S
) -> HubAnswer:
    """Asks the hub whether it has the file. Returns within `timeout_s`, even if the network or DNS is slow."""
    url = next(filter(None, map(hub.url, entry.sources)), "")
    if not url:
        return "unreachable"
    answers: queue.SimpleQueue[HubAnswer] = queue.SimpleQueue()

    def ask() -> None:
        answers.put(_head(url, entry, timeout_s))

    threading.Thread(target=ask, name="hub-probe", daemon=True).start()
    try:
        return answers.get(timeout=timeout_s)
    except queue.Empty:
        return "unreachable"


def _head(url: str, entry: KnownModel, timeout_s: float) -> HubAnswer:
    """Makes one HEAD request. A redirect counts as an answer and is not followed."""
    request = urllib.request.Request(url, headers=_headers(0), method="HEAD")  # noqa: S310 - from the catalogue or the settings
    opener = urllib.request.build_opener(_NoRedirects())
    try:
        with opener.open(request, timeout=timeout_s) as response:
            headers: Message = response.headers
    except urllib.error.HTTPError as error:
        with error:
            if error.code >= 500 or error.code in _TEMPORARY_STATUSES:
                return "unreachable"
            if not 300 <= error.code < 400:
                return "absent"
            headers = error.headers
    except (OSError, http.client.HTTPException, ValueError):
        return "unreachable"
    return "present" if _is_pinned(headers, entry.size, entry.sha256) else "absent"


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Makes a redirect an HTTPError."""

    # pyrefly: ignore[missing-override-decorator]
    def redirect_request(self, *_: object, **__: object) -> None:
        return None
