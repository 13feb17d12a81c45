"""The terminal tool and background commands: starting, watching and ending processes."""
