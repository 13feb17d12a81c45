"""The slash commands of the chat in the terminal."""
