"""The first lines of a chat."""

from hermes.providers.routing import ModelRoute
from hermes.surfaces.terminal.style import Style
from hermes.surfaces.tui.banner import banner


def text(provider: str, model: str) -> str:
    lines = banner(
        ModelRoute(provider=provider, model=model),
        "s1",
        Style(enabled=False),
        400,
        resumed=False,
    )
    return "\n".join(lines)


def test_a_local_model_has_the_name_that_it_was_offered_with() -> None:
    first = text("embedded", "base").splitlines()[0]
    assert first.endswith("· Qwen2.5 Coder 1.5B Instruct (embedded:base)")
    assert text("embedded", "/x/own.gguf").splitlines()[0].endswith("· own.gguf")


def test_a_local_model_says_that_nothing_leaves_the_machine_and_codex_does_not() -> (
    None
):
    assert "Nothing leaves this machine" in text("embedded", "base")
    for model in ("", "gpt-5.5"):
        said = text("codex", model)
        assert "Nothing leaves" not in said
        assert "local model" not in said
        assert said.splitlines()[0].endswith(f"· codex {model}".rstrip())
        assert "Codex runs your turns" in said
        assert "/codex-runtime off" in said
