"""The chat at a terminal. `chat` begins it; the command line finds it by its name."""
