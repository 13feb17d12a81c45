"""The shadow repository: saves the state of files before and after each turn, outside the project.

`ShadowKeeper` implements the `Keeper` port; `Shadow` undoes and compares turns of one working directory. The user's own
repository is never written to.
"""

from hermes.tools.shadow.call_keeper import ShadowKeeper
from hermes.tools.shadow.repository import ShadowFailed
from hermes.tools.shadow.shadows import RestoreOutcome, Shadows

__all__ = ["RestoreOutcome", "ShadowFailed", "ShadowKeeper", "Shadows"]
