"""Finds model files of other programs on this machine: Ollama, LM Studio, llama.cpp, Hugging Face and GPT4All.

Only the folders of these programs are searched, to a fixed depth and for a fixed number of files. Only the header of
each file is read; links that lead out of a program's folder are not followed.
"""

import glob
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

import msgspec

from hermes.providers.embedded.gguf_header import GgufFacts, NotGguf, read_facts

_MAX_FILES = 60
_MAX_FOLDER_ENTRIES = 400
_MAX_MANIFEST_BYTES = 100_000
_MIN_BYTES = 50_000_000  # smaller models can't chat
_MODEL_LAYER = "application/vnd.ollama.image.model"
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_SPLIT = re.compile(r"-(\d{5})-of-(\d{5})\.gguf$", re.IGNORECASE)
_NOT_CHAT = frozenset(
    ("clip", "bert", "nomic-bert", "nomic-bert-moe", "jina-bert-v2", "modern-bert",
     "neo-bert", "t5encoder", "gemma-embedding", "wavtokenizer-dec", "whisper", "flux", "sd1", "sdxl", "sd3")
)  # fmt: skip


class LocalWeights(msgspec.Struct, frozen=True, kw_only=True):
    """A model file of another program. `path` can be passed to `hermes model add`."""

    name: str
    program: str
    path: Path
    size: int
    facts: GgufFacts


class _Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A file that may be a model."""

    name: str
    program: str
    path: Path
    size: int


class _OllamaLayer(msgspec.Struct):
    mediaType: str = ""  # noqa: N815 - the name in the file
    digest: str = ""


class _OllamaManifest(msgspec.Struct):
    layers: list[_OllamaLayer] = []


def find_local_weights(
    environ: Mapping[str, str], user_home: Path
) -> tuple[LocalWeights, ...]:
    """Returns the chat models on this machine: those that can use tools first, then the larger ones.

    Files with an unreadable header are skipped.
    """
    found: dict[Path, LocalWeights] = {}
    for candidate in islice(_candidates(environ, user_home), _MAX_FILES):
        path = candidate.path
        if candidate.size < _MIN_BYTES or path in found:
            continue
        try:
            facts = read_facts(path)
        except (NotGguf, OSError):
            continue
        if facts.architecture in _NOT_CHAT or not facts.parameters:
            continue
        found[path] = LocalWeights(
            name=candidate.name,
            program=candidate.program,
            path=path,
            size=candidate.size,
            facts=facts,
        )
    return tuple(sorted(found.values(), key=_rank))


def _rank(one: LocalWeights) -> tuple[bool, bool, int, str]:
    facts = one.facts
    return not facts.has_tools, not facts.has_template, -facts.parameters, one.name


def _candidates(environ: Mapping[str, str], home: Path) -> Iterator[_Candidate]:
    """Yields the files of every program, according to how each stores them."""
    cache = Path(environ.get("XDG_CACHE_HOME") or home / ".cache")
    data = Path(environ.get("XDG_DATA_HOME") or home / ".local/share")
    library = home / "Library"
    for root in _folders(
        environ.get("OLLAMA_MODELS"),
        home / ".ollama/models",
        "/usr/share/ollama/.ollama/models",
        "/var/lib/ollama/models",
    ):
        yield from _ollama(root)
    for root in _folders(home / ".lmstudio/models", cache / "lm-studio/models"):
        yield from _files("LM Studio", root, "*/*/*.gguf")
    for root in _folders(
        environ.get("LLAMA_CACHE"), cache / "llama.cpp", library / "Caches/llama.cpp"
    ):
        yield from _files("llama.cpp", root, "*.gguf")
    for root in _folders(_hub_cache(environ, cache)):
        yield from _files("Hugging Face", root, "models--*/snapshots/*/*.gguf")
    for root in _folders(
        data / "nomic.ai/GPT4All", library / "Application Support/nomic.ai/GPT4All"
    ):
        yield from _files("GPT4All", root, "*.gguf")


def _hub_cache(environ: Mapping[str, str], cache: Path) -> Path:
    """Returns the folder where the hub's own programs store downloads."""
    if given := environ.get("HF_HUB_CACHE"):
        return Path(given)
    if home := environ.get("HF_HOME"):
        return Path(home) / "hub"
    return cache / "huggingface/hub"


def _folders(*places: Path | str | None) -> Iterator[Path]:
    """Yields the paths that are folders, with links resolved."""
    for place in places:
        if not place:
            continue
        try:
            folder = Path(place).expanduser().resolve(strict=True)
        except (OSError, RuntimeError):
            continue
        if folder.is_dir():
            yield folder


def _files(program: str, root: Path, pattern: str) -> Iterator[_Candidate]:
    """Yields the matching files. Of a model in several parts, only the first part."""
    for path in _matches(root, pattern):
        split = _SPLIT.search(path.name)
        if split and int(split[1]) != 1:
            continue
        name = _SPLIT.sub("", path.name)
        others = path.parent.glob(f"{glob.escape(name)}-*.gguf") if split else ()
        sizes = [_size_inside(one, root) for one in {path, *others}]
        if None in sizes:
            continue
        size = sum(filter(None, sizes))
        yield _Candidate(
            name=name.removesuffix(".gguf"), program=program, path=path, size=size
        )


def _matches(root: Path, pattern: str) -> Iterator[Path]:
    """Yields the matching paths, up to a limit per folder. Unreadable folders count as empty."""
    first, _, rest = pattern.partition("/")
    try:
        found = sorted(islice(root.glob(first), _MAX_FOLDER_ENTRIES))
    except OSError:
        return
    for path in found:
        if not rest:
            yield path
        elif not path.is_symlink():
            yield from _matches(path, rest)


def _size_inside(path: Path, root: Path) -> int | None:
    """Returns the size of a regular file; None for anything else, and for a link that leads out of `root`."""
    try:
        target = path.resolve(strict=True)
        if not target.is_file() or not target.is_relative_to(root):
            return None
        return target.stat().st_size
    except (OSError, RuntimeError):
        return None


def _ollama(root: Path) -> Iterator[_Candidate]:
    """Yields Ollama's models. A manifest, at host/owner/model/tag, names the file with the weights."""
    for manifest in _matches(root / "manifests", "*/*/*/*"):
        digest = _model_digest(manifest)
        if digest is None:
            continue
        path = root / "blobs" / digest.replace(":", "-")
        if (size := _size_inside(path, root)) is None:
            continue
        owner, model, tag = manifest.parts[-3:]
        name = f"{model}:{tag}" if owner == "library" else f"{owner}/{model}:{tag}"
        yield _Candidate(name=name, program="Ollama", path=path, size=size)


def _model_digest(manifest: Path) -> str | None:
    try:
        if manifest.stat().st_size > _MAX_MANIFEST_BYTES or not manifest.is_file():
            return None
        layers = msgspec.json.decode(manifest.read_bytes(), type=_OllamaManifest).layers
    except (OSError, msgspec.DecodeError):
        return None
    digests = [layer.digest for layer in layers if layer.mediaType == _MODEL_LAYER]
    is_one = len(digests) == 1 and _DIGEST.fullmatch(digests[0])
    return digests[0] if is_one else None
