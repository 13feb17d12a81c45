"""Runs the tests of sockets, signals and argparse on every other supported Python that it finds.

Interpreters are `python3.X` on PATH or a version of pyenv. Each gets its own environment in `.venvs`, which is rebuilt
when the locked dependencies change. Arguments are passed on to pytest; without any, TESTS are run.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MINORS = (11, 12, 13, 14)
AT_ONCE = 2  # while one waits for its last tests, the other works
WORKERS = ("-n", "2")  # of pytest, for each interpreter
TESTS = (
    # argparse
    "tests/unit/commands/test_command.py",
    "tests/unit/surfaces/cli/test_commands.py",
    "tests/unit/surfaces/cli/test_parser.py",
    "tests/unit/surfaces/cli/test_parser_words.py",
    "tests/unit/surfaces/cli/test_sessions_arguments.py",
    "tests/e2e/test_cli_frame.py",
    "tests/e2e/test_docs.py::test_the_generated_pages_are_fresh",
    # sockets, and what arrives through them
    "tests/unit/providers/test_wire_json.py",
    "tests/integration/bridge/test_event_socket.py",
    "tests/integration/dashboard/test_feeds.py",
    "tests/integration/dashboard/test_lines.py",
    "tests/integration/test_provider_http.py",
    "tests/integration/web",
    # signals and child processes
    "tests/integration/children/test_piped_child.py",
    "tests/integration/pty",
    "tests/e2e/test_ask_signals.py",
)
_LOCK = ROOT / "requirements" / "dev.lock"
_PROBE = "import sys, venv; print('%d.%d.%d' % sys.version_info[:3])"


def version_of(program: Path) -> str:
    """The version of an interpreter that works and can create environments; empty for anything else."""
    done = subprocess.run(
        [program, "-I", "-c", _PROBE],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    return done.stdout.strip() if done.returncode == 0 else ""


def find_python(minor: int) -> tuple[Path, str] | None:
    """The newest Python 3.`minor` on this machine, and its version."""
    name = f"python3.{minor}"
    on_path = shutil.which(name)
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    candidates = [Path(on_path)] if on_path else []
    candidates += sorted(pyenv.glob(f"versions/3.{minor}.*/bin/{name}"), reverse=True)
    for program in candidates:
        version = version_of(program)
        if version.startswith(f"3.{minor}."):
            return program, version
    return None


def environment_for(program: Path, version: str) -> Path:
    """The interpreter of an environment with everything that the tests need."""
    folder = ROOT / ".venvs" / version
    python, stamp = folder / "bin" / "python", folder / "lock"
    wanted = hashlib.sha256(
        _LOCK.read_bytes() + (ROOT / "pyproject.toml").read_bytes()
    ).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return python
    print(
        f"Python {version}: setting up {folder.relative_to(ROOT)} ...",
        file=sys.stderr,
        flush=True,
    )
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([program, "-m", "venv", "--without-pip", folder], check=True)
    install(python, "--require-hashes", "-r", str(_LOCK))
    install(python, "--no-deps", "--no-build-isolation", "-e", str(ROOT))
    stamp.write_text(wanted)
    return python


def install(python: Path, *what: str) -> None:
    """Installs with uv, which links files that it already has; with pip if uv finds no packages."""
    uv = [Path(sys.executable).with_name("uv"), "pip", "install", "--python", python]
    if subprocess.run([*uv, "--quiet", *what], check=False).returncode:
        pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet"]
        subprocess.run([*pip, "--disable-pip-version-check", *what], check=True)


def run_tests(program: Path, version: str, arguments: list[str]) -> bool:
    """Runs the tests on an interpreter. Prints pytest's output in one piece, because others run at the same time."""
    python = environment_for(program, version)
    start = time.monotonic()
    done = subprocess.run(
        [python, "-m", "pytest", "-p", "no:cacheprovider", *WORKERS, *arguments],
        cwd=ROOT,
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    took = time.monotonic() - start
    outcome = "failed" if done.returncode else "passed"
    print(f"{done.stdout}Python {version}: {outcome} in {took:.0f} s.", flush=True)
    return done.returncode == 0


def main() -> int:
    """Returns the exit code: 0 if everything passed on every interpreter found."""
    arguments = sys.argv[1:] or list(TESTS)
    found: list[tuple[Path, str]] = []
    for minor in MINORS:
        if sys.version_info[:2] == (3, minor):
            continue  # `make test` runs everything on this one
        python = find_python(minor)
        if python is None:
            print(f"Python 3.{minor}: not found, skipped.", file=sys.stderr, flush=True)
        else:
            found.append(python)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        runs = [
            pool.submit(run_tests, program, version, arguments)
            for program, version in found
        ]
    return 0 if all(run.result() for run in runs) else 1


if __name__ == "__main__":
    sys.exit(main())
