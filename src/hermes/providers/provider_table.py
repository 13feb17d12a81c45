"""How the services differ that all claim to speak one format: one row per family, chosen by name or by host."""

import re
from functools import lru_cache
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

from msgspec import Struct

Api: TypeAlias = Literal["chat", "responses", "anthropic"]
# What happens to earlier thinking: `never` sent back; `own` when this provider wrote it; `always`, with a blank where
# there was none, for services that reject a reply without it once thinking is on.
Echo: TypeAlias = Literal["never", "own", "always"]


class Quirks(Struct, frozen=True, kw_only=True):
    """One family of services. The defaults are what most compatible servers do."""

    family: str
    label: str = ""  # the name that people use
    base_url: str = ""
    key_variable: str = ""
    hosts: tuple[str, ...] = ()
    default_model: str = ""
    small_models: tuple[
        str, ...
    ] = ()  # cheap, and good enough to be trusted with a summary
    image_bytes: int = 15_000_000  # the largest picture it takes, before base64
    image_side: int = 8_000  # the longest side in pixels
    api: Api = "chat"
    echo_reasoning: Echo = "never"
    reasoning_field: Literal["reasoning_content", "reasoning"] = "reasoning_content"
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    system_role: Literal["system", "developer"] = "system"
    include_usage: bool = True  # stream_options.include_usage is understood
    reasoning_effort: Literal["", "reasoning_effort", "reasoning"] = (
        ""  # the request field that sets it
    )
    parallel_tool_calls: bool = False  # the field is understood and worth sending
    images: bool = True  # the format takes pictures; the model may still not
    reasoning_outside_output: bool = False  # completion_tokens leaves thinking out
    cache_key: bool = False  # prompt_cache_key is understood
    cache_markers: bool = False  # cache_control on content parts is understood
    max_tokens: bool = True  # a limit for the reply is accepted
    needs_key: bool = True
    sign_in: str = ""  # the sign-in service whose accounts can be used here
    headers: tuple[tuple[str, str], ...] = ()  # that every request must have
    stops_when_cut: tuple[
        str, ...
    ] = ()  # models that say `stop` when they were cut off
    models_query: str = ""  # what GET /models wants behind its path
    is_subscription: bool = False  # a token costs nothing by itself

    @property
    def takes_key(self) -> bool:
        """Whether it is called with a key; else only with a sign-in, or without either."""
        return self.needs_key and bool(self.key_variable)

    key_check_path: str = (
        ""  # below the address; for a service that lists its models to everyone
    )


