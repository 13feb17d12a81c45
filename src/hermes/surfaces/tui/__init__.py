"""The interactive chat at a terminal. `chat` starts it; the command line imports it by name."""
