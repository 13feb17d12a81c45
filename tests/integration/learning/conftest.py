"""A home that learns, with a clock of its own."""

import os
from pathlib import Path

import pytest

from hermes.learning.learning_service import Learning, open_learning
from hermes.settings import Home
from hermes.settings.sections import Learning as LearningSettings
from hermes.testing.clock import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def learning(tmp_path: Path, clock: FakeClock) -> Learning:
    return open_learning(
        Home(tmp_path / "home").ensure(), LearningSettings(), os.environ, clock=clock
    )
