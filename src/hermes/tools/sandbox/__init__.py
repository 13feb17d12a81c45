"""The sandbox: the kernel confines commands, whatever they are. `find` says by which means, `fence` to what."""

from hermes.tools.sandbox.fence import Fence, Launch, NoSandbox, Sandbox, Started
from hermes.tools.sandbox.find import find_sandbox

__all__ = ["Fence", "Launch", "NoSandbox", "Sandbox", "Started", "find_sandbox"]
