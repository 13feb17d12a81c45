"""For all tests: no example is judged by how long it took, as the machine may be busy with others."""

from hypothesis import settings

settings.register_profile("house", deadline=None)
settings.load_profile("house")
