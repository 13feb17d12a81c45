"""The engine's slots, inside the child: load the weights, store the states of prefixes, generate, stop on request.

The library always opens an HTTP port. The port is bound to loopback, with a random key that only this process knows.
The process uses the port to save and restore slots, because the library offers no other way.
"""

import contextlib
import hashlib
import http.client
import os
import secrets
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from hermes.errors import words_of
from hermes.providers.embedded import engine_wire
from hermes.providers.embedded.completion import CacheSlot, ChatTurn, Completion
from hermes.providers.embedded.engine_chat import run_chat

_BATCH_TOKENS = 128  # tokens per batch; a cancelled prompt finishes its batch
_MIN_REPLY_TOKENS = 384  # tokens that are always reserved for a reply
_TURN_TOKENS = 8  # tokens that a chat template adds to a turn
_SLOTS: tuple[CacheSlot, ...] = ("talk", "work", "decide", "other")


class CannotStart(Exception):
    """The library or the weights can't be used."""

    def __init__(
        self, reason: Literal["engine_missing", "library_missing", "load"], message: str
    ) -> None:
        super().__init__(message)
        self.reason: Literal["engine_missing", "library_missing", "load"] = reason


class SlotBank:
    """A loaded model with one conversation per slot in memory, so that no kind of prompt evicts another."""

    def __init__(
        self, load: engine_wire.Load, report: Callable[[engine_wire.Report], None]
    ) -> None:
        self._load = load
        self._report = report
        self._key = secrets.token_urlsafe(24)
        self._library = _import_library()
        self._states = {
            slot: self._state_path(slot, prefix)
            for slot, prefix in load.prefixes.items()
        }
        self._server = self._start()
        self._placed: set[CacheSlot] = set()
        self._chat_key = ""
        restored = True
        for slot in list(load.prefixes)[:1]:
            restored = self._place_prefix(slot, _never)
        report(
            engine_wire.EngineReady(engine=self._library.__version__, restored=restored)
        )

    def run(
        self, job: engine_wire.Job, cancelled: Callable[[], bool]
    ) -> engine_wire.GenerationEnded | engine_wire.Failed:
        """Runs one job to its end and sends its output."""
        if isinstance(job, engine_wire.Generate):
            return self.generate(job, cancelled)
        return self.chat(job, cancelled)

    def chat(
        self, job: engine_wire.ChatJob, cancelled: Callable[[], bool]
    ) -> engine_wire.GenerationEnded | engine_wire.Failed:
        """Answers a request with tools. The first request with a new prefix saves its state for later starts."""
        is_new = bool(job.state_key) and job.state_key != self._chat_key
        is_restored = False
        if is_new:
            self._chat_key = job.state_key
            state = self._states[job.slot] = self._chat_state(job)
            is_restored = self._restored(job.slot, state)
        outcome = run_chat(
            self._server, job, _SLOTS.index(job.slot), self._report, cancelled
        )
        is_whole = isinstance(outcome, engine_wire.GenerationEnded) and not cancelled()
        if is_new and is_whole and not is_restored:
            self._save_state(job.slot)
        return outcome

    def _chat_state(self, job: engine_wire.ChatJob) -> Path:
        version = self._library.__version__
        return Path(f"{self._load.state}.chat-{job.state_key}.{version}.state")

    def generate(
        self, job: engine_wire.Generate, cancelled: Callable[[], bool]
    ) -> engine_wire.GenerationEnded | engine_wire.Failed:
        """Runs one job to its end and sends deltas."""
        prompt = job.prompt
        room = self._load.context - self._size(prompt)
        if room < _MIN_REPLY_TOKENS:
            return engine_wire.Failed(
                id=job.id,
                reason="too_long",
                message=f"{self._load.context - room} tokens in {self._load.context}",
            )
        if self._load.prefixes.get(prompt.slot) == prompt.prefix:
            self._place_prefix(prompt.slot, cancelled)
        return self._complete(job, min(prompt.max_tokens, room), cancelled)

    def prepare(self, interrupted: Callable[[], bool]) -> None:
        """Places the prefixes of slots that have not been used yet, until it is interrupted."""
        for slot in self._load.prefixes:
            if not interrupted():
                self._place_prefix(slot, interrupted)

    def _complete(
        self, job: engine_wire.Generate, limit: int, cancelled: Callable[[], bool]
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
            self._server.handle_chat_completions(_request(job.prompt, limit), take)
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

    def _place_prefix(self, slot: CacheSlot, interrupted: Callable[[], bool]) -> bool:
        """Puts a prefix into its slot: restored from its file, or computed and saved. False if it was computed."""
        if slot in self._placed:
            return True
        if self._restored(slot, self._states[slot]):
            self._placed.add(slot)
            return True
        for other in self._earlier_states(slot):  # most of it may be identical
            if self._restored(slot, other):
                break

        def take(chunk: dict[str, Any]) -> bool:
            if progress := chunk.get("prompt_progress"):
                self._report(
                    engine_wire.PrefixProgress(
                        done=progress["processed"], total=progress["total"]
                    )
                )
            return interrupted()

        turns = (*self._load.prefixes[slot], ChatTurn("user", "hello"))
        self._server.handle_chat_completions(
            _request(Completion(slot=slot, turns=turns), 1), take
        )
        if not interrupted():
            self._placed.add(slot)
            self._save_state(slot)
        return False

    def _restored(self, slot: CacheSlot, state: Path) -> bool:
        """Restores a saved state into a slot, if the state is complete."""
        return _is_sound(state) and self._slot("restore", slot, state.name)

    def _earlier_states(self, slot: CacheSlot) -> list[Path]:
        """Returns the states of this slot that earlier prompts left behind."""
        stem, version = Path(self._load.state), self._library.__version__
        return list(stem.parent.glob(f"{stem.name}.{slot}-*.{version}.state"))

    def _save_state(self, slot: CacheSlot) -> None:
        """Saves the state atomically, with a checksum. If saving fails, the next start is only slower."""
        state = self._states[slot]
        temporary = state.with_name(f"{state.name}.{os.getpid()}")
        if self._slot("save", slot, temporary.name):
            checksum = _checksum(temporary)
            temporary.replace(state)
            _sum_file(state).write_text(checksum)
            self._forget_others()
        else:
            temporary.unlink(missing_ok=True)

    def _state_path(self, slot: CacheSlot, prefix: tuple[ChatTurn, ...]) -> Path:
        digest = hashlib.sha256(msgspec.json.encode(prefix)).hexdigest()[:16]
        return Path(
            f"{self._load.state}.{slot}-{digest}.{self._library.__version__}.state"
        )

    def _forget_others(self) -> None:
        """Deletes states of this model that an older prompt or engine left behind."""
        stem = Path(self._load.state)
        for other in stem.parent.glob(f"{stem.name}.*.state"):
            if other not in self._states.values():
                other.unlink(missing_ok=True)
                _sum_file(other).unlink(missing_ok=True)

    def _slot(
        self, action: Literal["save", "restore"], slot: CacheSlot, name: str
    ) -> bool:
        path = f"/slots/{_SLOTS.index(slot)}?action={action}"
        return self._post(path, {"filename": name}) is not None

    def _size(self, prompt: Completion) -> int:
        """Returns the tokens of a prompt: a safe estimate while there is plenty of room, otherwise an exact count."""
        text = "\n".join(turn.content for turn in prompt.turns)
        frame = _TURN_TOKENS * len(prompt.turns)
        guess = len(text.encode()) // 2 + frame
        if guess + _MIN_REPLY_TOKENS + prompt.max_tokens <= self._load.context:
            return guess
        reply = self._post("/tokenize", {"content": text})
        return frame + (len(reply["tokens"]) if reply else len(text))

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any] | None:
        """Sends a request to our own port. Returns None if it is refused."""
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
        """Returns the library's server, which only this process can use."""
        params = self._library.CommonParams()
        params.model.path = self._load.path
        params.n_ctx = self._load.context * 7 // 4
        params.n_parallel = len(_SLOTS)
        params.kv_unified = (
            True  # the slots share the memory; each may use what one prompt needs
        )
        params.n_batch = params.n_ubatch = _BATCH_TOKENS
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = (
            self._load.threads or os.cpu_count() or 1
        )
        params.warmup = False
        params.fit_params = False
        params.no_extra_bufts = True  # repacked weights load slower, take twice the memory and are hardly faster
        params.cache_ram_mib = 0
        params.force_pure_content_parser = not self._load.reads_calls
        params.verbosity = 0
        params.hostnames = ["127.0.0.1"]
        params.port = 0
        params.n_threads_http = 1
        params.api_keys = [self._key]
        params.cors_origins = "null"
        params.ui = False
        params.slot_save_path = f"{Path(self._load.state).parent}/"
        try:
            return self._library.Server(params)
        except Exception as error:
            raise CannotStart("load", words_of(error)) from error