FAMILIES: tuple[Quirks, ...] = (
    Quirks(
        family="openai",
        label="OpenAI",
        base_url="https://api.openai.com/v1",
        key_variable="OPENAI_API_KEY",
        hosts=("api.openai.com", "eu.api.openai.com", "us.api.openai.com"),
        default_model="gpt-5.5",
        small_models=("gpt-5-mini", "gpt-5.4-mini"),
        api="responses",
        max_tokens_field="max_completion_tokens",
        system_role="developer",
        reasoning_effort="reasoning_effort",
        cache_key=True,
    ),
    Quirks(
        family="anthropic",
        label="Anthropic",
        base_url="https://api.anthropic.com/v1",
        key_variable="ANTHROPIC_API_KEY",
        hosts=("api.anthropic.com",),
        default_model="claude-sonnet-5-5",
        small_models=("claude-haiku-4-5",),
        image_bytes=3_700_000,  # 5 MB in base64
        api="anthropic",
        echo_reasoning="own",
        cache_markers=True,
    ),
    Quirks(
        family="openrouter",
        label="OpenRouter",
        base_url="https://openrouter.ai/api/v1",
        key_check_path="/key",
        key_variable="OPENROUTER_API_KEY",
        sign_in="openrouter",
        hosts=("openrouter.ai",),
        default_model="anthropic/claude-sonnet-4.6",
        small_models=("openai/gpt-5-mini", "google/gemini-2.5-flash"),
        image_bytes=3_700_000,
        echo_reasoning="own",
        reasoning_field="reasoning",
        reasoning_effort="reasoning",
        cache_markers=True,
    ),
    Quirks(
        family="deepseek",
        label="DeepSeek",
        base_url="https://api.deepseek.com/v1",
        key_variable="DEEPSEEK_API_KEY",
        hosts=("api.deepseek.com",),
        default_model="deepseek-chat",
        echo_reasoning="always",
        images=False,
    ),
    Quirks(
        family="moonshot",
        label="Moonshot (Kimi)",
        base_url="https://api.moonshot.ai/v1",
        key_variable="MOONSHOT_API_KEY",
        hosts=("api.moonshot.ai", "api.moonshot.cn", "api.kimi.com"),
        default_model="kimi-k2.5",
        echo_reasoning="always",
    ),
    Quirks(
        family="groq",
        label="Groq",
        base_url="https://api.groq.com/openai/v1",
        key_variable="GROQ_API_KEY",
        hosts=("api.groq.com",),
        default_model="openai/gpt-oss-120b",
        image_bytes=2_900_000,  # 4 MB in base64
        max_tokens_field="max_completion_tokens",
        reasoning_field="reasoning",
        reasoning_effort="reasoning_effort",
    ),
    Quirks(
        family="mistral",
        label="Mistral",
        base_url="https://api.mistral.ai/v1",
        key_variable="MISTRAL_API_KEY",
        hosts=("api.mistral.ai",),
        default_model="mistral-large-latest",
        include_usage=False,  # rejected as unknown; usage comes by itself
    ),
    Quirks(
        family="xai",
        label="xAI",
        base_url="https://api.x.ai/v1",
        key_variable="XAI_API_KEY",
        sign_in="xai",
        hosts=("api.x.ai",),
        default_model="grok-4",
        small_models=("grok-4-1-fast-non-reasoning",),
        max_tokens_field="max_completion_tokens",
        reasoning_outside_output=True,
    ),
    Quirks(
        family="gemini",
        label="Google Gemini",
        base_url="https://generativelanguage.googleapis.com/v1beta/openai",
        key_variable="GEMINI_API_KEY",
        hosts=("generativelanguage.googleapis.com",),
        default_model="gemini-2.5-pro",
        small_models=("gemini-2.5-flash",),
        reasoning_effort="reasoning_effort",
    ),
    Quirks(
        family="together",
        label="Together",
        base_url="https://api.together.xyz/v1",
        key_variable="TOGETHER_API_KEY",
        hosts=("api.together.xyz", "api.together.ai"),
        default_model="openai/gpt-oss-120b",
        reasoning_field="reasoning",
    ),
    Quirks(
        family="zai",
        label="Z.ai",
        base_url="https://api.z.ai/api/paas/v4",
        key_variable="ZAI_API_KEY",
        hosts=("api.z.ai", "open.bigmodel.cn"),
        default_model="glm-4.6",
        echo_reasoning="own",
    ),
    Quirks(
        family="minimax",
        label="MiniMax",
        base_url="https://api.minimax.io/v1",
        key_variable="MINIMAX_API_KEY",
        hosts=("api.minimax.io", "api.minimaxi.com"),
        default_model="MiniMax-M2",
        echo_reasoning="own",
    ),
    Quirks(
        family="fireworks",
        label="Fireworks",
        base_url="https://api.fireworks.ai/inference/v1",
        key_variable="FIREWORKS_API_KEY",
        hosts=("api.fireworks.ai",),
        default_model="accounts/fireworks/models/gpt-oss-120b",
        echo_reasoning="own",
    ),
    Quirks(
        family="cerebras",
        label="Cerebras",
        base_url="https://api.cerebras.ai/v1",
        key_variable="CEREBRAS_API_KEY",
        hosts=("api.cerebras.ai",),
        default_model="gpt-oss-120b",
        max_tokens_field="max_completion_tokens",
        reasoning_field="reasoning",
    ),
    Quirks(
        family="nvidia",
        label="NVIDIA",
        base_url="https://integrate.api.nvidia.com/v1",
        key_variable="NVIDIA_API_KEY",
        hosts=("integrate.api.nvidia.com",),
        default_model="openai/gpt-oss-120b",
    ),
    Quirks(
        family="huggingface",
        label="Hugging Face",
        base_url="https://router.huggingface.co/v1",
        # Not HF_TOKEN: many have that for downloads, and don't mean to be billed for answers.
        key_variable="HUGGINGFACE_API_KEY",
        hosts=("router.huggingface.co",),
        default_model="openai/gpt-oss-120b",
    ),
    Quirks(
        family="chatgpt",
        label="ChatGPT",
        base_url="https://chatgpt.com/backend-api/codex",
        hosts=("chatgpt.com",),
        default_model="gpt-5.5",
        small_models=("gpt-5.4-mini",),
        api="responses",
        max_tokens=False,  # rejected as unknown
        sign_in="openai",
        headers=(("originator", "hermes"),),
        models_query="?client_version=1.0.0",
        is_subscription=True,
    ),
    Quirks(
        family="copilot",
        label="GitHub Copilot",
        base_url="https://api.githubcopilot.com",
        hosts=("githubcopilot.com",),
        default_model="gpt-4.1",
        sign_in="copilot",
        is_subscription=True,
        headers=(
            ("copilot-integration-id", "vscode-chat"),  # calls without one are refused
            ("editor-version", "hermes/1.0"),
        ),
    ),
    Quirks(
        family="nous",
        label="Nous Portal",
        base_url="https://inference-api.nousresearch.com/v1",
        key_variable="NOUS_API_KEY",
        hosts=("inference-api.nousresearch.com",),
        default_model="Hermes-4-405B",
        sign_in="nous",
    ),
    Quirks(
        family="azure",
        label="Azure",
        base_url="https://azure.invalid/openai/v1",  # the account says which resource it is
        key_variable="AZURE_OPENAI_API_KEY",
        hosts=("openai.azure.com", "services.ai.azure.com"),
        default_model="gpt-5.5",
        api="responses",
        max_tokens_field="max_completion_tokens",
        sign_in="azure",
    ),
    Quirks(
        family="vertex",
        label="Google Vertex AI",
        base_url="https://aiplatform.googleapis.com/v1",  # the account says which project it is
        hosts=("aiplatform.googleapis.com",),
        default_model="google/gemini-2.5-pro",
        small_models=("google/gemini-2.5-flash",),
        reasoning_effort="reasoning_effort",
        sign_in="vertex",
    ),
    Quirks(
        family="bedrock",
        label="AWS Bedrock",
        base_url="https://bedrock-runtime.us-east-1.amazonaws.com/openai/v1",  # the account says which region it is
        key_variable="AWS_BEARER_TOKEN_BEDROCK",
        default_model="openai.gpt-oss-120b-1:0",
        max_tokens_field="max_completion_tokens",
        sign_in="bedrock",
    ),
    Quirks(
        family="ollama",
        label="Ollama",
        base_url="http://127.0.0.1:11434/v1",
        key_variable="OLLAMA_API_KEY",
        hosts=(":11434", "ollama.com"),
        stops_when_cut=("glm",),
        reasoning_field="reasoning",
        needs_key=False,
    ),
    Quirks(
        family="lmstudio",
        label="LM Studio",
        base_url="http://127.0.0.1:1234/v1",
        key_variable="LMSTUDIO_API_KEY",
        hosts=(":1234",),
        needs_key=False,
    ),
    Quirks(
        family="vllm",
        label="vLLM",
        base_url="http://127.0.0.1:8000/v1",
        key_variable="VLLM_API_KEY",
        echo_reasoning="own",
        needs_key=False,
    ),
    Quirks(
        family="llamacpp",
        label="llama.cpp",
        base_url="http://127.0.0.1:8080/v1",
        key_variable="LLAMACPP_API_KEY",
        needs_key=False,
    ),
)

