"""The slash commands of the chat: one table, from which help, completion and a page of the docs are made too."""
