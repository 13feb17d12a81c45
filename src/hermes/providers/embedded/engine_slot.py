"""The engine's one slot, inside the child: load the weights, keep the prefix's state, generate, stop when told.

The library always opens an HTTP port. It is bound to loopback with a random key that only this process knows: it
needs it to save and restore the slot, for which the library has no other door.
"""

import contextlib
import http.client
import os
import secrets
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from hermes.providers.embedded import engine_wire

_BATCH_TOKENS = 128  # tokens computed at a time: how long a cancelled prompt goes on
_MIN_REPLY_TOKENS = 384  # tokens that a reply may always count on


class CannotStart(Exception):
    """The library or the weights can't be used."""

    def __init__(
        self, reason: Literal["engine_missing", "library_missing", "load"], message: str
    ) -> None:
        super().__init__(message)
        self.reason: Literal["engine_missing", "library_missing", "load"] = reason


class Slot:
    """A loaded model with one conversation in its memory."""

    def __init__(
        self, load: engine_wire.Load, report: Callable[[engine_wire.Report], None]
    ) -> None:
        self._load = load
        self._report = report
        self._key = secrets.token_urlsafe(24)
        self._library = _import_library()
        self._state = Path(f"{load.state}.{self._library.__version__}.state")
        self._server = self._start()
        self._prefix_tokens = 0
        self._holds_prefix = False
        restored = self._place_prefix()
        report(
            engine_wire.EngineReady(engine=self._library.__version__, restored=restored)
        )

    def generate(
        self, job: engine_wire.Generate, cancelled: Callable[[], bool]
    ) -> engine_wire.GenerationEnded | engine_wire.Failed:
        """Runs one job to its end, sending deltas."""
        size = sum(self._count(turn.content) + 8 for turn in job.turns)
        before = self._prefix_tokens if job.prefixed else 0
        room = self._load.context - before - size
        if room < _MIN_REPLY_TOKENS:
            return engine_wire.Failed(
                id=job.id,
                reason="too_long",
                message=f"{before + size} tokens in {self._load.context}",
            )
        if job.prefixed and not self._holds_prefix:
            self._place_prefix()
        self._holds_prefix = job.prefixed
        turns = (*self._load.prefix, *job.turns) if job.prefixed else job.turns
        return self._complete(job, turns, min(job.max_tokens, room), cancelled)

    def _complete(
        self,
        job: engine_wire.Generate,
        turns: tuple[engine_wire.ChatTurn, ...],
        limit: int,
        cancelled: Callable[[], bool],
    ) -> engine_wire.GenerationEnded | engine_wire.Failed:
        finish: Literal["stop", "length"] = "stop"
        timings: dict[str, Any] = {}
        problem = ""

        def take(chunk: dict[str, Any]) -> bool:
            nonlocal finish, timings, problem
            if "error" in chunk:
                problem = str(chunk["error"].get("message", chunk["error"]))
            for choice in chunk.get("choices", ()):
                if text := choice.get("delta", {}).get("content"):
                    self._report(engine_wire.Delta(id=job.id, text=text))
                if choice.get("finish_reason") == "length":
                    finish = "length"
            timings = chunk.get("timings") or timings
            return cancelled()

        if not cancelled():
            self._server.handle_chat_completions(
                self._request(turns, job.grammar, limit), take
            )
        if problem:
            return engine_wire.Failed(id=job.id, reason="engine", message=problem)
        cached = int(timings.get("cache_n", 0))
        return engine_wire.GenerationEnded(
            id=job.id,
            finish="cancelled" if cancelled() else finish,
            input_tokens=int(timings.get("prompt_n", 0)) + cached,
            cached_tokens=cached,
            output_tokens=int(timings.get("predicted_n", 0)),
        )

    def _request(
        self, turns: tuple[engine_wire.ChatTurn, ...], grammar: str, limit: int
    ) -> dict[str, Any]:
        request: dict[str, Any] = {
            "messages": [
                {"role": turn.role, "content": turn.content} for turn in turns
            ],
            "max_tokens": limit,
            "temperature": 0.0,
            "stream": True,
            "return_progress": True,  # a chunk per batch, so that a prompt can be cancelled too
            "cache_prompt": True,
            "id_slot": 0,
        }
        return request | ({"grammar": grammar} if grammar else {})

    def _place_prefix(self) -> bool:
        """Puts the prefix into the slot: restored from its file, or computed and saved. True when restored."""
        prefix = self._load.prefix
        if not prefix:
            return True
        if not self._prefix_tokens:
            self._prefix_tokens = sum(self._count(turn.content) + 8 for turn in prefix)
        if self._state_is_sound() and self._slot("restore", self._state.name):
            self._holds_prefix = True
            return True

        def take(chunk: dict[str, Any]) -> bool:
            if progress := chunk.get("prompt_progress"):
                self._report(
                    engine_wire.PrefixProgress(
                        done=progress["processed"], total=progress["total"]
                    )
                )
            return False

        last = engine_wire.ChatTurn("user", "hello")
        self._server.handle_chat_completions(
            self._request((*prefix, last), "", 1), take
        )
        self._holds_prefix = True
        self._save_state()
        return False

    def _save_state(self) -> None:
        """Saves under another name first, and with a checksum. Failing to save costs only time."""
        temporary = self._state.with_name(f"{self._state.name}.{os.getpid()}")
        if self._slot("save", temporary.name):
            checksum = _checksum(temporary)
            temporary.replace(self._state)
            self._sum_file.write_text(checksum)
            self._forget_others()
        else:
            temporary.unlink(missing_ok=True)

    @property
    def _sum_file(self) -> Path:
        return self._state.with_suffix(".sum")

    def _state_is_sound(self) -> bool:
        """Whether the saved state is whole: the library would crash on half of one."""
        try:
            return self._sum_file.read_text() == _checksum(self._state)
        except OSError:
            return False

    def _forget_others(self) -> None:
        """Deletes states of this model that an older prompt or engine left behind."""
        model = self._state.name.partition(".")[0]
        for other in self._state.parent.glob(f"{model}.*.state"):
            if other != self._state:
                other.unlink(missing_ok=True)
                other.with_suffix(".sum").unlink(missing_ok=True)

    def _slot(self, action: Literal["save", "restore"], name: str) -> bool:
        return self._post(f"/slots/0?action={action}", {"filename": name}) is not None

    def _count(self, text: str) -> int:
        """Tokens of a text; a text too short to matter is not asked about."""
        if len(text) < 16:
            return len(text)
        reply = self._post("/tokenize", {"content": text})
        return len(reply["tokens"]) if reply else len(text)

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any] | None:
        """Asks our own port. None when it refuses."""
        address = urlsplit(self._server.listening_address)
        connection = http.client.HTTPConnection(
            address.hostname or "127.0.0.1", address.port, timeout=60
        )
        with contextlib.closing(connection):
            headers = {
                "Authorization": f"Bearer {self._key}",
                "Content-Type": "application/json",
            }
            connection.request("POST", path, msgspec.json.encode(body), headers)
            response = connection.getresponse()
            data = response.read()
        return (
            msgspec.json.decode(data, type=dict[str, Any])
            if response.status == 200
            else None
        )

    def _start(self) -> Any:
        """The library's server, closed to everybody but us."""
        params = self._library.CommonParams()
        params.model.path = self._load.path
        params.n_ctx = self._load.context
        params.n_parallel = 1
        params.n_batch = params.n_ubatch = _BATCH_TOKENS
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = (
            self._load.threads or os.cpu_count() or 1
        )
        params.warmup = False
        params.fit_params = False
        params.no_extra_bufts = True  # repacked weights load slower, take twice the memory and hardly compute faster
        params.cache_ram_mib = 0
        params.force_pure_content_parser = True
        params.verbosity = 0
        params.hostnames = ["127.0.0.1"]
        params.port = 0
        params.n_threads_http = 1
        params.api_keys = [self._key]
        params.cors_origins = "null"
        params.ui = False
        params.slot_save_path = f"{self._state.parent}/"
        try:
            return self._library.Server(params)
        except Exception as error:
            raise CannotStart("load", str(error) or type(error).__name__) from error


def _checksum(path: Path) -> str:
    value = 0
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            value = zlib.crc32(chunk, value)
    return f"{value:08x} {path.stat().st_size}"


def _import_library() -> Any:
    os.environ.setdefault(
        "GGML_NO_BACKTRACE", "1"
    )  # it would start a debugger on a failed assertion
    os.environ.setdefault(
        "GOMP_SPINCOUNT", "1000"
    )  # spinning beside one busy process costs five sixths of the speed
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        import xllamacpp
    except ModuleNotFoundError as error:
        raise CannotStart("engine_missing", str(error)) from error
    except ImportError as error:
        raise CannotStart("library_missing", str(error)) from error
    return xllamacpp
