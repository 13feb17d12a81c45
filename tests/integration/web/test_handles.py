"""A server in a process that runs out of file handles: it says so once, and serves again as soon as it can."""

import json
import socket
import subprocess
import sys
from contextlib import ExitStack

_SERVER = """
import asyncio, json, logging, resource, sys
from hermes.primitives.repeated_errors import RepeatedErrors
from hermes.surfaces.web.server import WebServer, listen

async def answer(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})

async def main():
    errors = RepeatedErrors(logging.getLogger("hermes"))
    place = listen("127.0.0.1", 0, who="It", hint="")
    server = WebServer(answer, place, errors, "the test")
    server.start()
    resource.setrlimit(resource.RLIMIT_NOFILE, (48, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    print(place.getsockname()[1], flush=True)
    while True:
        command = await asyncio.to_thread(sys.stdin.readline)
        if command.strip() == "stop":
            break
        problems = errors.problems()
        print(json.dumps([problems[0].count, problems[0].is_over] if problems else [0, False]), flush=True)
    await server.stop()

asyncio.run(main())
"""

_REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


def test_running_out_of_file_handles_is_said_once_and_survived() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        port = int(process.stdout.readline())

        def ask(command: str) -> list[int]:
            assert process.stdin is not None
            assert process.stdout is not None
            print(command, file=process.stdin, flush=True)
            return json.loads(process.stdout.readline())

        with ExitStack() as visits:
            for _ in range(100):
                visits.enter_context(
                    socket.create_connection(("127.0.0.1", port), timeout=20)
                )
            while ask("how")[0] < 3:
                pass  # each pause is longer than the one before, so that this takes a moment
        with socket.create_connection(("127.0.0.1", port), timeout=20) as visit:
            visit.sendall(_REQUEST)
            answer = b"".join(iter(lambda: visit.recv(4096), b""))
        assert answer.endswith(b"ok")
        assert 3 <= ask("how")[0] < 50
        print("stop", file=process.stdin, flush=True)
        _, said = process.communicate(timeout=20)
    assert process.returncode == 0, said
    assert said.count("Too many open files") == 1, said
    assert "Traceback" not in said