INSPECTED_FAMILIES = frozenset(("ollama", "lmstudio", "llamacpp"))
"""Servers that say what they know about a model, such as its context."""

GENERIC = Quirks(family="generic", key_variable="OPENAI_API_KEY", needs_key=False)

_ALIASES = {
    "kimi": "moonshot",
    "google": "gemini",
    "grok": "xai",
    "claude": "anthropic",
    "lm-studio": "lmstudio",
    "llama.cpp": "llamacpp",
    "hf": "huggingface",
}
_ALIASES |= {
    "github": "copilot",
    "aws": "bedrock",
    "nousresearch": "nous",
    "glm": "zai",
    "zhipu": "zai",
    "custom": "generic",
    "openai-compatible": "generic",
}


_ECHOING = r"(?:^|[/:_.-])(?:deepseek|mimo)(?!.*(?:distill|coder))"


def echo_of(quirks: Quirks, model: str) -> Echo:
    """What happens to a model's earlier thinking. DeepSeek and MiMo want theirs back, whoever hosts them."""
    if re.search(_ECHOING, model.lower()):
        return "always"
    return quirks.echo_reasoning


def family(name: str) -> Quirks | None:
    """The family that goes by `name`, also by its everyday name."""
    name = name.strip().lower()
    name = _ALIASES.get(name, name)
    if name == GENERIC.family:
        return GENERIC
    return next((quirks for quirks in FAMILIES if quirks.family == name), None)


def label_of(name: str) -> str:
    """The name that people use for a provider; its own name for one that only the settings know."""
    known = family(name)
    return (known.label if known else "") or name


def family_of(base_url: str) -> Quirks:
    """The family behind an address: by its host, or its port for the well-known local servers; else the generic one."""
    parts = urlsplit(base_url)
    host = (parts.hostname or "").lower()
    for quirks in FAMILIES:
        for known in quirks.hosts:
            if (
                host == known
                or host.endswith("." + known)
                or (known == f":{parts.port}" and is_local(base_url))
            ):
                return quirks
    return GENERIC


@lru_cache(maxsize=64)
def is_local(base_url: str) -> bool:
    """Whether the address is this machine or a private network, where a model may take minutes to load."""
    import ipaddress

    host = (urlsplit(base_url).hostname or "").lower()
    if host == "localhost" or host.endswith(
        (".localhost", ".local", ".lan", ".internal")
    ):
        return True
    try:
        address = ipaddress.ip_address(host)
    except (
        ValueError
    ):  # a name: private only when it has no dot, as in a container network
        return bool(host) and "." not in host
    return address.is_loopback or address.is_private or address.is_link_local
