"""A home that learns, with a clock of its own."""

import os
from pathlib import Path

import pytest

from hermes.learning.learning_service import LearningService, open_learning
from hermes.settings import Home
from hermes.settings.sections import LearningSettings
from hermes.testing.fixtures import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def learning(tmp_path: Path, clock: FakeClock) -> LearningService:
    return open_learning(
        Home(tmp_path / "home").ensure(), LearningSettings(), os.environ, clock=clock
    )
