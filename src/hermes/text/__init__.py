"""Text: hidden characters, and the language that a text is in."""
