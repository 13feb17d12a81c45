"""Model files of other programs on this machine, in folders laid out as those programs do."""

import hashlib
import json
import os
import struct
from pathlib import Path

import pytest
from tests.fakes.gguf_file import gguf_header, write_gguf

from hermes.providers.embedded import find_local_weights
from hermes.providers.embedded.gguf_header import NotGguf, read_facts
from hermes.providers.embedded.weights_choice import free_memory_bytes


def add_to_ollama(root: Path, name: str, template: str = "{{ tools }}") -> Path:
    """A model as `ollama pull` leaves it: a manifest that names a blob by its digest."""
    digest = hashlib.sha256(name.encode()).hexdigest()
    blob = write_gguf(root / "blobs" / f"sha256-{digest}", template=template)
    owner, _, rest = name.rpartition("/")
    model, _, tag = rest.partition(":")
    manifest = root / "manifests/registry.example" / (owner or "library") / model / tag
    manifest.parent.mkdir(parents=True, exist_ok=True)
    layers = [
        {"mediaType": "application/vnd.ollama.image.template", "digest": "sha256:0"},
        {
            "mediaType": "application/vnd.ollama.image.model",
            "digest": f"sha256:{digest}",
        },
    ]
    manifest.write_text(json.dumps({"schemaVersion": 2, "layers": layers}))
    return blob


