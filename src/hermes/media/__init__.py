"""Pictures and speech: one port for each capability, with its backends and its tools."""
