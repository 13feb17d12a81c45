"""Pictures and speech: one port for each sense, with its backends and its tools."""
