"""A small LSP client, run as a program: prints the errors that a language server finds in some files.

    python -m hermes.tools.process.language_client '{"server": ["ruff", "server"], "files": ["a.py"], "timeout": 20}'

It runs in the sandbox, in the folder of the project. The exit code is 1 if there are errors, 2 if the server can't be used.
"""

import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from queue import Empty, Queue
from typing import Any

_ERROR = 1  # a severity of LSP
_MAX_ERRORS = 50
_LANGUAGES = {
    ".py": "python",
    ".pyi": "python",
    ".go": "go",
    ".rs": "rust",
    ".ts": "typescript",
    ".tsx": "typescriptreact",
    ".js": "javascript",
    ".jsx": "javascriptreact",
}


class LanguageClient:
    """A conversation with one server, over its standard input and output."""

    def __init__(self, argv: list[str], deadline: float) -> None:
        self._deadline = deadline
        self._server = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._received: Queue[dict[str, Any] | None] = Queue()
        self._last_id = 0
        self.published: dict[str, list[dict[str, Any]]] = {}
        """The diagnostics that the server published for files."""
        threading.Thread(target=self._read, daemon=True).start()

    def notify(self, method: str, params: dict[str, Any]) -> None:
        """Sends a message that needs no answer."""
        self._send({"method": method, "params": params})

    def request(self, method: str, params: dict[str, Any] | None) -> Any:
        """Sends a request and waits for its result. Raises TimeoutError."""
        self._last_id += 1
        wanted = self._last_id
        self._send({"id": wanted, "method": method, "params": params})
        while True:
            message = self._next()
            if message.get("id") == wanted and "method" not in message:
                return message.get("result")

    def wait_for(self, addresses: set[str]) -> None:
        """Waits until the server has published diagnostics for each of these files, or the time is up."""
        try:
            while not addresses <= self.published.keys():
                self._next()
        except TimeoutError:
            return

    def close(self) -> None:
        """Ends the server."""
        self._server.kill()
        self._server.wait()

    def _next(self) -> dict[str, Any]:
        """The next message. Answers the server's requests, and stores what it publishes."""
        left = self._deadline - time.monotonic()
        try:
            message = self._received.get(timeout=max(left, 0.01))
        except Empty:
            raise TimeoutError from None
        if message is None:
            raise TimeoutError
        if message.get("method") == "textDocument/publishDiagnostics":
            about = message["params"]
            self.published[about["uri"]] = about["diagnostics"]
        elif "method" in message and "id" in message:
            items = (message.get("params") or {}).get("items", ())
            is_configuration = message["method"] == "workspace/configuration"
            result = [None] * len(items) if is_configuration else None
            self._send({"id": message["id"], "result": result})
        return message

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._server.stdin is not None  # noqa: S101 - it was asked for
        try:
            self._server.stdin.write(
                b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
            )
            self._server.stdin.flush()
        except OSError:
            raise TimeoutError from None

    def _read(self) -> None:
        stream = self._server.stdout
        assert stream is not None  # noqa: S101 - it was asked for
        while True:
            length = 0
            while (line := stream.readline()).strip():
                name, _, value = line.partition(b":")
                if name.strip().lower() == b"content-length":
                    length = int(value)
            if not line or not length:
                self._received.put(None)
                return
            self._received.put(json.loads(stream.read(length)))


def errors_in(argv: list[str], files: list[Path], timeout_s: float) -> list[str]:
    """The errors that a server finds, as `path:line:column: message`. Raises OSError or TimeoutError."""
    client = LanguageClient(argv, time.monotonic() + timeout_s)
    root = Path.cwd().as_uri()
    try:
        capabilities: dict[str, Any] = {
            "workspace": {"configuration": True},
            "textDocument": {"publishDiagnostics": {}, "diagnostic": {}},
        }
        folders = [{"uri": root, "name": "project"}]
        about = {"processId": None, "rootUri": root, "workspaceFolders": folders}
        able = client.request("initialize", {**about, "capabilities": capabilities})
        client.notify("initialized", {})
        for file in files:
            text = file.read_text("utf-8", "replace")
            language = _LANGUAGES.get(file.suffix, "plaintext")
            opened = {"uri": file.absolute().as_uri(), "languageId": language}
            document = {**opened, "version": 1, "text": text}
            client.notify("textDocument/didOpen", {"textDocument": document})
        return _found(client, able or {}, files)
    finally:
        client.close()


def _found(
    client: LanguageClient, able: dict[str, Any], files: list[Path]
) -> list[str]:
    pulls = "diagnosticProvider" in able.get("capabilities", {})
    if not pulls:
        client.wait_for({file.absolute().as_uri() for file in files})
    lines: list[str] = []
    for file in files:
        address = file.absolute().as_uri()
        found = client.published.get(address, [])
        if pulls:
            params = {"textDocument": {"uri": address}}
            result = client.request("textDocument/diagnostic", params)
            found = (result or {}).get("items", [])
        lines += [_line(file, one) for one in found if one.get("severity") == _ERROR]
    return lines[:_MAX_ERRORS]


def _line(file: Path, diagnostic: dict[str, Any]) -> str:
    start = diagnostic["range"]["start"]
    place = f"{file}:{start['line'] + 1}:{start['character'] + 1}"
    source = f" [{diagnostic['source']}]" if diagnostic.get("source") else ""
    return f"{place}: {' '.join(diagnostic['message'].split())}{source}"


def main(arguments: list[str]) -> int:
    """Runs the check that the arguments describe."""
    wanted = json.loads(arguments[0])
    files = [Path(name) for name in wanted["files"]]
    try:
        lines = errors_in(wanted["server"], files, wanted["timeout"])
    except (OSError, TimeoutError, ValueError):
        return 2
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
