"""What Hermes says beside its output."""

import pytest

from hermes.errors import HermesError, StoreError, in_sentences
from hermes.surfaces.terminal.stderr_message import not_saved


@pytest.mark.parametrize(
    "message", ["not saved: no space left", "Not saved: no space left", "no space left"]
)
def test_that_something_was_not_saved_is_said_once(message: str) -> None:
    assert not_saved(StoreError(message)) == "Not saved: no space left"


@pytest.mark.parametrize("message", ["Incorrect API key", "Incorrect API key."])
def test_what_happened_and_what_to_do_are_two_sentences(message: str) -> None:
    assert (
        in_sentences(HermesError(message, hint="Check it."))
        == "Incorrect API key. Check it."
    )
    assert in_sentences(HermesError(message)) == message