def test_a_header_tells_what_the_model_is(tmp_path: Path) -> None:
    path = write_gguf(
        tmp_path / "m.gguf", name="Tiny", shapes=((4096, 32_000), (4096,)), vocabulary=300_000
    )  # fmt: skip
    facts = read_facts(path)
    assert (facts.name, facts.architecture) == ("Tiny", "qwen2")
    assert facts.parameters == 4096 * 32_000 + 4096
    assert facts.context_tokens == 32_768
    assert facts.has_template
    assert facts.has_tools
    plain = read_facts(write_gguf(tmp_path / "p.gguf", template="{{ messages }}"))
    assert (plain.has_template, plain.has_tools) == (True, False)
    bare = read_facts(write_gguf(tmp_path / "b.gguf", template=""))
    assert (bare.has_template, bare.has_tools) == (False, False)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not a model at all",
        b"GGUF",
        b"GGUF" + struct.pack("<IQQ", 99, 0, 0),
        b"GGUF" + struct.pack("<IQQ", 3, 1 << 60, 1),
        b"GGUF" + struct.pack("<IQQ", 3, 1, 1 << 60),
        b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1 << 62),
        gguf_header({"key": ["a"] * 9}, ())[:-4],
        gguf_header({}, ((1,) * 99,)),
        gguf_header({"key": ["a"]}, ()).replace(struct.pack("<IQ", 8, 1), struct.pack("<IQ", 8, 1 << 40)),
    ],
)  # fmt: skip
def test_a_bad_header_is_refused_at_once(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.gguf"
    path.write_bytes(content)
    with pytest.raises(NotGguf):
        read_facts(path)


def test_the_files_of_every_program_are_found(tmp_path: Path) -> None:
    home = tmp_path
    blob = add_to_ollama(home / ".ollama/models", "llama3.2:3b")
    add_to_ollama(home / ".ollama/models", "ann/own:latest", template="{{ messages }}")
    write_gguf(
        home / ".lmstudio/models/lm/repo/Studio-Q4.gguf", shapes=((99_999, 9999),)
    )
    write_gguf(home / ".cache/llama.cpp/org_cpp.gguf", template="")
    snapshot = home / ".cache/huggingface/hub/models--org--name/snapshots/abc"
    target = write_gguf(snapshot.parents[1] / "blobs/123", shapes=((88_888, 9999),))
    snapshot.mkdir(parents=True)
    (snapshot / "hub.gguf").symlink_to(target)
    write_gguf(home / ".local/share/nomic.ai/GPT4All/all.gguf", template="{{ messages }}")  # fmt: skip

    found = find_local_weights({}, home)
    assert [(one.name, one.program) for one in found] == [
        ("Studio-Q4", "LM Studio"),
        ("hub", "Hugging Face"),
        ("llama3.2:3b", "Ollama"),
        ("all", "GPT4All"),
        ("ann/own:latest", "Ollama"),
        ("org_cpp", "llama.cpp"),
    ]
    assert found[2].path == blob
    assert found[2].size == 60_000_000
    assert found[1].path == snapshot / "hub.gguf"


def test_programs_that_were_told_another_folder_are_followed(tmp_path: Path) -> None:
    add_to_ollama(tmp_path / "o", "qwen3:4b")
    write_gguf(tmp_path / "l/cpp.gguf")
    write_gguf(tmp_path / "h/hub/models--a--b/snapshots/1/x.gguf")
    environ = {
        "OLLAMA_MODELS": str(tmp_path / "o"),
        "LLAMA_CACHE": str(tmp_path / "l"),
        "HF_HOME": str(tmp_path / "h"),
    }
    names = {one.name for one in find_local_weights(environ, tmp_path / "home")}
    assert names == {"qwen3:4b", "cpp", "x"}


def test_what_can_not_chat_or_leads_elsewhere_is_left_out(tmp_path: Path) -> None:
    folder = tmp_path / ".cache/llama.cpp"
    write_gguf(folder / "embed.gguf", architecture="nomic-bert")
    write_gguf(folder / "mmproj.gguf", architecture="clip")
    write_gguf(folder / "small.gguf", size=1_000)
    write_gguf(folder / "big-00001-of-00002.gguf")
    write_gguf(folder / "big-00002-of-00002.gguf")
    (folder / "text.gguf").write_bytes(b"x" * 100)
    (folder / "folder.gguf").mkdir()
    (folder / "broken.gguf").symlink_to(tmp_path / "nowhere")
    outside = write_gguf(tmp_path / "private/secret.gguf")
    (folder / "link.gguf").symlink_to(outside)
    (tmp_path / ".lmstudio/models").mkdir(parents=True)
    (tmp_path / ".lmstudio/models/loop").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe.gguf")
    (big,) = find_local_weights({}, tmp_path)
    assert (big.name, big.size) == ("big", 120_000_000)


def test_odd_manifests_are_left_out(tmp_path: Path) -> None:
    root = tmp_path / ".ollama/models"
    folder = root / "manifests/r/library/odd"
    folder.mkdir(parents=True)
    write_gguf(tmp_path / "outside.gguf")
    layer = {"mediaType": "application/vnd.ollama.image.model"}
    texts = {
        "broken": "{",
        "list": "[]",
        "none": json.dumps({"layers": []}),
        "path": json.dumps(
            {"layers": [layer | {"digest": "sha256:../../../outside.gguf"}]}
        ),
        "gone": json.dumps({"layers": [layer | {"digest": "sha256:" + "0" * 64}]}),
        "huge": " " * 200_000,
    }
    for tag, text in texts.items():
        (folder / tag).write_text(text)
    assert find_local_weights({}, tmp_path) == ()


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def test_memory_is_what_the_system_and_the_container_leave(tmp_path: Path) -> None:
    assert free_memory_bytes(tmp_path) > 0
    write(tmp_path, "proc/meminfo", "MemTotal: 9 kB\nMemAvailable:   4000000 kB\n")
    assert free_memory_bytes(tmp_path) == 4_096_000_000
    write(tmp_path, "sys/fs/cgroup/memory.max", "max\n")
    write(tmp_path, "sys/fs/cgroup/memory.current", "1500\n")
    assert free_memory_bytes(tmp_path) == 4_096_000_000
    write(tmp_path, "sys/fs/cgroup/memory.max", "2000\n")
    assert free_memory_bytes(tmp_path) == 500
    write(tmp_path, "sys/fs/cgroup/memory.stat", "anon 3\ninactive_file 300\n")
    assert free_memory_bytes(tmp_path) == 800
