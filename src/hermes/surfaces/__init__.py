"""Where people meet Hermes. Each surface is a thin reader of events and caller of app."""
