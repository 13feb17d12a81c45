"""Checks whether Moonshine heard English. It turns every language into fluent English words, but less confidently.

The package reports no confidence. So this decodes the recognized text again with the same model and looks at the
probability of each token. The mean (of natural logarithms) was -0.02 to -0.30 in 11 recordings of English; in 13 of
other languages it was -0.65 to -1.42, or the same words were repeated endlessly.

The limit was not tuned on these (espeak-ng and flite): of 25 recordings of 4 to 8 seconds in as many languages all were
refused, and of 33 in English one was, whose words were wrong. Of sentences of one to two seconds 25 of 28 in other
languages were refused, and of 42 in English 7 were, most of which were misheard.
"""

import array
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from hermes.media.audio import SPEECH_RATE_HZ

_LEAST_MEAN = -0.5
_CHECKED_S = 24.0
"""Seconds of speech that are checked; the rest is probably in the same language."""
_MAX_TOKENS_PER_S = 6.5
_LEAST_DIFFERENT = 0.5  # share of distinct tokens in a piece that did not end
_BEGIN, _END = 1, 2
_HEADS, _HEAD_SIZE = 8, 36


def is_english(pieces: Iterable["array.array[int]"], model: Path) -> bool:
    """Returns whether pieces of speech are probably English. `model` is Moonshine's folder."""
    decoder = _Decoder(model)
    chances: list[float] = []
    for piece in _first(pieces):
        tokens, likely = decoder.decode(piece)
        has_ended = bool(tokens) and tokens[-1] == _END
        if not has_ended and len(set(tokens)) < len(tokens) * _LEAST_DIFFERENT:
            return False
        chances += likely
    return not chances or sum(chances) / len(chances) >= _LEAST_MEAN


def _first(pieces: Iterable["array.array[int]"]) -> Iterator["array.array[int]"]:
    """Yields the first pieces, which are checked."""
    left = int(_CHECKED_S * SPEECH_RATE_HZ)
    for piece in pieces:
        if left <= 0:
            return
        yield piece[:left]
        left -= len(piece)


class _Decoder:
    """Moonshine's encoder and decoder, always choosing the most likely token."""

    def __init__(self, model: Path) -> None:
        self._np: Any = import_module("numpy")
        runtime: Any = import_module("onnxruntime")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = 2
        load = runtime.InferenceSession
        self._encoder = load(str(model / "encoder_model.ort"), options)
        self._decoder = load(str(model / "decoder_model_merged.ort"), options)
        self._past = [
            one.name
            for one in self._decoder.get_inputs()
            if one.name.startswith("past_key_values")
        ]
        self._present = [one.name for one in self._decoder.get_outputs()[1:]]

    def decode(self, piece: "array.array[int]") -> tuple[list[int], list[float]]:
        """Returns the tokens of a piece, and the logarithm of each one's probability."""
        np = self._np
        sound = (
            np.frombuffer(piece.tobytes(), np.int16).astype(np.float32)[None] / 32768
        )
        mask = np.ones(sound.shape, np.int64)
        heard = {"input_values": sound, "attention_mask": mask}
        state = {
            "encoder_hidden_states": self._encoder.run(None, heard)[0],
            "encoder_attention_mask": mask,
            "use_cache_branch": np.array([False]),
        }
        empty = np.zeros((1, _HEADS, 0, _HEAD_SIZE), np.float32)
        state |= dict.fromkeys(self._past, empty)
        tokens: list[int] = []
        likely: list[float] = []
        token = _BEGIN
        for _ in range(int(len(piece) / SPEECH_RATE_HZ * _MAX_TOKENS_PER_S) + 1):
            token, chance = self._next(state, token)
            tokens.append(token)
            likely.append(chance)
            if token == _END:
                break
        return tokens, likely

    def _next(self, state: dict[str, Any], token: int) -> tuple[int, float]:
        """Returns the next token and updates `state`."""
        np = self._np
        logits, *present = self._decoder.run(
            None, state | {"input_ids": np.array([[token]], np.int64)}
        )
        for name, value in zip(self._present, present, strict=True):
            past = name.replace("present", "past_key_values")
            if ".decoder." in name or not state["use_cache_branch"][0]:
                state[past] = value
        state["use_cache_branch"] = np.array([True])
        last = logits[0, -1].astype(np.float64)
        best = int(last.argmax())
        return best, float(-np.log(np.exp(last - last[best]).sum()))
