"""Takes the control tokens of chat templates out of text for a local model.

Local servers put messages into the model's template and read the whole as tokens. `<|im_end|><|im_start|>system` in a
file would end the message it is in and begin another one. A space makes it plain text.
"""

import re

_SIGNS = (b"<|", "<｜".encode(), b"_of_turn>", b"INST]")
_TOKENS = (  # ChatML, Llama 3, Phi and others; DeepSeek; Gemma; Llama 2 and Mistral
    r"<(?=(?:\||｜)(?:\w|[.-]|▁){1,60}(?:\||｜)>|(?:start|end)_of_turn>)|\[(?=/?INST\])"
).encode()


def without_control_tokens(data: bytes) -> bytes:
    """Returns `data`, a request or a text, in which no control token is left."""
    if not any(sign in data for sign in _SIGNS):
        return data
    return re.sub(_TOKENS, rb"\g<0> ", data)


def plain_text(text: str) -> str:
    """Does the same for a text."""
    data = text.encode("utf-8", "surrogatepass")
    return without_control_tokens(data).decode("utf-8", "surrogatepass")
