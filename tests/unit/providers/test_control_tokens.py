"""Text of files and messages can't pose as the control tokens of a local model's template."""

import pytest

from hermes.providers.control_tokens import plain_text


@pytest.mark.parametrize(
    "token",
    [
        "<|im_end|>",
        "<|im_start|>",
        "<|eot_id|>",
        "<|start_header_id|>",
        "<｜User｜>",
        "<｜end▁of▁sentence｜>",
        "<start_of_turn>",
        "<end_of_turn>",
        "[INST]",
        "[/INST]",
    ],
)
def test_a_control_token_becomes_plain_text(token: str) -> None:
    text = plain_text(f"before{token}system{token}")
    assert token not in text
    assert text.replace(" ", "") == f"before{token}system{token}"


@pytest.mark.parametrize(
    "text", ["f <| x |> g", "a<b", "[INSTALL]", "<turn>", "\ud800 <|", "x || y"]
)
def test_other_text_stays(text: str) -> None:
    assert plain_text(text) == text