def _request(prompt: Completion, limit: int) -> dict[str, Any]:
    messages = [{"role": turn.role, "content": turn.content} for turn in prompt.turns]
    request: dict[str, Any] = {
        "messages": messages,
        "max_tokens": limit,
        "temperature": 0.0,
        "stream": True,
        "return_progress": True,  # a chunk per batch, so that a prompt can be cancelled too
        "cache_prompt": True,
        "id_slot": _SLOTS.index(prompt.slot),
    }
    if prompt.stop:
        request["stop"] = list(prompt.stop)
    return request | ({"grammar": prompt.grammar} if prompt.grammar else {})


def _never() -> bool:
    return False


def _sum_file(state: Path) -> Path:
    return state.with_suffix(".sum")


def _is_sound(state: Path) -> bool:
    """Returns whether a saved state is complete: the library would crash on a truncated one."""
    try:
        return _sum_file(state).read_text() == _checksum(state)
    except OSError:
        return False


def _checksum(path: Path) -> str:
    value = 0
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            value = zlib.crc32(chunk, value)
    return f"{value:08x} {path.stat().st_size}"


def _import_library() -> Any:
    os.environ.setdefault(
        "GGML_NO_BACKTRACE", "1"
    )  # otherwise a failed assertion would start a debugger
    os.environ.setdefault(
        "GOMP_SPINCOUNT", "1000"
    )  # spinning next to one busy process costs five sixths of the speed
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        import xllamacpp
    except ModuleNotFoundError as error:
        raise CannotStart("engine_missing", str(error)) from error
    except ImportError as error:
        raise CannotStart("library_missing", str(error)) from error
    return xllamacpp
