"""What Hermes says beside its output."""

import pytest

from hermes.errors import StoreError
from hermes.surfaces.terminal.message import not_saved


@pytest.mark.parametrize("message", ["not saved: no space left", "Not saved: no space left", "no space left"])
def test_that_something_was_not_saved_is_said_once(message: str) -> None:
    assert not_saved(StoreError(message)) == "Not saved: no space left"
