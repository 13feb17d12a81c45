"""Public fakes, for our tests and for those of plugin authors. The product never imports them."""

from hermes.testing.fixtures import FakeClock, FakeIds, temporary_home
from hermes.testing.scripted_model import Reply, ScriptedModel

__all__ = ["FakeClock", "FakeIds", "Reply", "ScriptedModel", "temporary_home"]
