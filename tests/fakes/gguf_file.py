"""GGUF files with a real header and a hole where the weights would be."""

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

_STRING, _ARRAY, _U32 = 8, 9, 4
_F16 = 1


def write_gguf(
    path: Path,
    *,
    architecture: str = "qwen2",
    name: str = "Qwen",
    template: str = "{% if tools %}{{ tools }}{% endif %}",
    shapes: Sequence[tuple[int, ...]] = ((1536, 151_936), (1536,)),
    vocabulary: int = 3,
    size: int = 60_000_000,
) -> Path:
    """Writes a file whose header says that, and extends it to `size` without using disk space."""
    pairs: dict[str, object] = {
        "general.architecture": architecture,
        "general.name": name,
        f"{architecture}.context_length": 32_768,
        "tokenizer.ggml.tokens": [f"token{n}" for n in range(vocabulary)],
        "tokenizer.ggml.token_type": list(range(vocabulary)),
        "tokenizer.chat_template": template,
    }
    header = gguf_header({key: value for key, value in pairs.items() if value}, shapes)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(header)
        file.truncate(max(size, len(header)))
    return path


def gguf_header(
    pairs: Mapping[str, object], shapes: Sequence[tuple[int, ...]]
) -> bytes:
    """The header: magic, version, counts, pairs and tensors."""
    tensors = b"".join(_tensor(number, shape) for number, shape in enumerate(shapes))
    body = b"".join(_text(key) + _value(value) for key, value in pairs.items())
    return b"GGUF" + struct.pack("<IQQ", 3, len(shapes), len(pairs)) + body + tensors


def _tensor(number: int, shape: tuple[int, ...]) -> bytes:
    sizes = struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
    return _text(f"blk.{number}.weight") + sizes + struct.pack("<IQ", _F16, 0)


def _value(value: object) -> bytes:
    if isinstance(value, str):
        return struct.pack("<I", _STRING) + _text(value)
    if isinstance(value, int):
        return struct.pack("<II", _U32, value)
    assert isinstance(value, list)
    kind = _STRING if isinstance(value[0], str) else _U32
    items = (_text(one) if kind == _STRING else struct.pack("<I", one) for one in value)
    return struct.pack("<IIQ", _ARRAY, kind, len(value)) + b"".join(items)


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data
